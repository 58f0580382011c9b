package queue_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A consumer whose server answers, but has no quorum, learns it. Another one gets the item when the first has had the
// margin to stop, and the first gets items again under the same session.
//
// Promise: 2
func TestUncertainConsumerIsToldAndItsItemsAreDelivered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 3)
		held := take(t, q)
		sess := held.Session()
		pass(2 * sess.Timeout())
		w.Control(zktest.WithoutQuorum(sess.ID()))
		isolated := time.Now()
		<-held.Context().Done()
		told := time.Now()
		cause := context.Cause(held.Context())
		if !errors.Is(cause, zk.ErrUncertain) || !errors.Is(cause, queue.ErrClaimLost) ||
			told.Sub(isolated) > sess.Timeout()/2 {
			t.Errorf("told %v after %v, want zk.ErrUncertain", cause, told.Sub(isolated))
		}
		if err := held.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("Done: %v, want ErrClaimLost", err)
		}
		w.Control(nil)
		var again *queue.Item
		for again == nil || again.ID() != held.ID() {
			again = take(t, other)
			defer done(t, again)
		}
		if after := time.Since(told); after < sess.Timeout()/4 {
			t.Errorf("delivered again %v after the consumer was told", after)
		}
		if again.Token() <= held.Token() || sess.Err() != nil {
			t.Errorf("tokens %d, then %d; session: %v", held.Token(), again.Token(), sess.Err())
		}
		putAll(t, q, 3, 6)
		item := take(t, q)
		if item.Session() != sess {
			t.Error("the consumer has another session")
		}
		done(t, item)
	})
}

// A consumer that is alone gets its items in strict order, also those that it had claimed when its session was
// uncertain.
//
// Promise: 2
func TestUncertainConsumerKeepsItsOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Linger: time.Hour})
		putAll(t, q, 0, 40)
		doneInOrder(t, q, 0, 10)
		held := take(t, q)
		sess := held.Session()
		w.Control(zktest.WithoutQuorum(sess.ID()))
		<-held.Context().Done()
		w.Control(nil)
		for i := 10; i < 40; i++ {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			if item.Session() != sess {
				t.Fatal("the consumer has another session")
			}
			done(t, item)
		}
	})
}

// A consumer that is lost while another of its goroutines waits for an item leaves the line of waiting consumers.
//
// Promise: 2
func TestUncertainConsumerLeavesTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		held := take(t, q)
		sess := held.Session()
		next := make(chan *queue.Item, 1)
		go func() {
			item, err := q.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- item
		}()
		pass(2 * sess.Timeout())
		w.Control(zktest.WithoutQuorum(sess.ID()))
		<-held.Context().Done()
		w.Control(nil)
		if item := <-next; item != nil {
			done(t, item)
		}
		pass(time.Minute)
		children, _, err := sess.Children(t.Context(), root+"/waiters")
		if err != nil || len(children) > 0 {
			t.Errorf("in line: %q, %v", children, err)
		}
	})
}

// A consumer that waits owns nothing, and writes nothing.
//
// Promise: 2
func TestWaitingConsumerProvesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		done(t, take(t, q))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.Take(ctx)
			ended <- err
		}()
		pass(time.Minute)
		proofs := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Parts[0].Op == zktest.OpCheck {
				proofs++
			}
			return zktest.Pass
		})
		pass(10 * time.Minute)
		w.Control(nil)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if proofs > 0 {
			t.Errorf("%d transactions that check nodes", proofs)
		}
	})
}
