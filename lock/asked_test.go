package lock_test

// Which hold a revocation asks.

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 2
func TestRevocationIsHeardAfterAReadOfTheHoldersWasRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.mutex(lock.Config{}))
		letHoldsAge()
		refused := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == hold.Session().ID() && r.Op == zktest.OpGetData && r.Path == hold.Path() && refused < 3 {
				refused++
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		done := w.revoke(lock.RevokeOptions{Grace: time.Minute})
		select {
		case <-hold.Context().Done():
		case r := <-done:
			t.Fatalf("got %+v, and the holder has heard nothing", r)
		}
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) || refused != 3 {
			t.Errorf("got %v after %d refusals, want lock.ErrRevoked", cause, refused)
		}
		unlock(t, hold)
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want that the holder released it", r)
		}
	})
}

// An answer that comes after the hold has nothing to say about the next one, and the next one was not asked.
//
// Promise: 2
func TestRevocationAsksOneHoldAndNotTheNext(t *testing.T) {
	t.Parallel()
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

// Promise: 2
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

// Promise: 2
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

// The request is written while its contender stands deep in the line and does not watch its nodes yet. It reads them
// with the watch, which it sets when its turn comes near.
//
// Promise: 2
func TestRequestFromBeforeTheWatchIsHeardByTheHolder(t *testing.T) {
	type take = func(context.Context) (*lock.Hold, error)
	t.Parallel()
	for name, kind := range map[string]func(w *world) take{
		"mutex":     func(w *world) take { return w.mutex(lock.Config{}).Lock },
		"strict":    func(w *world) take { return w.mutex(strict).Lock },
		"two nodes": func(w *world) take { return w.mutex(lock.Config{Layout: lock.Both}).Lock },
		"writer":    func(w *world) take { return w.rw(lock.RWConfig{}).Lock },
		"set":       func(w *world) take { return w.set(path, pathA).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for i := 0; ; i++ {
					first := locked(t, kind(w))
					leaving, leave := context.WithCancel(t.Context())
					second := waits(leaving, kind(w))
					before := w.nodes(path)
					third := waits(t.Context(), kind(w))
					nodes := slices.DeleteFunc(w.nodes(path), func(n string) bool { return slices.Contains(before, n) })
					if i == len(nodes) {
						leave()
						unlock(t, first)
						unlock(t, got(t, third))
						return
					}
					_, err := w.Session(t, 20*time.Second).Set(t.Context(), path+"/"+nodes[i], []byte(curatorsWord), -1)
					if err != nil {
						t.Fatal(err)
					}
					leave()
					if r := <-second; r.err == nil {
						t.Fatal("the second did not wait")
					}
					synctest.Wait()
					unlock(t, first)
					hold := got(t, third)
					letHoldsAge()
					if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
						t.Errorf("node %d of %d: got %v, want lock.ErrRevoked", i, len(nodes), cause)
					}
					unlock(t, hold)
				}
			})
		})
	}
}
