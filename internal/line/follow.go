package line

// Contenders of one process that tell each other when their turn is near.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// A follower is a contender that waits for another one of the same line in this process. It need not ask the server how
// many are ahead when its turn comes near: the one ahead knows when it is first.
//
// That one was first at some point of the server's history. The follower has found no other contender between the two,
// and later ones come behind both. So from that point on only the one ahead is ahead of the follower.
//
// What is left to be shown, when the one ahead has gone, is that the follower's own node is still there. So the first
// contender sends the request for a watch on the follower's node, at once: it is on the way before anything that the
// same session asks for later, the removal of the first contender included, and its event, if there is one, comes
// before that of the removal. See awaitNearest.
type follower struct {
	position *position
	tell     context.CancelCauseFunc
	stop     func() // cancels the list that was to be sent when the one ahead goes
	told     bool
	own      *zk.Future[zk.WatchedData] // of the watch on its node; nil if there is one already
}

// errNext ends the wait of a follower when it is next.
var errNext = errors.New("the contender ahead is first")

// follow has p told when the contender of ours that it waits for is first, if there is one of the same session.
func (l *Line) follow(p *position, tell context.CancelCauseFunc, stop func()) *follower {
	f := &follower{position: p, tell: tell, stop: stop}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind == nil {
		l.behind = make(map[string]*follower)
	}
	l.behind[p.nearest.Name] = f
	if l.head != nil && l.head.self.Name == p.nearest.Name {
		l.tellNext()
	}
	return f
}

// unfollow ends follow, and reports whether p has been told.
func (l *Line) unfollow(p *position, f *follower) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind[p.nearest.Name] == f {
		delete(l.behind, p.nearest.Name)
	}
	return f.told
}

// lead notes that o is first in all of its lines, if it is.
func (o *Own) lead() {
	if o.First() {
		for _, p := range o.positions {
			p.line.lead(p)
		}
	}
}

// lead notes that p is first, and tells its follower. It is called before p is released.
//
// Where names come again nobody is told: the contender ahead of the follower may be another's, with p's name.
func (l *Line) lead(p *position) {
	if l.Signed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = p
	l.tellNext()
}

// tellNext tells the follower of the head. The caller holds l.mu.
func (l *Line) tellNext() {
	name := l.head.self.Name
	f := l.behind[name]
	if f == nil || f.position.own.sess != l.head.own.sess {
		return
	}
	delete(l.behind, name)
	f.stop()
	b := f.position.own.sess.Batch()
	f.own, f.told = f.position.own.watch(b, f.position.nodes[0]), true
	b.Send()
	f.tell(errNext)
}
