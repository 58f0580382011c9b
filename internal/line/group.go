package line

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Group is one place in each of several lines, taken and left together. Its nodes are made in one transaction: of two groups that
// share lines, one is ahead of the other in all of them, so that they never wait for each other.
type Group struct {
	*Bundle
	places []*Place
}

// EnterAll takes a place at the end of each line. For errors and what they leave behind, see Enter.
func EnterAll(ctx context.Context, sess *zk.Session, lines []*Line) (*Group, error) {
	listed := make([]*zk.Future[zk.Children], len(lines))
	bundle, err := MakeBundle(ctx, sess, lines, nil, func(b *zk.Batch) {
		for i, l := range lines {
			listed[i] = b.Children(l.Dir)
		}
	})
	if err != nil {
		return nil, err
	}
	g := &Group{Bundle: bundle}
	at := 0
	for i, l := range lines {
		p := &Place{line: l, sess: sess, ahead: unlooked}
		g.places = append(g.places, p) // before anything fails: what has no place is not left
		if err := p.stand(bundle.nodes[at : at+l.width()]); err != nil {
			g.Leave()
			return nil, err
		}
		at += l.width()
		// The list may be of an attempt that failed; then our node is not in it.
		children, err := listed[i].Get(ctx)
		if err == nil {
			err = p.see(children.Names)
		}
		if err != nil && ctx.Err() == nil {
			err = p.look(ctx, nil)
		}
		if err != nil {
			g.Leave()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
	}
	return g, nil
}

// First reports whether nobody was ahead in any of the lines at the last look.
func (g *Group) First() bool {
	for _, p := range g.places {
		if !p.First() {
			return false
		}
	}
	return true
}

// Await waits until nobody who blocks us stands ahead in any of the lines. Its errors are those of Place.Await. The places stay taken.
func (g *Group) Await(ctx context.Context) error {
	if g.First() {
		return nil
	}
	for _, p := range g.places {
		if err := p.Await(ctx); err != nil {
			return err
		}
	}
	// While we waited in one line, our node in another may have been deleted, and others have come to be first there.
	whole, err := g.Whole(ctx)
	if err == nil && !whole {
		err = ErrGone
	}
	return err
}

// Start does for each of the places what Place.Start does, with the directory that dir returns for the path of its line. What is
// left of several delays passes at once.
func (g *Group) Start(ctx context.Context, dir func(path string) string, delay time.Duration, rest func(time.Duration) bool) error {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // one call of rest at a time, and rested
	rested := false
	ask := func(left time.Duration) bool {
		mu.Lock()
		defer mu.Unlock()
		rested = true
		return rest(left)
	}
	ended := make(chan error, len(g.places))
	for _, p := range g.places {
		go func() { ended <- p.Start(starting, dir(p.line.Dir), delay, ask) }()
	}
	var err error
	for range g.places {
		if e := <-ended; e != nil && err == nil {
			err = e
			cancel()
		}
	}
	if err == nil && rested {
		// While a delay passed at one path, our node at another may have been deleted.
		var whole bool
		if whole, err = g.Whole(ctx); err == nil && !whole {
			err = ErrGone
		}
	}
	return err
}

// Leave gives the places up, all at once, with their marks.
func (g *Group) Leave() *Removal {
	marked := false // either all are, or none
	for _, p := range g.places {
		p.retire()
		marked = p.mark != ""
	}
	if !marked {
		return g.Bundle.Leave()
	}
	var ops []zk.Op
	for _, p := range g.places {
		for _, path := range append(p.Paths(), p.mark) {
			ops = append(ops, zk.DeleteOp(path, -1))
		}
	}
	g.Retire()
	b := g.sess.Batch()
	sent := b.Multi(ops...)
	b.Send()
	return RemoveBy(func() error {
		if _, err := sent.Get(context.Background()); err == nil || g.sess.Err() != nil {
			return nil //nolint:nilerr // the nodes end with the session, and the marks then say what is true
		}
		// Something is gone already, or nobody knows: each place by itself, then.
		left := make([]*Removal, len(g.places))
		for i, p := range g.places {
			left[i] = p.removeMarked()
		}
		return waitAll(left)
	})
}

// Empty reports whether nobody stands in any of the lines.
func Empty(ctx context.Context, sess *zk.Session, lines []*Line) (bool, error) {
	b := sess.Batch()
	listed := make([]*zk.Future[zk.Children], len(lines))
	for i, l := range lines {
		l.Flush() // or we would find ourselves in the line
		listed[i] = b.Children(l.Dir)
	}
	b.Send()
	for i, l := range lines {
		children, err := listed[i].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return false, err
		}
		if len(Seats(children.Names, l.Markers)) > 0 {
			return false, nil
		}
	}
	return true, nil
}
