package classic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A consumer whose server answers, but has no quorum, learns it. The lock of its item goes when it has had the margin
// to stop.
//
// Promise: 2
func TestUncertainHoldOfAnItemIsToldAndEnds(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("an item is gone when it is taken")
		}
		q, other := w.queue(k), w.queue(k)
		fill(t, q, 1)
		held, err := q.take(t.Context(), true)
		must(t, err)
		sess := held.item.Session()
		time.Sleep(2 * timeout) // in a bubble: no time passes
		w.Control(zktest.WithoutQuorum(sess.ID()))
		isolated := time.Now()
		<-held.item.Context().Done()
		told := time.Now()
		cause := context.Cause(held.item.Context())
		if !errors.Is(cause, zk.ErrUncertain) || !errors.Is(cause, classic.ErrLost) || told.Sub(isolated) > timeout/2 {
			t.Errorf("told %v after %v, want zk.ErrUncertain", cause, told.Sub(isolated))
		}
		w.Control(nil)
		if err := held.done(t.Context()); !errors.Is(err, classic.ErrLost) {
			t.Errorf("Done returns %v, want ErrLost: the lock is about to be released", err)
		}
		again, err := other.take(t.Context(), true)
		must(t, err)
		if after := time.Since(told); after < timeout/4 || after > timeout || sess.Err() != nil {
			t.Errorf("delivered again %v after the consumer was told; session: %v", after, sess.Err())
		}
		must(t, again.done(t.Context()))
	})
}
