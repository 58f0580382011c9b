package server

// Requests that their reader serves itself.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/store"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// maxInline is how many requests a reader may serve inline. A client that waits for each answer sends up to that many
// at a time, when it releases a lock and acquires it again.
const maxInline = 4

// fitInline reports whether a reader may serve requests inline. More than one write does not: a client that sends
// several without waiting will send more, which the reader should collect meanwhile.
func fitInline(items []item) bool {
	writes := 0
	for i := range items {
		switch op := items[i].op; {
		case op == wire.OpCloseSession: // the end of a session may set a timer, which only run checks
			return false
		case tree.IsWrite(op):
			if _, ends := endsOther(&items[i]); ends {
				return false
			}
			writes++
		}
	}
	return len(items) <= maxInline && writes <= 1
}

// serveInline serves a few requests on their reader's goroutine if the server has nothing else to do, and reports
// whether it did. The reader then waits for the disk and sends the replies itself.
//
// A client that waits for each answer before its next request pays for every switch between goroutines, because each
// one wakes a processor that has just gone to sleep. By way of the owner, the store and the committer there are four
// switches; inline there are none. Under load, requests are collected as usual, and the switches cost nothing.
//
// Order is kept: the queue is empty and this goroutine has the owner's turn, so every earlier request has been served.
// All earlier batches have been released, and this goroutine takes the turns to apply and to release before any other
// goroutine can seal a batch.
func (o *owner) serveInline(items []item) bool {
	if !fitInline(items) || !o.turn.TryLock() {
		return false
	}
	b, served := o.fillInline(items)
	o.turn.Unlock()
	if b != nil {
		// The reader does not read while it waits for the disk, so the session must not expire meanwhile.
		if sess := items[0].conn.sess.Load(); sess != nil {
			sess.unread.Add(1)
			defer func() {
				sess.touch(o.clock.now())
				sess.unread.Add(-1)
			}()
		}
		b.apply((*store.Batch).ApplyInline)
		<-o.applying
		o.release(b, nil)
		<-o.releasing
	}
	return served
}

// fillInline serves requests unless there is other work. It returns the batch that their replies wait for, nil if none
// does. The caller has the owner's turn. With a batch it also gets the turns to apply and to release.
func (o *owner) fillInline(items []item) (b *batch, served bool) {
	if o.ended || o.open != nil || o.inFlight.count.Load() > 0 || !o.queue.empty() {
		return nil, false
	}
	select {
	case o.releasing <- struct{}{}:
	default:
		return nil, false
	}
	o.recycle()
	o.serve(items)
	if b = o.finish(); b == nil {
		<-o.releasing
	} else {
		o.applying <- struct{}{} // does not block: all earlier batches are durable
	}
	return b, true
}
