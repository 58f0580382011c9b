package line

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A departure is a place that has been given up and whose node is about to be removed. Its removal is sent by a goroutine of its own,
// which runs within microseconds. If the same line is entered again before that, under the same session, one transaction does both: it
// deletes the old node and creates the new one.
//
// That is worth a mechanism. A server makes a transaction durable before it answers, and a deletion that travels alone usually gets a
// flush of the disk for itself: a lock that is taken again and again in a row costs two flushes a cycle without this, and one with it.
type departure struct {
	place   *Place
	own     *zk.Watch // on its node, to be closed in the same write, ahead of the removal; nil if there is none
	removal *Removal
}

// depart registers the departure of p, whose node is watched by own unless that is nil.
func (l *Line) depart(p *Place, own *zk.Watch) *Removal {
	d := &departure{place: p, own: own, removal: &Removal{done: make(chan struct{}), hurry: l.Flush}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == p {
		l.head = nil
	}
	if l.leaving != nil {
		l.leaving.send()
	}
	l.leaving = d
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.leaving == d {
			l.sendLeaving()
		}
	}()
	return d.removal
}

// sendLeaving sends the departure. The caller holds l.mu until it is sent, so that nobody finds it neither here nor on its way.
func (l *Line) sendLeaving() {
	l.leaving.send()
	l.leaving = nil
}

// Flush sends what is about to leave, so that whatever sess is asked next comes after it.
func (l *Line) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving != nil {
		l.sendLeaving()
	}
}

// overtake takes a departure of sess that is not on its way yet, nil if there is none.
func (l *Line) overtake(sess *zk.Session) *departure {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.leaving
	if d == nil || d.place.sess != sess {
		return nil
	}
	l.leaving = nil
	return d
}

// send removes the nodes by themselves.
func (d *departure) send() {
	sess, paths, b := d.place.sess, d.place.Paths(), d.batch()
	if len(paths) == 1 {
		sent := b.Delete(paths[0], -1)
		b.Send()
		go d.removal.insist(sess, paths[0], sent)
		return
	}
	b.Send()
	r := removeAll(sess, paths)
	go func() {
		d.removal.err = r.Wait(context.Background())
		close(d.removal.done)
	}()
}

// batch returns a batch that first closes the watch on the node that is to be removed.
func (d *departure) batch() *zk.Batch {
	b := d.place.sess.Batch()
	if d.own != nil {
		b.Unwatch(d.own)
	}
	return b
}

// replace sends one transaction that removes the nodes and creates p's. If it fails, or nobody knows, the removal goes on by itself.
func (d *departure) replace(p *Place) creation {
	return func(sess *zk.Session, nodes []zk.Node) (created func(context.Context) ([]zk.Created, error), look func(context.Context) error) {
		old := d.place.Paths()
		ops := make([]zk.Op, 0, len(old)+len(nodes))
		for _, path := range old {
			ops = append(ops, zk.DeleteOp(path, -1))
		}
		ops = append(ops, creations(nodes)...)
		b := d.batch()
		all := b.Multi(ops...)
		var listed *zk.Future[zk.Children]
		switch last, ok := d.place.last(); {
		case ok:
			p.watchEarly(b, last)
		case d.place.waited: // somebody else wants this lock as well, so lookAfter will most likely have to look
			listed = b.Children(p.line.Dir)
		}
		b.Send()
		var settled sync.Once
		early := p.early
		return func(ctx context.Context) ([]zk.Created, error) {
			if early != nil { // its answer is right behind, and who waits for the last one is woken once
				select {
				case <-early.watch.Done():
				case <-ctx.Done():
				}
			}
			made, err := createdBy(ctx, sess, all, len(ops), len(old))
			if isClosed(all.Done()) {
				settled.Do(func() { d.settle(err) })
			}
			return made, err
		}, p.lookAfter(d.place, listed)
	}
}

// creations are the operations that create nodes.
func creations(nodes []zk.Node) []zk.Op {
	ops := make([]zk.Op, len(nodes))
	for i, n := range nodes {
		ops[i] = zk.CreateNodeOp(n)
	}
	return ops
}

// settle ends the departure after the transaction of replace, or sends the removal by itself if that failed.
func (d *departure) settle(err error) {
	if err != nil {
		d.send()
		return
	}
	close(d.removal.done)
}

// createdBy waits for the answer of a transaction of n operations and returns the nodes that those after the first skip made.
func createdBy(ctx context.Context, sess *zk.Session, all *zk.Future[[]zk.Result], n, skip int) ([]zk.Created, error) {
	results, err := all.Get(ctx)
	if err != nil {
		return nil, err
	}
	if len(results) != n {
		return nil, fmt.Errorf("line: a transaction of %d operations was answered with %d results", n, len(results))
	}
	return madeBy(results[skip:], sess), nil
}

// madeBy returns the nodes that results of creations tell of. Servers before 3.8.4 tell a node's path and not its Stat; what the line
// needs of that is known without.
func madeBy(results []zk.Result, sess *zk.Session) []zk.Created {
	nodes := make([]zk.Created, len(results))
	for i, r := range results {
		nodes[i] = zk.Created{Path: r.Path, Stat: r.Stat}
		if r.Stat.Czxid == 0 {
			nodes[i].Stat.Czxid, nodes[i].Stat.EphemeralOwner = r.Zxid, sess.ID()
		}
	}
	return nodes
}

// lookAfter looks at the line after p has taken the place of old in one transaction. Listed has been sent with that transaction, or is nil.
//
// If nobody has come in between, the line is known without a look. Every creation takes a number, also that of a seat that changes its
// kind (Become, Beside), whose name carries another's number. So if p has the next number after old's, and old was first, p is first. And if
// p has the next number after the last one that stood behind old at old's last look, only those are ahead who stood there; some may
// have left, which only makes p wait for a number that is too large.
func (p *Place) lookAfter(old *Place, listed *zk.Future[zk.Children]) func(context.Context) error {
	return func(ctx context.Context) error {
		if old.ahead == 0 && p.seat.Seq == old.seat.Seq+int32(old.line.width()) {
			p.ahead = 0
			p.abandonEarly()
			return nil
		}
		if last, ok := old.last(); ok && p.seat.Seq == last.Seq+1 {
			p.nearest, p.ahead = Ahead(old.crowd, p.seat, func(s Seat) bool { return !old.owns(s) })
			p.waited = true
			return nil
		}
		p.abandonEarly()
		return p.look(ctx, listed)
	}
}
