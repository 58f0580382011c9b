//go:build unix

package cli_test

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// sessionTimeout is long enough for a loaded machine to kill a process within a quarter of it, also if that has as long
// as grace to end.
const sessionTimeout, grace = "40s", "5s"

// Promise: 2
func TestGroupIsGoneBeforeTheSessionCanEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"term", "kill"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			r := start(t, "lock", "--connect", srv.Addr(), "--session-timeout", sessionTimeout, "--on-lost", mode,
				"--grace", grace, "/x", "--", "puppet", "parent")
			rest := wantGroupGoneInTime(t, srv, "/x", r)
			r.wantStderr("no answer from a quorum")
			if got, want := strings.Count(rest, "got 15\n"), map[string]int{"term": 2, "kill": 0}[mode]; got != want {
				t.Errorf("%d processes of the group got SIGTERM, want %d", got, want)
			}
		})
	}
}

// Promise: 2
func TestSilentServerEndsTheCommand(t *testing.T) {
	t.Parallel()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--in-memory")
	addr := strings.Fields(server.line())[1]
	r := start(t, "lock", "--connect", addr, "--session-timeout", sessionTimeout, "--grace", grace, "/x", "--",
		"puppet")
	r.ready()
	server.pause()
	defer server.signal(syscall.SIGCONT)
	r.wantLine("got 15")
	r.wantCode(75)
}

func TestStandingHoldEndsWhenItIsLost(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := startWith(t, func(cmd *exec.Cmd) {
		if _, err := cmd.StdinPipe(); err != nil { // stays open
			t.Fatal(err)
		}
	}, "lock", "--connect", srv.Addr(), "/x")
	r.line()
	expire(t, srv, sess, "/x")
	r.wantCode(75)
	r.wantStderr("/x: lock lost: the session expired")
}

// Promise: 2
func TestCommandEndsWhenTheSessionHasExpired(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet")
	r.ready()
	expire(t, srv, sess, "/x")
	r.wantLine("got 15")
	r.wantCode(75)
	r.wantStderr("/x: lock lost: the session expired")
}

// Promise: 2
func TestCommandEndsWhenItsNodeIsDeleted(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "lock", "-q", "--connect", srv.Addr(), "/x", "--", "puppet")
	r.ready()
	_, node := sessionOf(t, sess, "/x")
	if err := sess.Delete(t.Context(), node, -1); err != nil {
		t.Fatal(err)
	}
	r.wantLine("got 15")
	r.wantCode(75)
	if got := r.stderr.String(); got != "" {
		t.Errorf("--quiet says %q", got)
	}
}

func TestIgnoredLossLeavesTheCommandAlone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	errors, r := startWithErrors(t, "lock", "--connect", srv.Addr(), "--on-lost", "ignore", "/x", "--", "puppet")
	r.ready()
	expire(t, srv, sess, "/x")
	if line, err := firstLine(errors); err != nil || !strings.Contains(line, "lock lost, the command runs on") {
		t.Fatalf("standard error: %q, %v", line, err)
	}
	r.signal(syscall.SIGHUP)
	r.wantLine("got 1")
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(3)
}

func TestBlinkOfTheConnectionIsNoLoss(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet")
	r.ready()
	id, _ := sessionOf(t, sess, "/x")
	before := srv.Traffic().Connections
	srv.Drop(id)
	for srv.Traffic().Connections == before {
		wantContenders(t, sess, "/x", 1) // lets others run
	}
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(3)
}

func TestBrokenPipesAreNotTheCommands(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	errors, r := startWithErrors(t, "lock", "-v", "--connect", srv.Addr(), "/x", "--", "puppet")
	r.ready()
	errors.Close() // what -v says from now on cannot be written
	before := srv.Traffic().Connections
	srv.Drop()
	for srv.Traffic().Connections == before {
		continue // it comes back, and says so
	}
	r.signal(syscall.SIGPIPE)
	r.signal(syscall.SIGHUP)
	r.wantLine("got 1")
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(3)
}

func TestCommandGetsSIGTERMWhenTurnstileIsKilled(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet")
	r.ready()
	r.signal(syscall.SIGKILL)
	r.wantLine("got 15")
	if got := r.rest(); got != "" {
		t.Errorf("the command went on: %q", got)
	}
	if got := countContenders(t, sess, "/x"); got != 1 {
		t.Error("the lock was free before the command was dead")
	}
}

func TestWaiterJoinsAgainWhenItsSessionEnds(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	holder := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet")
	holder.ready()
	first, _ := sessionOf(t, sess, "/x")
	waiter := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "echo", "mine")
	wantContenders(t, sess, "/x", 2)
	for _, id := range srv.Connected() {
		if id != first && id != sess.ID() && !srv.ExpireSession(id) {
			t.Fatal("the session is not there")
		}
	}
	wantContenders(t, sess, "/x", 2)
	holder.signal(syscall.SIGTERM)
	waiter.wantLine("mine")
	waiter.wantCode(0)
}

func TestWaiterGivesUpWhenTheServerHasGone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	holder := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet")
	holder.ready()
	first, _ := sessionOf(t, sess, "/x")
	waiter := start(t, "lock", "--connect", srv.Addr(), "--session-timeout", "8s", "--connect-timeout", "8s", "/x",
		"--", "echo", "no")
	wantContenders(t, sess, "/x", 2)
	for _, id := range srv.Connected() {
		if id != first && id != sess.ID() {
			srv.Cut()
		}
	}
	waiter.wantCode(69)
	waiter.wantStderr("have the servers a quorum (turnstile doctor tells)")
	waiter.wantStderr("it closed the connection") // a link that is cut still takes connections
	srv.Heal()
}

func TestCommandsGiveUpWhenTheServerGoesRightAfterConnecting(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"lock", "/x", "--", "echo", "no"},
		{"lock", "-n", "/x", "--", "echo", "no"},
		{"lock", "-w", "60", "/x", "--", "echo", "no"},
		{"lock", "--permits", "1/2", "/x", "--", "echo", "no"},
		{"lock", "--pid", strconv.Itoa(startCat(t).Process.Pid), "/x"},
		{"elect", "/x", "--", "echo", "no"},
		{"elect", "-n", "/x", "--", "echo", "no"},
		{"elect", "-w", "60", "/x", "--", "echo", "no"},
		{"revoke", "--reason", "test", "/x"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			wantNoServer(t, newServer(t), "", args...)
		})
	}
}

func TestRevokeGivesUpWhenTheServerGoes(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	m, err := lock.NewMutex(srv.Client(t, time.Minute), "/x", lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNoServer(t, srv, zktest.OpSetData, "revoke", "--reason", "test", "/x")
}

// wantNoServer lets the server go for good at the first request, or the first of some kind, and checks that turnstile
// says so.
func wantNoServer(t *testing.T, srv *zktest.Server, at zktest.Op, args ...string) {
	t.Helper()
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Seq == 0 || at != "" && r.Op != at {
			return zktest.Pass
		}
		srv.Cut()
		return zktest.CutBefore
	})
	r := start(t, append(args[:1:1], append([]string{
		"--connect", srv.Addr(), "--session-timeout", "8s", "--connect-timeout", "8s",
	}, args[1:]...)...)...)
	if got := r.rest(); got != "" {
		t.Errorf("it printed %q", got)
	}
	r.wantCode(69)
}
