package lock

// The order of the calls of one process.

import (
	"context"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// ticket keeps the order of the calls. Goroutines of one process have nodes of their own in the servers' line, and must
// join it in the order of their calls: also those that join it again, all at once, under the next session. So each
// waits until the one before it has joined. A mutex of the lock's guards all of it.
type ticket struct {
	prev, next *ticket
	sess       *zk.Session   // under which it has joined the line
	moved      chan struct{} // one slot: the ticket before has changed
}

func (t *ticket) init() { t.prev, t.next = t, t }

// draw returns a ticket behind all others; t is the head. The caller holds the mutex.
func (t *ticket) draw() *ticket {
	last := &ticket{prev: t.prev, next: t, moved: make(chan struct{}, 1)}
	last.prev.next, t.prev = last, last
	return last
}

// enter says that t's owner stands in the line. Mu is what guards the tickets.
func (t *ticket) enter(mu *sync.Mutex, sess *zk.Session) {
	mu.Lock()
	defer mu.Unlock()
	t.sess = sess
	t.next.wake()
}

// drop takes t out of the order: its owner waits no more. Mu is what guards the tickets.
func (t *ticket) drop(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	t.prev.next, t.next.prev = t.next, t.prev
	t.next.wake()
}

func (t *ticket) wake() {
	select {
	case t.moved <- struct{}{}: // never, for the head, whose channel is nil
	default:
	}
}

// turn waits until every owner of an earlier ticket than mine has joined the line under sess, or waits no more. It is
// enough to look at the ticket before mine, whose owner has looked at the one before that. T is the head, and mu what
// guards the tickets.
func (t *ticket) turn(ctx context.Context, mu *sync.Mutex, mine *ticket, sess *zk.Session) error {
	for {
		mu.Lock()
		mine.sess = nil
		ready := mine.prev == t || mine.prev.sess == sess
		mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-mine.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-sess.Context().Done():
			return sess.Err()
		}
	}
}
