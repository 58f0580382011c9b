package lock_test

// Which hold a revocation asks.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// An answer that comes after the hold has nothing to say about the next one, and the next one was not asked.
func TestRevocationAsksOneHoldAndNotTheNext(t *testing.T) {
	for name, answer := range map[string]bool{"who gives in": true, "who refuses": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				asked, finish := make(chan context.Context, 2), make(chan struct{})
				m := w.mutex(lock.Config{OnRevoke: func(ctx context.Context, _ lock.Revocation) bool {
					asked <- ctx
					<-finish
					return answer
				}})
				hold := acquire(t, m)
				letHoldsAge()
				next := lockInBackground(t.Context(), m)
				done := w.revoke(lock.RevokeOptions{Grace: time.Minute})
				ctx := <-asked
				if ctx.Err() != nil {
					t.Fatalf("while the hold lasts: got %v, want a context that lasts", context.Cause(ctx))
				}
				unlock(t, hold)
				if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrUnlocked) {
					t.Errorf("OnRevoke's context after the hold: got cause %v, want lock.ErrUnlocked", cause)
				}
				after := got(t, next)
				if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
					t.Errorf("got %+v, want the holder's node gone with its hold", r)
				}
				close(finish)
				letHoldsAge()
				if err := after.Context().Err(); err != nil || len(asked) > 0 {
					t.Errorf("the next hold: got %v, asked %d times, want one that was not asked", err, len(asked))
				}
				unlock(t, after)
			})
		})
	}
}

func TestHoldThatRefusedARevocationIsTheLastOfItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refuse := func(context.Context, lock.Revocation) bool { return false }
		m := w.mutex(lock.Config{Retain: time.Hour, OnRevoke: refuse})
		hold := acquire(t, m)
		letHoldsAge()
		done := w.revoke(lock.RevokeOptions{Grace: time.Minute})
		letHoldsAge()
		unlock(t, hold)
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want a lock that is not retained", r)
		}
		rw, err := lock.NewRWMutex(w.Client(t, 20*time.Second), path, lock.RWConfig{OnRevoke: refuse})
		if err != nil {
			t.Fatal(err)
		}
		reader := locked(t, rw.RLock)
		letHoldsAge()
		done = w.revoke(lock.RevokeOptions{Grace: time.Minute})
		letHoldsAge()
		later := locked(t, rw.RLock)
		if later.Path() == reader.Path() {
			t.Errorf("a later reader joined the node of one that was asked: %s", later.Path())
		}
		unlock(t, reader)
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want the reader that was asked gone", r)
		}
		unlock(t, later)
	})
}

func TestRetainedLockThatIsNotHeldIsReleasedWithoutAsking(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asked := 0
		m := w.mutex(lock.Config{Retain: time.Hour, OnRevoke: func(context.Context, lock.Revocation) bool {
			asked++
			return false
		}})
		unlock(t, acquire(t, m))
		letHoldsAge()
		r := <-w.revoke(lock.RevokeOptions{Grace: time.Minute})
		synctest.Wait()
		if r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased || asked > 0 {
			t.Errorf("got %+v, asked %d times, want a lock that was released, and nobody asked", r, asked)
		}
		w.empty(path)
	})
}
