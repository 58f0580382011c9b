package counter_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func (w *world) sequence(client *zk.Client, block int) *counter.Sequence {
	w.t.Helper()
	s, err := counter.NewSequence(client, path, counter.SequenceConfig{Block: block})
	must(w.t, err)
	return s
}

func next(t *testing.T, s *counter.Sequence) int64 {
	t.Helper()
	id, err := s.Next(t.Context())
	must(t, err)
	return id
}

// collect takes n ids with each of several goroutines, and checks that those of each goroutine increase.
func collect(t *testing.T, s *counter.Sequence, goroutines, n int) []int64 {
	t.Helper()
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			last := int64(math.MinInt64)
			for range n {
				id, err := s.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if id <= last {
					t.Errorf("%d after %d", id, last)
				}
				last = id
				mu.Lock()
				all = append(all, id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

func wantUnique(t *testing.T, ids []int64) {
	t.Helper()
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d of %d ids were given out again", len(ids)-n, len(ids))
	}
}

// Promise: 14
func TestIdsOfOneProcessHaveNoGapsAndBeginBehindTheCounter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		must(t, w.counter(counter.Config{}).Set(t.Context(), 40))
		s := w.sequence(w.Client(t, timeout), 3)
		for want := int64(41); want < 140; want++ {
			if got := next(t, s); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
	})
}

// Promise: 14
func TestIdsOfSeveralProcessesAreUnique(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var all []int64
		var wg sync.WaitGroup
		for range 4 {
			s := w.sequence(w.Client(t, timeout), 10)
			wg.Go(func() {
				ids := collect(t, s, 4, 500)
				mu.Lock()
				all = append(all, ids...)
				mu.Unlock()
			})
		}
		wg.Wait()
		wantUnique(t, all)
	})
}

// Promise: 14
func TestIdsAreNeverRepeatedWhateverHitsAClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all []int64
		w.atEveryStep(func(string, int) {
			client := w.Client(t, timeout)
			s := w.sequence(client, 5)
			all = append(all, collect(t, s, 2, 20)...)
			synctest.Wait()
			w.Control(nil)
			_ = client.Close() // as after a crash: ids are lost
		})
		wantUnique(t, all)
	})
}

// Promise: 4, 14
func TestCloseRemovesTheReceiptOfAClaimAhead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.sequence(w.Client(t, timeout), 10)
		answer, proceed := context.WithCancel(t.Context())
		for range 5 {
			next(t, s)
		}
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				return zktest.ReplyUntil(answer)
			}
			return zktest.Pass
		})
		next(t, s) // claims ahead
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v while the claim is under way, want the context's error", err)
		}
		closed := make(chan error)
		go func() { closed <- s.Close(t.Context()) }()
		synctest.Wait()
		proceed()
		must(t, <-closed)
		w.Control(nil)
		if left := w.receipts(w.Session(t, timeout)); len(left) != 0 {
			t.Errorf("receipts %q are left", left)
		}
		if got := next(t, s); got != 7 {
			t.Errorf("got %d after Close, want 7", got)
		}
	})
}

// What a block costs is one write, and the next block is there before the one in use is at its end.
//
// Promise: 14
func TestBlocksAreClaimedAheadWithAWriteEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.sequence(w.Client(t, timeout), 100)
		writes := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				writes++
			}
			return zktest.Pass
		})
		next(t, s)
		for i := 1; i < 1000; i++ {
			synctest.Wait()
			time.Sleep(time.Second) // so that there is no reason for larger claims
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // so that Next fails if it would wait
			if _, err := s.Next(ctx); err != nil {
				t.Fatalf("id %d was not at hand: %v", i, err)
			}
		}
		w.Control(nil) // f does not run any more
		if writes < 10 || writes > 11 {
			t.Errorf("%d writes for 1,000 ids, want 10, and perhaps one ahead", writes)
		}
	})
}

// Promise: 14
func TestABusyProcessClaimsSeveralBlocksAtATime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.sequence(w.Client(t, timeout), 10)
		writes := 0
		w.Delay(time.Millisecond)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				writes++
			}
			return zktest.Pass
		})
		wantUnique(t, collect(t, s, 4, 10_000))
		w.Control(nil) // f does not run any more
		if writes > 40 {
			t.Errorf("%d writes for 40,000 ids", writes)
		}
	})
}

// Promise: 14
func TestCallerWithoutAServerLeavesAndOthersGetTheIds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.sequence(w.Client(t, timeout), 10)
		w.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		w.Heal()
		if got := next(t, s); got != 1 {
			t.Errorf("got %d, want 1", got)
		}
	})
}

// Promise: 14
func TestSequenceEndsWithAnErrorAndTheLastIds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		must(t, w.counter(counter.Config{}).Set(t.Context(), math.MaxInt64-25))
		s := w.sequence(w.Client(t, timeout), 10)
		for want := int64(math.MaxInt64 - 24); want > 0; want++ { // until it wraps
			if got := next(t, s); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, counter.ErrOverflow) {
			t.Errorf("got %v, want ErrOverflow", err)
		}
	})
}

// Promise: 14
func TestSequenceGivesOutTheLastIdsOfItsLayout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := counter.Config{Layout: counter.Int}
		must(t, w.counter(cfg).Set(t.Context(), math.MaxInt32-1500))
		s, err := counter.NewSequence(w.Client(t, timeout), path, counter.SequenceConfig{Layout: counter.Int})
		must(t, err)
		asked := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			asked = max(asked, r.Seq)
			return zktest.Pass
		})
		for want := int64(math.MaxInt32 - 1499); want <= math.MaxInt32; want++ {
			time.Sleep(time.Second) // or what the last claim has seen would do
			if got := next(t, s); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
		w.Control(nil)
		if asked > 60 {
			t.Errorf("%d requests for 1,500 ids, want none for each of the last ones", asked)
		}
		for range 2 {
			if _, err := s.Next(t.Context()); !errors.Is(err, counter.ErrOverflow) {
				t.Errorf("got %v, want ErrOverflow", err)
			}
		}
	})
}
