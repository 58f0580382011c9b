//go:build unix

package cli_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/peer"
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

// lockInTurn has two commands hold a lock one after the other, with an event while the first holds it and the second waits.
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
