//go:build unix

package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
)

func TestLeaderThatGetsSIGTERMEndsItsCommandAndTheNextLeadsAtOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	standing := func(id string) *running {
		return start(t, "elect", "--connect", srv.Addr(), "--session-timeout", "5m", "/e", "--id", id, "--", "puppet")
	}
	first := standing("one")
	first.ready()
	second := standing("two")
	wantContenders(t, sess, "/e", 2)
	first.signal(syscall.SIGHUP)
	first.wantLine("got 1")
	first.signal(syscall.SIGTERM)
	first.wantLine("got 15")
	second.ready() // long before a session could have ended
	first.wantCode(3)
	second.signal(syscall.SIGTERM)
	second.wantCode(3)
	wantContenders(t, sess, "/e", 0)
}

// Promise: 2
func TestCommandRunsAgainAfterALossAndIsAloneEachTime(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"term", "kill"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			sess := srv.Session(t, time.Minute)
			r := start(t, "elect", "--connect", srv.Addr(), "--on-lost", mode, "/e", "--", "puppet")
			for range 3 {
				r.ready()
				expire(t, srv, sess, "/e")
				if mode == "term" {
					r.wantLine("got 15")
				}
			}
			r.ready()
			r.signal(syscall.SIGTERM)
			r.wantLine("got 15")
			r.wantCode(3)
			if got := strings.Count(r.stderr.String(), "leadership lost, standing for election again"); got != 3 {
				t.Errorf("it tells of %d losses, want 3: %q", got, r.stderr.String())
			}
		})
	}
}

func TestLossEndsAnElectionThatIsForOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "elect", "--once", "--connect", srv.Addr(), "/e", "--", "puppet")
	r.ready()
	expire(t, srv, sess, "/e")
	r.wantLine("got 15")
	r.wantCode(75)
	r.wantStderr("/e: leadership lost: the session expired")
}

// Promise: 2
func TestGroupIsGoneBeforeAnybodyElseCanLead(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "elect", "--once", "--connect", srv.Addr(), "--session-timeout", sessionTimeout, "--grace",
		grace, "/e", "--", "puppet", "parent")
	rest := wantGroupGoneInTime(t, srv, "/e", r)
	if got := strings.Count(rest, "got 15\n"); got != 2 {
		t.Errorf("%d processes of the group got SIGTERM, want 2", got)
	}
}

func TestSignalWhileStandingForElectionLeavesTheLine(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	leader := start(t, "elect", "--connect", srv.Addr(), "/e", "--", "puppet")
	leader.ready()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		r := start(t, "elect", "--connect", srv.Addr(), "/e", "--", "echo", "no")
		wantContenders(t, sess, "/e", 2)
		r.signal(sig)
		r.wantCode(128 + int(sig))
		wantContenders(t, sess, "/e", 1)
		if got := r.rest(); got != "" {
			t.Errorf("%v: the command ran: %q", sig, got)
		}
	}
}

func TestObserverTellsEveryLeaderUntilASignalComes(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	plain := start(t, "elect", "--observe", "--connect", srv.Addr(), "/e")
	json := start(t, "elect", "--observe", "--json", "--connect", srv.Addr(), "/e")
	plain.wantLine("/e: nobody leads")
	json.wantLine(`{"path":"/e","leader":null}`)
	for _, id := range []string{"one", "two words"} {
		leader := start(t, "elect", "--connect", srv.Addr(), "/e", "--id", id, "--", "puppet")
		leader.ready()
		want := "/e: " + id + " leads, token "
		if got := plain.line(); !strings.HasPrefix(got, want) {
			t.Errorf("got line %q, want it to begin with %q", got, want)
		}
		prefix := `{"path":"/e","leader":{"id":"` + id + `","node":"/e/_c_`
		if got := json.line(); !strings.HasPrefix(got, prefix) || !strings.Contains(got, `"session":"0x`) {
			t.Errorf("got %q, want the leader %q", got, id)
		}
		leader.signal(syscall.SIGTERM)
		leader.wantCode(3)
		plain.wantLine("/e: nobody leads")
		json.wantLine(`{"path":"/e","leader":null}`)
	}
	candidate, err := elect.NewCandidate(srv.Client(t, time.Minute), "/e", "library", elect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	leadership, err := candidate.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plain.line()
	json.line()
	if err := leadership.Proclaim(t.Context(), []byte("host:1")); err != nil {
		t.Fatal(err)
	}
	if got := plain.line(); !strings.HasSuffix(got, ", value host:1") {
		t.Errorf("got %q, want the value that the leader has proclaimed", got)
	}
	if got := json.line(); !strings.Contains(got, `"value":"host:1"`) {
		t.Errorf("got %q, want the value that the leader has proclaimed", got)
	}
	plain.signal(syscall.SIGINT)
	plain.wantCode(128 + 2)
	json.signal(syscall.SIGTERM)
	json.wantCode(128 + 15)
}

func TestObserverWhoseReaderHasGoneEndsInSilence(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "elect", "--observe", "--connect", srv.Addr(), "/e")
	r.wantLine("/e: nobody leads")
	r.out.Close()
	leader := start(t, "elect", "--connect", srv.Addr(), "/e", "--", "puppet") // one that ended at once might go unseen
	leader.ready()
	r.wantCode(128 + 13)
	leader.signal(syscall.SIGTERM)
	leader.wantCode(3)
	if got := r.stderr.String(); got != "" {
		t.Errorf("standard error %q, want none", got)
	}
}
