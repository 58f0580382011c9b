package lock_test

// Revoke follows a holder that changes its kind.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// change is an Upgrade or a Downgrade of a hold of m.
type change struct {
	take func(context.Context) (*lock.Hold, error)
	to   func(context.Context, *lock.Hold) error
}

func changes(m *lock.RWMutex) map[string]change {
	return map[string]change{"upgrade": {m.RLock, m.Upgrade}, "downgrade": {m.Lock, m.Downgrade}}
}

// Promise: 2
func TestRevokeFollowsAHolderThatChangesItsKind(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
			for name := range changes(nil) {
				t.Run(fmt.Sprint(layout, " ", name, " force ", force), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						asked := 0
						m := w.rw(lock.RWConfig{Layout: layout, OnRevoke: func(context.Context, lock.Revocation) bool {
							asked++
							return false
						}})
						c := changes(m)[name]
						hold := locked(t, c.take)
						letHoldsAge()
						const grace = 10 * time.Second
						done := w.revoke(lock.RevokeOptions{Grace: grace, Force: force})
						time.Sleep(grace / 2)
						if err := c.to(t.Context(), hold); err != nil {
							t.Fatal(err)
						}
						letHoldsAge()
						if len(done) > 0 {
							t.Fatalf("while the hold goes on: got %+v", <-done)
						}
						r := <-done
						synctest.Wait()
						switch {
						case asked != 1:
							t.Errorf("the holder was asked %d times by one request", asked)
						case force && (r.err != nil || r.list[0].Ending != lock.EndingForced):
							t.Errorf("got %+v, want a holder that was forced", r)
						case force && !errors.Is(hold.Unlock(), lock.ErrDeleted):
							t.Errorf("after force: got %v, want lock.ErrDeleted", hold.Unlock())
						case !force && (!errors.Is(r.err, lock.ErrKept) || r.list[0].Ending != lock.EndingKept):
							t.Errorf("got %+v, want a holder that has kept the lock", r)
						case !force:
							unlock(t, hold)
						}
						w.empty(path)
					})
				})
			}
		}
	}
}

// The holder does not watch its first node yet when the request is written there.
//
// Promise: 2
func TestHolderHearsOfARequestThatItsFormerNodeGot(t *testing.T) {
	t.Parallel()
	for name := range changes(nil) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, 20*time.Second)
				_ = session(t, client)
				m := w.rw(lock.RWConfig{})
				c := changes(m)[name]
				hold := locked(t, c.take)
				done := make(chan revoking, 1)
				go func() {
					list, err := lock.Revoke(t.Context(), client, path, lock.RevokeOptions{})
					done <- revoking{list, err}
				}()
				synctest.Wait()
				if line := w.line(); line[0].Revoked == nil {
					t.Fatal("the request was not written")
				}
				if err := c.to(t.Context(), hold); err != nil {
					t.Fatal(err)
				}
				letHoldsAge()
				if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
					t.Errorf("got %v, want lock.ErrRevoked", cause)
				}
				unlock(t, hold)
				if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
					t.Errorf("got %+v, want a holder that has released the lock", r)
				}
			})
		})
	}
}

// An upgrade that goes on has two nodes: its writer's, and its reader's, whose removal is on the way.
//
// Promise: 2
func TestForceTakesBothNodesOfAnUpgradeThatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{OnRevoke: func(context.Context, lock.Revocation) bool { return false }})
		hold := locked(t, m.RLock)
		letHoldsAge()
		own := hold.Session().ID()
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == own && r.Op == zktest.OpDelete {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		upgraded := make(chan error, 1)
		go func() { upgraded <- m.Upgrade(t.Context(), hold) }()
		letHoldsAge()
		if nodes := w.nodes(path); len(nodes) != 2 {
			t.Fatalf("got %q, want two nodes", nodes)
		}
		r := <-w.revoke(lock.RevokeOptions{Force: true, Grace: time.Second})
		if r.err != nil || r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v, want a holder that was forced", r)
		}
		w.empty(path)
		proceed()
		if err := <-upgraded; err != nil && !errors.Is(err, lock.ErrDeleted) {
			t.Error(err)
		}
		synctest.Wait()
		if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", err)
		}
		w.empty(path)
	})
}

