package server

import (
	"github.com/seed-a3166700/turnstile/internal/store"
	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// maxLone is how many requests come at most in one write of a client that waits for the answer: what a lock sends that is given back and
// asked for again.
const maxLone = 4

// few reports whether requests are so few that their reader may serve them. Several writes are not: a client that sends many without
// waiting has more to come, which its reader had better collect meanwhile.
func few(items []item) bool {
	writes := 0
	for i := range items {
		switch op := items[i].op; {
		case op == wire.OpCloseSession: // the end of a session sets alarms, which only run looks at
			return false
		case tree.IsWrite(op):
			writes++
		}
	}
	return len(items) <= maxLone && writes <= 1
}

// lone serves a single request, or a few, on its reader's goroutine if nothing else is going on, and reports whether it did. The reader also waits for
// the disk then, and answers.
//
// A client that waits for each answer before it asks again pays for every switch between goroutines on the way, because each of them wakes
// a processor that has just gone to sleep. Through the goroutines of the owner, the store and the committer there are four, this way
// there is none. When there is more to do, it is collected as ever, and those switches cost nothing.
//
// Order: the queue is empty and the turn to serve is ours, so everything that came earlier has been served. All earlier batches have been
// released, and the turns to apply and to release are taken before anybody else can seal a batch.
func (o *owner) lone(items []item) bool {
	if !few(items) || !o.turn.TryLock() {
		return false
	}
	b, served := o.serveLone(items)
	o.turn.Unlock()
	if b != nil {
		// Nobody reads what the client sends while its reader waits for the disk, so it is not to expire for its silence.
		if sess := items[0].conn.sess.Load(); sess != nil {
			sess.unread.Add(1)
			defer func() {
				sess.touch(o.clock.now())
				sess.unread.Add(-1)
			}()
		}
		b.apply((*store.Batch).ApplyAlone)
		<-o.applying
		o.release(b, nil)
		<-o.releasing
	}
	return served
}

// serveLone serves requests and returns the batch that it must wait for, nil if it waits for none. The caller has the turn to serve,
// and gets the turns to apply and to release together with a batch.
func (o *owner) serveLone(items []item) (b *batch, served bool) {
	if o.ended || o.open != nil || o.flight.count.Load() > 0 || !o.queue.empty() {
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
		o.applying <- struct{}{} // it is free, because everything before has landed
	}
	return b, true
}
