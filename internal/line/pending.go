package line

// Releases that wait for the next request.

import (
	"context"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A pendingRelease is a contender that was given up and whose nodes are about to be removed. A goroutine of its own
// sends the removal, within microseconds. If the same line is entered again before that, under the same session, one
// transaction does both: it deletes the old nodes and creates the new ones (a merged release).
//
// A server makes a transaction durable before it answers, and a deletion that travels alone usually gets a flush of the
// disk for itself: a lock that is taken again and again costs two flushes a cycle without this, and one with it.
type pendingRelease struct {
	own     *Own
	watches []*zk.Watch // on its nodes, to be closed in the same write, ahead of the removal
	removal *attempt.Removal
}

// release removes the nodes of o, and closes the watches on them.
func (l *Line) release(o *Own, watches []*zk.Watch) *attempt.Removal {
	d := &pendingRelease{own: o, watches: watches, removal: attempt.NewRemoval(l.Flush)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == o.positions[0] {
		l.head = nil
	}
	l.flush()
	l.pending = d
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pending == d {
			l.flush()
		}
	}()
	return d.removal
}

// Flush sends what is about to be removed, so that whatever the session is asked next comes after it.
func (l *Line) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

// flush is Flush for a caller that holds l.mu, and holds it until the removal is sent: it is either here or on its way.
func (l *Line) flush() {
	if l.pending != nil {
		l.pending.send()
		l.pending = nil
	}
}

// merge takes a release of sess that is not on its way yet, nil if there is none.
func (l *Line) merge(sess *zk.Session) *pendingRelease {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.pending
	if d == nil || d.own.sess != sess {
		return nil
	}
	l.pending = nil
	return d
}

// send removes the nodes by themselves.
func (d *pendingRelease) send() {
	b := d.own.sess.Batch()
	d.cancelWatches(b)
	finish := attempt.SendRemoval(b, d.own.sess, d.own.Paths())
	go func() { d.removal.End(finish()) }()
}

func (d *pendingRelease) cancelWatches(b *zk.Batch) {
	for _, w := range d.watches {
		b.Unwatch(w)
	}
}

// replace adds to b the transaction that removes the old nodes and creates those of next. It also adds the request that
// finds out which contenders are ahead, if one is needed: a list, or the watch on the one that is most likely nearest.
// If the transaction fails, or its answer is lost, the removal goes on by itself.
func (d *pendingRelease) replace(
	b *zk.Batch, next *position, names []name, nodes []zk.Node,
) (*attempt.Creation, *zk.Future[zk.Children]) {
	d.cancelWatches(b)
	made, answered := attempt.NewCreation(b, d.own.sess, names, attempt.Deletions(d.own.Paths()), nodes)
	answer := made.Answer
	var listed *zk.Future[zk.Children]
	old := d.own.positions[0]
	switch last, ok := old.last(); {
	case ok:
		next.prefetch(b, last)
	case old.waited: // others want this lock as well, so infer will most likely fail
		listed = b.Children(next.line.Dir)
	}
	var once sync.Once
	prefetched := next.prefetched
	made.Answer = func(ctx context.Context) ([]zk.Created, error) {
		if prefetched != nil { // its answer is right behind: wait for it, and wake once
			select {
			case <-prefetched.watch.Done():
			case <-ctx.Done():
			}
		}
		created, err := answer(ctx)
		if isClosed(answered) {
			once.Do(func() {
				if err != nil {
					d.send()
				} else {
					d.removal.End(nil)
				}
			})
		}
		return created, err
	}
	return made, listed
}

// infer finds out without a list which contenders are ahead of p, which has replaced old in one transaction. It reports
// false if it cannot.
//
// Every creation takes a number, also that of a contender that changes its kind (Become, Beside), whose name carries
// another's number. So if p has the next number after old's, and old was first, p is first. And if p has the next
// number after the last one that stood behind old when old listed the line, only contenders of that list are ahead;
// some may have left, which only makes p count too many.
func (p *position) infer(old *position) bool {
	if old.ahead == 0 && p.self.Seq == old.self.Seq+int32(len(old.nodes)) {
		p.ahead = 0
		p.cancelPrefetch()
		return true
	}
	if last, ok := old.last(); ok && p.self.Seq == last.Seq+1 {
		p.nearest, p.ahead = Ahead(old.snapshot, p.self, func(c Contender) bool { return !old.owns(c) })
		p.waited = true
		return true
	}
	return false
}
