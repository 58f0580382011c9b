//go:build unix

package lin_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// epochLength is short enough for a quick judgement of each history, and long enough to lose and renew sessions.
const epochLength = 15 * time.Second

func TestLocksKeepTheirPromisesUnderRandomFaults(t *testing.T) {
	tryFor(t, lockTrial{names: places}, "lin-locks")
}

func TestQueuesKeepTheirPromisesUnderRandomFaults(t *testing.T) {
	tryFor(t, queueTrial{}, "lin-queue")
}

func TestCountersKeepTheirPromisesUnderRandomFaults(t *testing.T) {
	tryFor(t, counterTrial{}, "lin-counter")
}

// tryFor runs epochs on an ensemble for the configured time. A failure names the target of make that repeats them.
func tryFor(t *testing.T, what trial, target string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs many processes for long")
	}
	seed := seedOf(t)
	a := newArena(t, seed)
	a.ensemble = newEnsemble(t)
	a.servers, a.trial = a.ensemble.ConnectString(), what
	n := a.tryFor(t, seed, lengthOf(t), target)
	t.Logf("faults that have hit: %v", a.tally)
	if missing := a.tally.missing(); n > enoughEpochs && len(missing) > 0 && !t.Failed() {
		t.Errorf("these faults have hit nothing in %d epochs: %q", n, missing)
	}
}

// A server that is restarted with other limits grants less or more at the next handshake than at the last, whose reply
// may be lost.
func TestLocksKeepTheirPromisesWhileAServerRestartsWithOtherLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many processes for long")
	}
	seed := seedOf(t)
	a := newArena(t, seed)
	limits := func(limit time.Duration) zktest.Option { return zktest.SessionTimeouts(timeout/4, limit) }
	srv := zktest.Run(t, zktest.Durable(), zktest.Tick(tick), limits(timeout/2))
	a.servers, a.trial = srv.Addr(), lockTrial{names: places}
	a.restart = func(limit time.Duration) { srv.Restart(limits(limit)) }
	a.tryFor(t, seed, lengthOf(t)/2, "lin-locks")
}

// tryFor runs epochs for so long and returns how many.
func (a arena) tryFor(t *testing.T, seed uint64, d time.Duration, target string) int {
	t.Helper()
	end := time.Now().Add(d) // servers take long to start on a busy machine
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
	return arena{exe: exe, dir: dir, patience: time.Minute, plan: newSchedule, tally: newTally()}
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

// lengthOf returns how long the run lasts: as TURNSTILE_LIN says, or two epochs, which is what each change has to pass.
func lengthOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TURNSTILE_LIN")
	if text == "" {
		return 2 * epochLength
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TURNSTILE_LIN: %v", err)
	}
	return d
}
