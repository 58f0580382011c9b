package barrier_test

// The plain barrier.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func (w *world) barrier(client *zk.Client) *barrier.Barrier {
	w.t.Helper()
	b, err := barrier.NewBarrier(client, path, barrier.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func wait(ctx context.Context, b *barrier.Barrier) *task[struct{}] {
	return background(func() (struct{}, error) { return struct{}{}, b.Wait(ctx) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Promise: 13
func TestWaitReturnsAtOnceWhereThereIsNoBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		must(t, w.barrier(w.Client(t, timeout)).Wait(t.Context()))
	})
}

// Promise: 13
func TestWaitReturnsWhenTheBarrierIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.barrier(w.Client(t, timeout))
		must(t, b.Set(t.Context()))
		must(t, b.Set(t.Context())) // is up already
		first, second := wait(t.Context(), b), wait(t.Context(), w.barrier(w.Client(t, timeout)))
		first.wantWaiting(t)
		second.wantWaiting(t)
		must(t, b.Remove(t.Context()))
		must(t, b.Remove(t.Context())) // is down already
		first.wantOver(t)
		second.wantOver(t)
	})
}

// Promise: 13
func TestWaitGoesOnThroughLostConnectionsAndNewSessions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		b := w.barrier(w.Client(t, timeout))
		must(t, b.Set(t.Context()))
		waiting := wait(t.Context(), w.barrier(client))
		waiting.wantWaiting(t)
		w.Cut()
		w.Heal()
		time.Sleep(time.Second)
		waiting.wantWaiting(t)
		w.ExpireSession(session(t, client).ID())
		time.Sleep(time.Second)
		waiting.wantWaiting(t)
		must(t, b.Remove(t.Context()))
		waiting.wantOver(t)
	})
}

// Promise: 11
func TestADirectoryOfAnotherRecipeIsNoBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, sess := w.barrier(w.Client(t, timeout)), w.Session(t, timeout)
		for _, node := range []string{"/app", path, path + "/child"} {
			if _, err := sess.Create(t.Context(), node, []byte("others'"), zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		for name, call := range map[string]func(context.Context) error{"Set": b.Set, "Remove": b.Remove} {
			err := call(t.Context())
			if !errors.Is(err, zk.NotEmpty) || !strings.Contains(err.Error(), "path of its own") {
				t.Errorf("got %v from %s, want what to do about the node's children", err, name)
			}
		}
		children, _, err := sess.Children(t.Context(), path)
		must(t, err)
		if len(children) != 1 {
			t.Errorf("got children %q, want none of the barrier's", children)
		}
		must(t, sess.Delete(t.Context(), path+"/child", -1))
		must(t, b.Set(t.Context()))
		must(t, b.Set(t.Context())) // over its own child
		must(t, b.Remove(t.Context()))
	})
}

func TestANodeThatGoesWithASessionIsNoBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, sess := w.barrier(w.Client(t, timeout)), w.Session(t, timeout)
		w.create("/app")
		_, err := sess.Create(t.Context(), path, []byte("holder"), zk.Ephemeral)
		must(t, err)
		for name, call := range map[string]func(context.Context) error{"Set": b.Set, "Remove": b.Remove} {
			err := call(t.Context())
			if !errors.Is(err, zk.NodeExists) || !strings.Contains(err.Error(), "path of its own") {
				t.Errorf("got %v from %s, want what to do about the other program's node", err, name)
			}
		}
		must(t, sess.Delete(t.Context(), path, -1))
		must(t, b.Set(t.Context()))
		must(t, b.Remove(t.Context()))
	})
}

func TestWaitGoesOnWhenTheBarrierIsWrittenTo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.barrier(w.Client(t, timeout))
		must(t, b.Set(t.Context()))
		waiting := wait(t.Context(), b)
		waiting.wantWaiting(t)
		for range 2 { // the second shows that the watch was set again
			if _, err := w.Session(t, timeout).Set(t.Context(), path, []byte("of an operator"), -1); err != nil {
				t.Fatal(err)
			}
			waiting.wantWaiting(t)
		}
		must(t, b.Remove(t.Context()))
		waiting.wantOver(t)
		w.NoWatches(t)
	})
}

// Promise: 13
func TestWaitSeesARemovalWhileItWasCutOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		b := w.barrier(w.Client(t, timeout))
		must(t, b.Set(t.Context()))
		waiting := wait(t.Context(), w.barrier(client))
		waiting.wantWaiting(t)
		w.Cut(session(t, client).ID())
		must(t, b.Remove(t.Context()))
		w.Heal()
		time.Sleep(time.Second)
		waiting.wantOver(t)
	})
}

// A leader that was replaced without noticing answers reads and syncs, but no write.
//
// Promise: 13
func TestWaitTakesNoAnswerFromALeaderThatWasReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		id := session(t, client).ID()
		replaced, back := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == id && slices.Contains([]zktest.Op{zktest.OpCreate, zktest.OpDelete, zktest.OpMulti}, r.Op) {
				return zktest.Until(replaced)
			}
			return zktest.Pass
		})
		waiting := wait(t.Context(), w.barrier(client))
		waiting.wantWaiting(t)
		back()
		waiting.wantOver(t)
	})
}

// Nor from a server that has lost the others, which answers reads and refuses writes.
//
// Promise: 13
func TestWaitTakesNoAnswerFromAServerThatIsAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		w.Control(zktest.WithoutQuorum(session(t, client).ID()))
		waiting := wait(t.Context(), w.barrier(client))
		waiting.wantWaiting(t)
		w.Control(nil)
		time.Sleep(time.Second) // in the world's time
		waiting.wantOver(t)
	})
}

// Promise: 13
func TestWaitEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.barrier(w.Client(t, timeout))
		must(t, b.Set(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// The caller may leave between the two replies to its look.
//
// Promise: 13
func TestWaitThatEndsAtAnyStepLeavesNoWatch(t *testing.T) {
	t.Parallel()
	for step, more := 1, true; more; step++ {
		more = false
		zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
			w := &world{srv, t}
			w.create("/app", path)
			client := w.Client(t, timeout)
			ctx, cancel := context.WithCancel(t.Context())
			held, release := context.WithCancel(t.Context())
			id := session(t, client).ID()
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Session == id && r.Seq == step {
					more = true
					return zktest.ReplyUntil(held)
				}
				return zktest.Pass
			})
			k := wait(ctx, w.barrier(client))
			k.wantWaiting(t)
			cancel()
			k.wantFailed(t, context.Canceled)
			release()
			w.Control(nil)
			synctest.Wait()
			w.NoWatches(t)
		}, zktest.SessionTimeouts(time.Second, time.Minute))
	}
}

// Promise: 13
func TestSetAndRemoveSurviveALostReply(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore, zktest.CutAfter} {
		t.Run("", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.create("/app")
				b := w.barrier(w.Client(t, timeout))
				faultOnce(w, fault, zktest.OpCreate)
				must(t, b.Set(t.Context()))
				w.wantChildren("/app", "barrier")
				faultOnce(w, fault, zktest.OpDelete)
				must(t, b.Remove(t.Context()))
				w.wantChildren("/app")
			})
		})
	}
}

// faultOnce injects a fault into the next request of the kind.
func faultOnce(w *world, fault zktest.Fault, op zktest.Op) {
	synctest.Wait()
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == op && r.Nth == 1 {
			return fault
		}
		return zktest.Pass
	})
}
