package lock_test

// Goroutines that leave a group of which they are the last, or come to it then.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The bound of the hand-off is reached, the look at the line is still under way, and nobody here wants the lock any
// more.
func TestLockIsFreeWhenTheLastWaiterOfAParkedGroupLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: 2, Time: time.Hour}})
		hold := acquire(t, m)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var waiting []<-chan result
		for range 4 {
			waiting = append(waiting, waits(ctx, m.Lock))
		}
		answer, arrives := context.WithCancel(t.Context())
		defer arrives()
		id := hold.Session().ID()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && r.Session == id {
				return zktest.ReplyUntil(answer)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		synctest.Wait()
		for len(waiting) > 0 && len(waiting[0]) > 0 {
			unlock(t, got(t, waiting[0]))
			synctest.Wait()
			waiting = waiting[1:]
		}
		if len(waiting) == 0 {
			t.Fatal("no waiter was parked")
		}
		leave()
		for _, c := range waiting {
			if r := <-c; !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", r.err)
			}
		}
		other, err := w.mutex(lock.Config{}).Lock(minute(t))
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, other)
	})
}

// Its contender is given up, and that takes a moment. Who comes meanwhile has another one.
func TestCallerThatComesWhileTheLastWaiterLeavesIsNotTurnedAway(t *testing.T) {
	t.Parallel()
	for name, joined := range map[string]bool{"in line": true, "about to join it": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				other, m := acquire(t, w.mutex(lock.Config{})), w.mutex(lock.Config{})
				for range 100 { // whether it comes in that moment is the scheduler's choice
					slow, arrives := context.WithCancel(t.Context())
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Op == zktest.OpCreate && !joined {
							return zktest.Until(slow)
						}
						return zktest.Pass
					})
					leaves, leave := context.WithCancel(t.Context())
					stays, end := context.WithCancel(t.Context())
					turned := make(chan error, 1)
					go func() {
						if _, err := m.Lock(leaves); !errors.Is(err, context.Canceled) {
							t.Errorf("got %v, want context.Canceled", err)
						}
						_, err := m.Lock(stays)
						turned <- err
					}()
					synctest.Wait()
					leave()
					synctest.Wait()
					arrives()
					synctest.Wait()
					if len(turned) > 0 {
						t.Fatalf("the next caller got %v, and its context lasts", <-turned)
					}
					end()
					<-turned
				}
				unlock(t, other)
			})
		})
	}
}
