package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Whenever the session of a producer and consumer ends, and whether or not what it asked last was done: what was put
// is delivered, once under its id, and what was done is not delivered again.
//
// Promise: 7
func TestSessionEndedAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{"before": zktest.Refuse, "after": zktest.DropReply}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, 20*time.Second)
				var ending sync.WaitGroup
				defer ending.Wait()
				steps := 0
				for step := range soak.Steps(name, faults) {
					reached := false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						if fault == zktest.Refuse {
							ending.Go(func() { w.ExpireSession(r.Session) })
							return fault
						}
						// The server answers first, and then ends the session: its client hears neither.
						ending.Go(func() {
							pass(time.Millisecond)
							w.ExpireSession(r.Session)
						})
						return fault
					})
					path := fmt.Sprintf("%s%d", root, step)
					putsAndTakes(t, client, path)
					w.Control(nil)
					if !reached {
						break
					}
					if t.Failed() {
						t.Fatalf("the session ended at step %d", step)
					}
					steps = step
				}
				if steps < 30 {
					t.Errorf("the last step at which the session ended is %d", steps)
				}
			})
		})
	}
}

func putsAndTakes(t *testing.T, client *zk.Client, path string) {
	t.Helper()
	q, err := queue.New(client, path, queue.Config{}.WithSegment(3))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		more, err := q.PutBatch(t.Context(), messages("x", "y", "z", "u"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, more...)
	}
	known := make(map[string]bool)
	for _, id := range ids {
		known[id] = true
	}
	finished := make(map[string]bool)
	unclear := make(map[string]bool) // Done or Retry has failed
	retried := false
	for {
		item, err := q.TryTake(t.Context())
		if errors.Is(err, queue.ErrEmpty) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !known[item.ID()] || finished[item.ID()] {
			t.Fatalf("got %q %s, attempt %d: known %v, finished %v",
				item.Body(), item.ID(), item.Attempt(), known[item.ID()], finished[item.ID()])
		}
		if len(finished) == 3 && !retried {
			retried = true
			err = item.Fail(t.Context(), &queue.RetryError{})
		} else if err = item.Done(t.Context()); err == nil {
			finished[item.ID()] = true
			delete(unclear, item.ID())
		}
		if err != nil && !errors.Is(err, queue.ErrClaimLost) {
			t.Fatal(err)
		}
		if err != nil {
			unclear[item.ID()] = true
		}
	}
	for _, id := range ids {
		if !finished[id] && !unclear[id] {
			t.Errorf("item %s was put and is not there", id)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
