//go:build unix

package lin_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// epochLength is short enough for every history to be judged in no time, and long enough for sessions to be lost and begun anew.
const epochLength = 15 * time.Second

func TestLocksKeepTheirPromisesUnderRandomFaults(t *testing.T) {
	tryFor(t, lockTrial{names: places}, "lin")
}

func TestQueuesKeepTheirPromisesUnderRandomFaults(t *testing.T) {
	tryFor(t, queueTrial{}, "lin-queue")
}

// tryFor runs epochs on an ensemble for as long as is wanted. The target of make runs them again.
func tryFor(t *testing.T, what trial, target string) {
	t.Helper()
	if testing.Short() {
		t.Skip("many processes for a minute: not in short mode")
	}
	seed := seedOf(t)
	a := newArena(t, seed)
	a.ensemble = newEnsemble(t)
	a.servers, a.trial = a.ensemble.ConnectString(), what
	end := time.Now().Add(lengthOf(t)) // servers of a machine with much to do take their time to start
	for n := 1; time.Now().Before(end) && !t.Failed(); n++ {
		length := min(epochLength, time.Until(end))
		t.Run(fmt.Sprintf("epoch=%d", n), func(t *testing.T) {
			if err := a.run(t, seed, length); err != nil {
				t.Errorf("with seed %d: %v\neverything is kept in %s; again with: make %s SEED=%d", seed, err, a.dir, target, seed)
			}
		})
		seed = rand.New(rand.NewPCG(seed, 1)).Uint64()
	}
}

// newArena returns an arena without servers. Its folder is removed when the test has passed.
func newArena(t *testing.T, seed uint64) arena {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("turnstile-lin-%d-", seed)) //nolint:usetesting // it outlives a test that has failed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return arena{exe: exe, dir: dir, patience: time.Minute, plan: newSchedule}
}

// seedOf is the seed of the first epoch: new every time, or the one that TURNSTILE_SEED repeats.
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

// lengthOf is how long the run lasts: a minute, or what TURNSTILE_LIN says.
func lengthOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TURNSTILE_LIN")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TURNSTILE_LIN: %v", err)
	}
	return d
}
