package line

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// A follower is a place that waits for the seat of another place of the same line in this process. It need not ask the server how many are
// ahead when its turn comes near: the place ahead knows when it is first.
//
// That place was first at some point of the server's history. The follower has found nobody between the two of them, and whoever comes later
// comes behind both. So from that point on only the place ahead is ahead of the follower.
//
// What is left to be shown, when the place ahead has gone, is that the follower's own node is still there. So the place that is first
// sends the request for a watch on the follower's node, at once: it is on the way before anything that the same session asks for later,
// the removal of the place ahead included, and its event, if there is one, comes before that of the removal. See awaitNearest.
type follower struct {
	place *Place
	tell  context.CancelCauseFunc
	stop  func() // withdraws the list that was to be sent when the place ahead goes
	told  bool
	own   *zk.Future[zk.WatchedData] // of the watch on its node; nil if there is one already
}

// errNext ends the wait of a follower when it is next.
var errNext = errors.New("line: the place ahead is first")

// follow has p told when the place of ours for whose seat it waits is first, if there is one of the same session.
func (l *Line) follow(p *Place, tell context.CancelCauseFunc, stop func()) *follower {
	f := &follower{place: p, tell: tell, stop: stop}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind == nil {
		l.behind = make(map[string]*follower)
	}
	l.behind[p.nearest.Name] = f
	if l.head != nil && l.head.seat.Name == p.nearest.Name {
		l.tellNext()
	}
	return f
}

// unfollow ends follow, and reports whether p has been told.
func (l *Line) unfollow(p *Place, f *follower) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind[p.nearest.Name] == f {
		delete(l.behind, p.nearest.Name)
	}
	return f.told
}

// lead says that p is first, and is about to be left at the earliest.
func (l *Line) lead(p *Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = p
	l.tellNext()
}

// tellNext tells who follows the head. The caller holds l.mu.
func (l *Line) tellNext() {
	name := l.head.seat.Name
	f := l.behind[name]
	if f == nil || f.place.sess != l.head.sess {
		return
	}
	delete(l.behind, name)
	f.stop()
	b := f.place.sess.Batch()
	f.own, f.told = f.place.armOwn(b), true
	b.Send()
	f.tell(errNext)
}
