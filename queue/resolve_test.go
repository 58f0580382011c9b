package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Items that another client removes while their consumer does not know what became of its own transaction.

// finishers are the ways to finish an item.
var finishers = map[string]func(context.Context, *queue.Item) error{
	"Done":           func(ctx context.Context, it *queue.Item) error { return it.Done(ctx) },
	"Done with ops":  func(ctx context.Context, it *queue.Item) error { return it.Done(ctx, order()) },
	"Fail":           func(ctx context.Context, it *queue.Item) error { return it.Fail(ctx, errors.New("no")) },
	"Fail, in place": func(ctx context.Context, it *queue.Item) error { return it.Fail(ctx, &queue.RetryError{}) },
	"Reject":         func(ctx context.Context, it *queue.Item) error { return it.Reject(ctx, "no") },
}

// cutAtFinish cuts a consumer off at the transaction that finishes its item: that reaches the server if applied says
// so. Afterwards the consumer is not told of its node, which would make it give up earlier.
func cutAtFinish(w *world, sess *zk.Session, applied bool) {
	cut := false
	w.Control(func(r zktest.Request) zktest.Fault {
		ours := func(p zktest.Part) bool {
			return strings.HasPrefix(p.Path, line0+"/s") || strings.HasPrefix(p.Path, root+"/free/")
		}
		if cut && r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, root+"/consumers/") {
			return zktest.Answer(zk.NoAuth)
		}
		if cut || r.Session != sess.ID() || r.Op != zktest.OpMulti || !slices.ContainsFunc(r.Parts, ours) {
			return zktest.Pass
		}
		cut = true
		if applied {
			w.Mute(sess.ID())
			return zktest.Pass
		}
		w.Cut(sess.ID())
		return zktest.CutBefore
	})
}

// An operator deletes the consumer's node while the consumer is cut off, and the next consumer finishes the item.
//
// Promise: 7
func TestItemThatAnotherConsumerHasFinishedIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	for name, finish := range finishers {
		for _, again := range []bool{false, true} { // the operator makes a node of that name
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q, sess := w.queueAndSession()
					other, operator := w.queue(queue.Config{}), makeOrders(t, w)
					putAll(t, other, 0, 1)
					item := take(t, q)
					cutAtFinish(w, sess, false)
					finished := make(chan error)
					go func() { finished <- finish(t.Context(), item) }()
					synctest.Wait()
					node := root + "/consumers/" + w.children(root + "/consumers")[0]
					if err := operator.Delete(t.Context(), node, -1); err != nil {
						t.Fatal(err)
					}
					doneInOrder(t, other, 0, 1)
					if again {
						if _, err := operator.Create(t.Context(), node, nil, zk.Persistent); err != nil {
							t.Fatal(err)
						}
					}
					w.Heal(sess.ID())
					if err := <-finished; !errors.Is(err, queue.ErrClaimLost) {
						t.Errorf("got %v, want ErrClaimLost", err)
					}
					wantOrders(t, operator, 0)
				})
			})
		}
	}
}

// Promise: 7
func TestDoneWithWritesIsNotTakenForDoneWhenAnotherClientRemovesTheItem(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"done": true, "not done": false} {
		for _, open := range []int{1, 2} { // the claim's last item, and not
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q, sess := w.queueAndSession()
					operator := makeOrders(t, w)
					putAll(t, q, 0, open)
					item := takeBatch(t, q, open)[0]
					cutAtFinish(w, sess, applied)
					finished := make(chan error)
					go func() { finished <- item.Done(t.Context(), order()) }()
					synctest.Wait()
					if err := operator.Delete(t.Context(), item.Path(), -1); (err == nil) == applied {
						t.Fatal(err)
					}
					w.Heal(sess.ID())
					err := <-finished
					if applied && err != nil || !applied && !errors.Is(err, queue.ErrClaimLost) {
						t.Errorf("got %v", err)
					}
					wantOrders(t, operator, map[bool]int{true: 1}[applied])
				})
			})
		}
	}
}

// Promise: 7
func TestDoneWithWritesWhoseReceiptIsRemovedIsUnresolved(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, sess := w.queueAndSession()
				operator := makeOrders(t, w)
				putAll(t, q, 0, 1)
				item := take(t, q)
				cutAtFinish(w, sess, applied)
				finished := make(chan error)
				go func() { finished <- item.Done(t.Context(), order()) }()
				synctest.Wait()
				if _, err := operator.DeleteAll(t.Context(), root+"/receipts"); err != nil {
					t.Fatal(err)
				}
				w.Heal(sess.ID())
				if err := <-finished; errors.Is(err, queue.ErrUnresolved) != applied || !applied && err != nil {
					t.Errorf("got %v", err) // if the item is there nothing was done, and it is done again
				}
				wantOrders(t, operator, 1)
			})
		})
	}
}

// A receipt costs one request, once; it is not left behind.
func TestDoneWithWritesTakesOneRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		operator := makeOrders(t, w)
		const n = 10
		putAll(t, w.queue(queue.Config{}), 0, n)
		items := takeBatch(t, q, n)
		requests := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == items[0].Session().ID() && r.Op != zktest.OpPing {
				requests++
			}
			return zktest.Pass
		})
		for i, item := range items {
			if i == n-1 { // finished after Close
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if i == 1 {
				if _, err := operator.DeleteAll(t.Context(), root+"/receipts"); err != nil {
					t.Fatal(err)
				}
			}
			requests = 0
			if err := item.Done(t.Context(), order()); err != nil {
				t.Fatal(err)
			}
			if i > 1 && i < n-1 && requests != 1 {
				t.Errorf("item %d took %d requests, want 1", i, requests)
			}
		}
		synctest.Wait()
		for _, part := range w.children(root + "/receipts") {
			w.NoNodes(t, root+"/receipts/"+part)
		}
		wantOrders(t, operator, n)
	})
}
