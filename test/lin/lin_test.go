//go:build unix

package lin_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// epochLength is short enough for a quick judgement of each history, and long enough to lose and renew sessions.
const epochLength = 15 * time.Second

// TestPromisesAreKeptUnderRandomFaults runs epochs of each trial on an ensemble, for as long as TURNSTILE_LIN says. By
// default each trial has a short one, which is still longer than two sessions. A failure names the target of make that
// repeats it.
//
// Promise: 1, 3, 4, 7, 13, 14, 15, 20
func TestPromisesAreKeptUnderRandomFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many processes for long")
	}
	a := newArena(t, seedOf(t))
	a.ensemble = newEnsemble(t)
	a.servers = a.ensemble.ConnectString()
	for _, c := range []struct {
		name  string
		trial trial
	}{
		{"locks", lockTrial{names: places}},
		{"queue", queueTrial{}},
		{"cache", cacheTrial{}},
		{"counter", counterTrial{}},
		{"barrier", barrierTrial{}},
		{"member", memberTrial{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := a
			a.trial, a.tally, a.dir = c.trial, newTally(), filepath.Join(a.dir, c.name)
			n := a.tryFor(t, lengthOf(t), "lin-"+c.name)
			t.Logf("faults that have hit: %v", a.tally)
			if missing := a.tally.missing(); n > enoughEpochs && len(missing) > 0 && !t.Failed() {
				t.Errorf("these faults have hit nothing in %d epochs: %q", n, missing)
			}
		})
	}
}

// A server that is restarted with other limits grants less or more at the next handshake than at the last, whose reply
// may be lost.
//
// Promise: 2
func TestLocksKeepTheirPromisesWhileAServerRestartsWithOtherLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many processes for long")
	}
	a := newArena(t, seedOf(t))
	limits := func(limit time.Duration) zktest.Option { return zktest.SessionTimeouts(timeout/4, limit) }
	srv := zktest.Run(t, zktest.Durable(), zktest.Tick(tick), limits(timeout/2))
	a.servers, a.trial = srv.Addr(), lockTrial{names: places}
	a.restart = func(limit time.Duration) { srv.Restart(limits(limit)) }
	a.tryFor(t, lengthOf(t), "lin-locks")
}

// tryFor runs epochs for so long and returns how many.
func (a arena) tryFor(t *testing.T, total time.Duration, target string) int {
	t.Helper()
	seed := seedOf(t)
	end := time.Now().Add(total) // servers take long to start on a busy machine
	n := 1
	for ; time.Now().Before(end) && !t.Failed(); n++ {
		length := min(epochLength, time.Until(end))
		t.Run(fmt.Sprintf("epoch=%d", n), func(t *testing.T) {
			if err := a.run(t, seed, length); err != nil {
				t.Errorf("with seed %d: %v\nthe history is in %s; repeat with: make %s SEED=%d", seed, err, a.dir,
					target, seed)
			}
		})
		seed = rand.New(rand.NewPCG(seed, 1)).Uint64()
	}
	return n - 1
}

// newArena returns an arena without servers. It removes the arena's directory if the test passes.
func newArena(t *testing.T, seed uint64) arena {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("turnstile-lin-%d-", seed)) //nolint:usetesting // kept after a failure
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return arena{exe: exe, dir: dir, patience: 3 * time.Minute, plan: newSchedule, tally: newTally()}
}

// seedOf returns the seed of the first epoch: that of TURNSTILE_SEED, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("TURNSTILE_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("TURNSTILE_SEED: %v", err)
	}
	return seed
}

// lengthOf returns how long a trial lasts.
func lengthOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TURNSTILE_LIN")
	if text == "" {
		return epochLength * 3 / 10
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TURNSTILE_LIN: %v", err)
	}
	return d
}
