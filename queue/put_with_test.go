package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// order returns the operation that records an order: each time it is done another node comes.
func order() zk.Op { return zk.CreateOp("/orders/o-", nil, zk.PersistentSequential) }

func makeOrders(t *testing.T, w *world) *zk.Session {
	t.Helper()
	sess := w.Session(t, time.Hour)
	if _, err := sess.Create(t.Context(), "/orders", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	return sess
}

func wantOrders(t *testing.T, sess *zk.Session, want int) {
	t.Helper()
	names, _, err := sess.Children(t.Context(), "/orders")
	if err != nil || len(names) != want {
		t.Fatalf("got orders %v, %v, want %d", names, err, want)
	}
}

// Promise: 7
func TestPutWithWritesIsAllOrNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queue(queue.Config{}.WithSegment(2)), makeOrders(t, w)
		missing := zk.DeleteOp("/missing", -1)
		puts := map[string]func(...zk.Op) error{
			"put": func(ops ...zk.Op) error {
				_, err := q.Put(t.Context(), queue.Message{}, ops...)
				return err
			},
			"delayed": func(ops ...zk.Op) error {
				_, err := q.Put(t.Context(), queue.Message{Delay: time.Hour}, ops...)
				return err
			},
			"batch": func(ops ...zk.Op) error {
				_, err := q.PutBatch(t.Context(), messages("a", "b", "c", "d", "e"), ops...)
				return err
			},
			"once": func(ops ...zk.Op) error {
				_, _, err := q.PutOnce(t.Context(), "key", queue.Message{}, ops...)
				return err
			},
		}
		for name, put := range puts {
			err := put(order(), missing)
			failed, ok := errors.AsType[*zk.MultiError](err)
			if !errors.Is(err, zk.NoNode) || !ok || failed.Index != 1 || failed.Path != "/missing" {
				t.Errorf("%s: got %v, want that operation 1 is refused", name, err)
			}
		}
		wantOrders(t, sess, 0)
		wantLen(t, q, queue.Counts{})
		for name, put := range puts {
			if err := put(order(), zk.SetOp("/orders", []byte(name), -1)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantOrders(t, sess, len(puts))
		wantLen(t, q, queue.Counts{Ready: 7, Delayed: 1})
		if err := puts["once"](order()); err != nil {
			t.Fatal(err)
		}
		wantOrders(t, sess, len(puts)) // the item was in, so the writes are not done
	})
}

func TestDoneTellsWhichOfTheWritesIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		item := take(t, q)
		err := item.Done(t.Context(), zk.CreateOp("/a", nil, zk.Persistent), zk.DeleteOp("/missing", -1))
		if failed, ok := errors.AsType[*zk.MultiError](err); !ok || failed.Index != 1 || !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want that operation 1 is refused", err)
		}
		done(t, item)
	})
}

// Promise: 7
func TestPutWithWritesThatNeedsTwoTransactionsIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queue(queue.Config{MaxPacket: 64 << 10}), makeOrders(t, w)
		var many []queue.Message
		for range 50 {
			many = append(many, queue.Message{Body: make([]byte, 2000)})
		}
		if _, err := q.PutBatch(t.Context(), many, order()); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		large := zk.SetOp("/orders", make([]byte, 50<<10), -1)
		for what, m := range map[string]queue.Message{"one": {Body: make([]byte, 20<<10)}, "its writes": {}} {
			ops := []zk.Op{order(), large}
			if what == "its writes" {
				ops = append(ops, large)
			}
			if _, err := q.Put(t.Context(), m, ops...); !errors.Is(err, queue.ErrTooLarge) {
				t.Errorf("%s: got %v, want ErrTooLarge", what, err)
			}
		}
		if _, err := q.PutBatch(t.Context(), nil, order()); !errors.Is(err, zk.BadArguments) {
			t.Errorf("got %v, want BadArguments", err)
		}
		wantOrders(t, sess, 0)
		wantLen(t, q, queue.Counts{})
		if _, err := q.Put(t.Context(), queue.Message{}, order(), large); err != nil {
			t.Error(err)
		}
	})
}

