package peer_test

import (
	"regexp"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

func TestStandaloneServesAgainAfterKill(t *testing.T) {
	t.Parallel()
	zk := peer.ZooKeeper(t, peer.Options{})
	if got := zk.Leader(); got != 0 {
		t.Fatalf("got leader %d, want 0", got)
	}
	if got := zk.Version(); !regexp.MustCompile(`^3\.\d+\.\d+$`).MatchString(got) {
		t.Errorf("got version %q, want one of ZooKeeper 3", got)
	}
	pid := zk.PID(0)
	zk.Kill(0)
	if got := zk.PID(0); got != 0 {
		t.Fatalf("got pid %d after the kill, want 0", got)
	}
	if _, err := zk.Word(0, "ruok"); err == nil {
		t.Fatal("got an answer of a killed server")
	}
	zk.Restart(0)
	if got, err := zk.Word(0, "ruok"); err != nil || got != "imok" {
		t.Fatalf("got %q, %v after the restart, want imok", got, err)
	}
	if got := zk.PID(0); got == 0 || got == pid {
		t.Fatalf("got pid %d after the restart of %d, want a new one", got, pid)
	}
}

func TestEnsembleElectsAnotherLeaderWhenTheLeaderDies(t *testing.T) {
	t.Parallel()
	zk := peer.Ensemble(t, 3, peer.Options{})
	first := zk.AwaitLeader(-1)
	zk.Kill(first)
	if second := zk.AwaitLeader(first); second == first {
		t.Fatalf("got leader %d again, want another", second)
	}
	zk.Restart(first)
	paused := (first + 1) % 3
	zk.Pause(paused)
	if got, err := zk.Word(paused, "ruok"); err == nil {
		t.Fatalf("got %q from a paused server, want an error", got)
	}
	zk.Resume(paused)
	zk.AwaitLeader(-1)
}
