package barrier_test

// Leaving a double barrier when something is not as the member expects.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 13
func TestLeaveEndsTheContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := enterAll(t, w.double(1))[0]
		leaveAll(t, m)
		if cause := context.Cause(m.Context()); !errors.Is(cause, barrier.ErrLeft) {
			t.Errorf("got cause %v, want that the member has left", cause)
		}
	})
}

// Promise: 13
func TestContextEndsWhenAnotherClientDeletesTheNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		m, other := members[0], members[1]
		ctx := m.Context()
		synctest.Wait()
		w.Drop()                // the watch outlives its connection
		time.Sleep(time.Second) // in the world's time
		if err := ctx.Err(); err != nil {
			t.Fatal(context.Cause(ctx))
		}
		w.delete(m.Path())
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, barrier.ErrDeleted) {
			t.Errorf("got cause %v, want that the node was deleted", cause)
		}
		for range 2 {
			if err := m.Leave(t.Context()); !errors.Is(err, barrier.ErrDeleted) {
				t.Errorf("got %v, want that the node was deleted", err)
			}
		}
		must(t, other.Leave(other.Context()))
		if cause := context.Cause(other.Context()); !errors.Is(cause, barrier.ErrLeft) {
			t.Errorf("got cause %v, want that the member has left", cause)
		}
		w.wantChildren(path)
		w.NoWatches(t)
	})
}

// The server refuses to tell the party, for a while, whether its node is there.
//
// Promise: 13
func TestContextEndsAfterRefusedLooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := enterAll(t, w.double(1))[0]
		refused := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if (r.Op == zktest.OpGetData || r.Op == zktest.OpExists) && r.Path == m.Path() && refused < 3 {
				refused++
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		ctx := m.Context()
		time.Sleep(10 * time.Second) // in the world's time
		w.delete(m.Path())
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, barrier.ErrDeleted) || refused != 3 {
			t.Errorf("got cause %v after %d refusals, want that the node was deleted, after 3", cause, refused)
		}
	})
}

// Another client deletes the node and makes one of the same name, in one transaction.
//
// Promise: 13
func TestContextEndsWhenTheNodeIsReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := enterAll(t, w.double(1))[0]
		ctx, other := m.Context(), w.Session(t, timeout)
		synctest.Wait()
		theirs := zk.Node{Path: m.Path(), Mode: zk.Ephemeral}
		_, err := other.Multi(t.Context(), zk.DeleteOp(m.Path(), -1), zk.CreateNodeOp(theirs))
		must(t, err)
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, barrier.ErrDeleted) {
			t.Errorf("got cause %v, want that the node was deleted", cause)
		}
		if err := m.Leave(t.Context()); !errors.Is(err, barrier.ErrDeleted) {
			t.Errorf("got %v, want that the node was deleted", err)
		}
		if _, there, err := other.Exists(t.Context(), m.Path()); !there || err != nil {
			t.Errorf("the other's node: %v, %v", there, err)
		}
	})
}

// If the node were there when the party comes again, it would count twice.
//
// Promise: 13
func TestMemberHasLeftOnlyWhenItsNodeIsGone(t *testing.T) {
	t.Parallel()
	for name, lowest := range map[string]string{"it knows the lowest one": "00000000-peer", "it does not": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.create("/app", path, path+"/00000000-peer")
				a := enter(t.Context(), w.double(3))
				synctest.Wait()
				_, err := w.Session(t, timeout).Create(t.Context(), path+"/ready", []byte(lowest), zk.Persistent)
				must(t, err)
				m := a.wantOver(t)
				refused := true
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpDelete && r.Path == m.Path() && refused {
						return zktest.Answer(zk.SessionMoved)
					}
					return zktest.Pass
				})
				k := leave(t.Context(), m)
				synctest.Wait()
				w.delete(path + "/00000000-peer")
				w.delete(path + "/ready")
				time.Sleep(2 * time.Second) // in the world's time
				k.wantWaiting(t)
				w.Control(nil)
				time.Sleep(time.Minute) // in the world's time
				k.wantOver(t)
				w.wantChildren(path)
			})
		})
	}
}

// A member that has come first may not know the round when it has left. The others are of its round all the same.
//
// Promise: 13
func TestMemberThatDoesNotKnowItsRoundWaitsForThoseThatCameLater(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"a reply is lost": false, "a peer has closed the barrier": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				doubles := w.regulars(3)
				if closed {
					doubles[1] = w.double(3)
				}
				first := enter(t.Context(), doubles[1])
				synctest.Wait()
				var later []*barrier.Member
				if closed {
					w.create(path+"/00000000-peer", path+"/11111111-peer")
					_, err := w.Session(t, timeout).Multi(t.Context(),
						zk.CreateOp(path+"/ready", nil, zk.Persistent), zk.DeleteOp(path+"/ready", -1))
					must(t, err)
				} else {
					later = enterAll(t, doubles[0], doubles[2])
					faultOnce(w, zktest.DropReply, zktest.OpDelete)
				}
				k := leave(t.Context(), first.wantOver(t))
				time.Sleep(2 * time.Second) // in the world's time
				k.wantWaiting(t)
				if closed {
					w.delete(path + "/00000000-peer")
					k.wantWaiting(t)
					w.delete(path + "/11111111-peer")
				}
				leaveAll(t, later...)
				k.wantOver(t)
				w.wantChildren(path)
			})
		})
	}
}

// Promise: 13
func TestMemberWaitsForALateOneAlsoWhenTheLowestHasDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/00000000-peer")
		m := enterAll(t, w.double(2))[0]
		late := enterAll(t, w.double(2))[0]
		k := leave(t.Context(), m)
		k.wantWaiting(t)
		w.delete(path + "/00000000-peer")
		time.Sleep(2 * time.Second) // in the world's time
		k.wantWaiting(t)
		leaveAll(t, late)
		k.wantOver(t)
		w.wantChildren(path)
	})
}

// Kazoo's parties delete the ready node when they begin to leave.
//
// Promise: 13
func TestMemberThatLeftEarlyWaitsWhenAPeerHasClosedTheBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/00000000-peer")
		m := enterAll(t, w.double(2))[0]
		k := leave(t.Context(), m)
		k.wantWaiting(t)
		w.delete(path + "/ready")
		k.wantWaiting(t)
		w.delete(path + "/00000000-peer")
		k.wantOver(t)
		w.wantChildren(path)
	})
}

// Another client may have deleted the node of the last one.
//
// Promise: 13
func TestLastOneWithoutANodeLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := enterAll(t, w.double(1))[0]
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpDelete)
		k := leave(t.Context(), m)
		<-reached
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth > 10 {
				t.Error("asks again and again")
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		w.delete(m.Path())
		release()
		k.wantOver(t)
		w.wantChildren(path)
	})
}

// The last member must also close the barrier.
//
// Promise: 13
func TestLeaveWhoseContextHasEndedLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ended, end := context.WithCancel(t.Context())
		end()
		for range 20 {
			m := enterAll(t, w.double(1))[0]
			leave(ended, m).wantFailed(t, context.Canceled)
			w.wantChildren(path)
		}
	})
}