// The next contender of the same session has the same number, because the path was made anew.
//
// Promise: 2
func TestNextHoldOfAPathThatWasMadeAnewIsNotTakenForTheOneThatWasAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		number := hold.Path()[len(hold.Path())-10:]
		letHoldsAge()
		own := hold.Session().ID()
		done := w.revoke(lock.RevokeOptions{Force: true})
		<-hold.Context().Done()
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session != own {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := hold.Session().Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		next := locked(t, m.Lock)
		if got := next.Path()[len(next.Path())-10:]; got != number || next.Session().ID() != own {
			t.Fatalf("got number %s, want %s again", got, number)
		}
		proceed()
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want a holder that has released the lock", r)
		}
		unlock(t, next)
	})
}

// Of several holders, one that leaves while Revoke waits for another is not told as one that has kept the lock.
func TestHolderThatLeavesWhileAnotherStaysHasReleasedTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var holds []*lock.Hold
		for range 2 {
			holds = append(holds, locked(t, w.rw(lock.RWConfig{}).RLock))
		}
		letHoldsAge()
		done := w.revoke(lock.RevokeOptions{Grace: time.Minute})
		<-holds[1].Context().Done()
		unlock(t, holds[1])
		r := <-done
		var endings []lock.Ending
		for _, h := range r.list {
			endings = append(endings, h.Ending)
		}
		if want := []lock.Ending{lock.EndingKept, lock.EndingReleased}; !errors.Is(r.err, lock.ErrKept) ||
			!slices.Equal(endings, want) {
			t.Errorf("got %v, %v, want %v and lock.ErrKept", endings, r.err, want)
		}
		unlock(t, holds[0])
	})
}

// A lost reply or a new session while Revoke looks for the new node does not make it lose the holder.
//
// Promise: 2
func TestRevokeFollowsThroughLostReplies(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore, zktest.Answer(zk.ThrottledOp)} {
		for nth := range 8 {
			t.Run("", func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					m := w.rw(lock.RWConfig{OnRevoke: func(context.Context, lock.Revocation) bool { return false }})
					hold := locked(t, m.Lock)
					letHoldsAge()
					own, seen := hold.Session().ID(), 0
					done := w.revoke(lock.RevokeOptions{Grace: 20 * time.Second, Force: true})
					letHoldsAge()
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Session == own {
							return zktest.Pass
						}
						seen++
						if seen-1 == nth {
							return fault
						}
						return zktest.Pass
					})
					if err := m.Downgrade(t.Context(), hold); err != nil {
						t.Fatal(err)
					}
					r := <-done
					w.Control(nil)
					if r.err != nil || r.list[0].Ending != lock.EndingForced {
						t.Errorf("request %d: got %+v, want a holder that was forced", nth, r)
					}
					w.empty(path)
				})
			})
		}
	}
}

// The session of Revoke ends, and the server of the next one does not show the holder's node before it has caught up.
func TestHolderThatAServerDoesNotShowYetHasNotReleasedTheLock(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(w *world) takeFunc{
		"mutex":  func(w *world) takeFunc { return w.mutex(lock.Config{}).Lock },
		"writer": func(w *world) takeFunc { return w.rw(lock.RWConfig{}).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				hold, client := locked(t, of(w)), w.Client(t, 20*time.Second)
				letHoldsAge()
				first, done := session(t, client).ID(), make(chan revoking, 1)
				go func() {
					list, err := lock.Revoke(t.Context(), client, path, lock.RevokeOptions{})
					done <- revoking{list, err}
				}()
				<-hold.Context().Done()
				behind := true
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Session == first || r.Session == hold.Session().ID():
					case r.Op == zktest.OpSync:
						behind = false
					case behind && r.Op != zktest.OpPing && r.Op != zktest.OpConnect:
						return zktest.Answer(zk.NoNode)
					}
					return zktest.Pass
				})
				w.ExpireSession(first)
				if r := <-done; !errors.Is(r.err, lock.ErrKept) || r.list[0].Ending != lock.EndingKept {
					t.Errorf("got %+v, want a holder that has kept the lock", r)
				}
				unlock(t, hold)
			})
		})
	}
}