// Whatever request of a put with writes gets lost, or its reply: the item and the writes are in, once.
//
// Promise: 7
func TestConnectionLostAtAnyStepOfAPutWithWritesChangesNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				sess := makeOrders(t, w)
				client := w.Client(t, 20*time.Second)
				steps := 0
				for step, reached := 1, true; reached; step++ {
					reached = false
					var at zktest.Request
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step || r.Session == sess.ID() {
							return zktest.Pass
						}
						reached, at = true, r
						return fault
					})
					q, err := queue.New(client, fmt.Sprint(root, step), queue.Config{}.WithSegment(2))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := q.Put(t.Context(), queue.Message{}, order()); err != nil {
						t.Fatal(err)
					}
					if _, _, err := q.PutOnce(t.Context(), "key", queue.Message{Delay: 1}, order()); err != nil {
						t.Fatal(err)
					}
					if _, err := q.PutBatch(t.Context(), messages("a", "b", "c"), order()); err != nil {
						t.Fatal(err)
					}
					w.Control(nil)
					n, err := q.Len(t.Context())
					if err != nil || n != (queue.Counts{Ready: 5}) {
						t.Fatalf("fault at step %d, %s %s %v: got %+v, %v", step, at.Op, at.Path, at.Parts, n, err)
					}
					names, _, err := sess.Children(t.Context(), "/orders")
					if err != nil || len(names) != 3*step {
						t.Fatalf("fault at step %d, %s %s %v: got %d orders, want 3", step, at.Op, at.Path, at.Parts,
							len(names)-3*(step-1))
					}
					if err := q.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					steps = step
				}
				if steps < 10 {
					t.Errorf("only %d steps had a fault", steps)
				}
			})
		})
	}
}

// Promise: 7
func TestPutWithWritesIsNotRepeatedWhenItsSessionEnds(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, other, sess := w.queue(queue.Config{}), w.queue(queue.Config{}), makeOrders(t, w)
				put(t, q, "first", queue.Message{})
				done(t, take(t, other))
				w.Control(func(r zktest.Request) zktest.Fault {
					ours := func(p zktest.Part) bool { return strings.HasPrefix(p.Path, "/orders/") }
					if r.Op != zktest.OpMulti || !slices.ContainsFunc(r.Parts, ours) || r.Nth > 1 {
						return zktest.Pass
					}
					if w.Mute(r.Session); applied {
						return zktest.Pass
					}
					return zktest.Refuse
				})
				result := make(chan error)
				go func() {
					_, err := q.Put(t.Context(), queue.Message{Body: []byte("second")}, order())
					result <- err
				}()
				pass(time.Minute) // the producer's session ends
				w.Heal()
				if err := <-result; err != nil {
					t.Fatal(err)
				}
				wantOrders(t, sess, 1)
				item := take(t, other)
				wantBody(t, item, "second")
				done(t, item)
				wantEmpty(t, other)
			})
		})
	}
}

// A caller that leaves does not know whether the item is in; but the item and the writes go together.
//
// Promise: 7
func TestCallerOfAPutWithWritesThatLeavesLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]zktest.Fault{
		"reply late": zktest.DelayReply(time.Minute), "request late": zktest.Delay(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, sess := w.queue(queue.Config{}), makeOrders(t, w)
				putAll(t, q, 0, 1)
				w.Control(func(r zktest.Request) zktest.Fault {
					ours := func(p zktest.Part) bool { return strings.HasPrefix(p.Path, "/orders/") }
					if slices.ContainsFunc(r.Parts, ours) {
						return late
					}
					return zktest.Pass
				})
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				defer leave()
				if _, err := q.Put(ctx, queue.Message{}, order()); !errors.Is(err, queue.ErrUnresolved) {
					t.Fatalf("got %v, want ErrUnresolved", err)
				}
				pass(2 * time.Minute)
				names, _, err := sess.Children(t.Context(), "/orders")
				if err != nil {
					t.Fatal(err)
				}
				wantLen(t, q, queue.Counts{Ready: 1 + len(names)})
			})
		})
	}
}
