//go:build unix

package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// longSessions lets sessions outlast what a loaded machine takes for an election.
var longSessions = peer.Options{Keys: map[string]string{"maxSessionTimeout": "60000"}}

func TestLockOnApacheZooKeeper(t *testing.T) {
	t.Parallel()
	connect := peer.ZooKeeper(t, longSessions).ConnectString()
	lockInTurn(t, connect, func() {})
}

func TestHoldOutlivesTheEnsemblesLeader(t *testing.T) {
	t.Parallel()
	ensemble := peer.Ensemble(t, 3, longSessions)
	lockInTurn(t, ensemble.ConnectString(), func() {
		leader := ensemble.Leader()
		ensemble.Kill(leader)
		ensemble.AwaitLeader(leader)
	})
}

// Promise: 1
func TestEveryKindOfLockOnApacheZooKeeper(t *testing.T) {
	t.Parallel()
	connect := peer.ZooKeeper(t, longSessions).ConnectString()
	flags := []string{"--connect", connect, "--connect-timeout", "1m", "--session-timeout", "40s"}
	run := func(code int, command string, args ...string) string {
		t.Helper()
		r := start(t, append(append([]string{command}, flags...), args...)...)
		r.wantCode(code)
		return r.rest()
	}
	for _, c := range []struct {
		holder  []string
		comer   []string
		code    int
		ofComer string
	}{
		{[]string{"lock", "--shared", "/rw"}, []string{"lock", "--shared", "-n", "/rw", "--", "echo", "in"}, 0, "in\n"},
		{
			[]string{"lock", "--shared", "--layout", "both", "/rw"},
			[]string{"lock", "-n", "/rw", "--", "echo", "in"},
			1, "",
		},
		{[]string{"lock", "/rw"}, []string{"lock", "--shared", "-n", "/rw", "--", "echo", "in"}, 1, ""},
		{[]string{"lock", "/a", "/b"}, []string{"lock", "-n", "/b", "/c", "--", "echo", "in"}, 1, ""},
		{
			[]string{"lock", "--permits", "2/3", "/p"},
			[]string{"lock", "-n", "--permits", "1/3", "/p", "--", "echo", "in"},
			0, "in\n",
		},
		{
			[]string{"lock", "--permits", "2/3", "/p"},
			[]string{"lock", "-n", "--permits", "2/3", "/p", "--", "echo", "in"},
			1, "",
		},
		{[]string{"lock", "--delay", "1h", "/d"}, []string{"lock", "-n", "/d", "--", "echo", "in"}, 1, ""},
		{[]string{"elect", "/e", "--id", "one"}, []string{"elect", "-n", "/e", "--", "echo", "in"}, 1, ""},
	} {
		holder := start(t, append(slices.Concat(c.holder[:1], flags, c.holder[1:]), "--", "puppet")...)
		holder.ready()
		if got := run(c.code, c.comer[0], c.comer[1:]...); got != c.ofComer {
			t.Errorf("%v beside %v: output %q, want %q", c.comer, c.holder, got, c.ofComer)
		}
		holder.signal(syscall.SIGTERM)
		holder.wantCode(3)
	}
	run(0, "create", "--parents", "/part/a/x")
	run(0, "create", "--auth", "digest:ann:secret", "--acl", "creator", "/part/b")
	run(0, "create", "--auth", "digest:ann:secret", "/part/b/hidden")
	if got, want := run(77, "tree", "/part"), "/part\n  a\n    x\n  b\n"; got != want {
		t.Errorf("tree with a node that may not be listed prints %q, want %q", got, want)
	}
	holder := start(t, append(append([]string{"lock"}, flags...), "/r", "--", "puppet")...)
	holder.ready()
	if got := run(0, "revoke", "--reason", "maintenance", "/r"); !strings.Contains(got, "has released it") {
		t.Errorf("revoke prints %q", got)
	}
	holder.wantLine("got 15")
	holder.wantCode(75)
	if got := run(0, "revoke", "--records", "/r"); !strings.Contains(got, "maintenance") {
		t.Errorf("the record is %q", got)
	}
}

// lockInTurn has two commands hold a lock one after the other, with an event while the first holds it and the second
// waits.
func lockInTurn(t *testing.T, connect string, event func()) {
	t.Helper()
	flags := []string{"--connect", connect, "--connect-timeout", "1m", "--session-timeout", "40s"}
	locking := func(more ...string) []string { return append(append([]string{"lock"}, flags...), more...) }
	first := start(t, locking("--label", "one", "/jobs/x", "--", "puppet")...)
	first.ready()
	second := start(t, locking("--label", "two", "/jobs/x", "--", "puppet")...)
	for !strings.Contains(who(t, flags), "(two)") {
		continue // who asks the server each time
	}
	event()
	line := strings.Split(strings.TrimSpace(who(t, flags)), "\n")
	if len(line) != 3 || !strings.HasPrefix(line[1], "holder") || !strings.Contains(line[1], "(one)") ||
		!strings.HasPrefix(line[2], "waiter 1") || !strings.Contains(line[2], "(two)") {
		t.Errorf("who shows %q, want one that holds and two that waits", line)
	}
	start(t, locking("-n", "/jobs/x", "--", "true")...).wantCode(1)
	first.signal(syscall.SIGTERM)
	first.wantLine("got 15")
	first.wantCode(3)
	second.ready()
	second.signal(syscall.SIGTERM)
	second.wantCode(3)
	start(t, locking("-n", "/jobs/x", "--", "true")...).wantCode(0)
}

// who returns what turnstile who says of the lock.
func who(t *testing.T, flags []string) string {
	t.Helper()
	r := start(t, append(append([]string{"who"}, flags...), "/jobs/x")...)
	r.wantCode(0)
	return r.rest()
}

// The servers of an ensemble tell of their own connections, and any of them of all ephemeral nodes.
func TestSessionsOfAnEnsemble(t *testing.T) {
	t.Parallel()
	connect := peer.Ensemble(t, 3, longSessions).ConnectString()
	flags := []string{"--connect", connect, "--connect-timeout", "1m", "--session-timeout", "40s"}
	for range 5 { // most likely not all on one server
		start(t, append(append([]string{"lock"}, flags...), "--shared", "/rw", "--", "puppet")...).ready()
	}
	r := start(t, append(append([]string{"sessions"}, flags...), "--json", "--of", "/rw")...)
	r.wantCode(0)
	list := strings.Split(strings.TrimSpace(r.rest()), "\n")
	if len(list) != 5 || r.stderr.String() != "" {
		t.Errorf("%d sessions, %s", len(list), r.stderr.String())
	}
	for _, line := range list {
		var s struct {
			Server, Address string
			Ephemerals      int
			Timeout         int `json:"session_timeout_ms"`
			Holds           []string
			Owner           struct{ PID int }
			Answer          string `json:"last_answer"`
			Since           string `json:"connected_since"`
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(connect, s.Server) || s.Server == "" || !strings.HasPrefix(s.Address, "127.0.0.1:") ||
			s.Ephemerals != 1 || s.Timeout != 40_000 || !slices.Equal(s.Holds, []string{"/rw"}) || s.Owner.PID == 0 ||
			s.Since == "" || s.Answer != "" { // its lresp counts from when the machine started
			t.Error(line)
		}
	}
}
