package line

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Pool is leases, of which there may be so many at a time, and a line of those who want some. Only who is first in the line takes
// leases, and leaves it by the same transaction.
//
// That is why there are never too many. Whoever is first sees every lease that was taken before: by those who stood ahead, whose
// nodes in the line have gone with or after the taking. Leases that it does not see any more can only have been given back. And its own
// transaction is refused if its node in the line is gone, whoever has deleted it, or if the limit has changed since it was read.
type Pool struct {
	Line   *Line // of those who want leases
	Leases *Line // where the leases are; no line, but nodes of the same make
	Limit  Limit
}

// A Limit says how many leases there may be.
type Limit struct {
	Permits int    // unless a node says it
	Path    string // of that node; empty if there is none
	// Read reads the node's data. There says whether the node is. The error is final; ErrGone has all begun anew.
	Read func(data []byte, there bool) (int, error)
}

// A Count has been asked for: how many leases there are, and how many there may be.
type Count struct {
	pool   *Pool
	sess   *zk.Session
	leases *zk.Future[zk.Children]
	limit  *zk.Future[zk.Data] // nil if no node says it
}

// Count sends the question for the count, and does not wait for the answer.
func (p *Pool) Count(sess *zk.Session) *Count {
	c := &Count{pool: p, sess: sess}
	b := sess.Batch()
	c.leases = b.Children(p.Leases.Dir)
	if p.Limit.Path != "" {
		c.limit = b.Get(p.Limit.Path)
	}
	b.Send()
	return c
}

// Free returns how many more leases there may be: less than none if the limit was lowered.
func (c *Count) Free(ctx context.Context) (int, error) {
	t, err := c.await(ctx)
	return t.limit - t.taken, err
}

// A tally is an answered Count.
type tally struct {
	taken, limit int
	unchanged    []zk.Op // the checks that the limit is still the same
}

// await waits for the answers, and asks again if the connection breaks.
func (c *Count) await(ctx context.Context) (tally, error) {
	for {
		t, err := c.answer(ctx)
		if err == nil {
			return t, nil
		}
		if err := Settle(ctx, c.sess, err); err != nil {
			return t, err
		}
		*c = *c.pool.Count(c.sess)
	}
}

func (c *Count) answer(ctx context.Context) (tally, error) {
	children, err := c.leases.Get(ctx)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return tally{}, err
	}
	var node zk.Data
	if c.limit != nil {
		if node, err = c.limit.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
			return tally{}, err
		}
	}
	return c.pool.tally(children.Names, node, err)
}

// tally works out what the names of the leases and the limit's node say. Err is nil or zk.NoNode.
func (p *Pool) tally(names []string, node zk.Data, err error) (tally, error) {
	t := tally{taken: len(Seats(names, p.Leases.Markers)), limit: p.Limit.Permits}
	if p.Limit.Path == "" {
		return t, nil
	}
	limit, err := p.Limit.Read(node.Data, err == nil)
	if err != nil {
		return t, err
	}
	t.limit, t.unchanged = limit, []zk.Op{zk.CheckOp(p.Limit.Path, node.Stat.Version)}
	return t, nil
}

// Enter takes a place at the end of the line, and asks for the count in the same write: it is as of when we came.
func (p *Pool) Enter(ctx context.Context, sess *zk.Session) (*Place, *Count, error) {
	e := p.Line.Ask(sess)
	c := p.Count(sess)
	place, err := e.Place(ctx)
	if err != nil {
		e.Abandon()
		return nil, nil, err
	}
	if e.resent {
		c = p.Count(sess)
	}
	return place, c, nil
}

// Await waits until the place is first in the line. It returns the count that Enter has asked for, or a newer one if it had to wait.
func (p *Pool) Await(ctx context.Context, place *Place, asked *Count) (*Count, error) {
	if place.First() {
		return asked, nil
	}
	if err := place.Await(ctx); err != nil {
		return nil, err
	}
	return p.Count(place.sess), nil
}

// Take takes n leases for a place that is first in the line, and waits until so many may be taken. The place is over if it succeeds;
// the caller leaves it otherwise. Asked is a count that was asked for when the place was first. Full is called when there is
// something to wait for, and ends the attempt with its error if it returns one.
//
// If Take returns an error, no lease is left behind, or its removal goes on in the background until it is done or the session has ended
// (CURATOR-315, CURATOR-335, CURATOR-462). ErrGone says that somebody else deleted a node of ours.
func (p *Pool) Take(ctx context.Context, place *Place, n int, asked *Count, full func() error) (*Bundle, error) {
	t, err := asked.await(ctx)
	for {
		if err != nil {
			return nil, err
		}
		if t.taken+n > t.limit {
			if err = full(); err != nil {
				return nil, err
			}
			if t, err = p.awaitRoom(ctx, place, n); err != nil {
				return nil, err
			}
		}
		var leases *Bundle
		if leases, err = p.take(ctx, place, n, t); !errors.Is(err, ErrGone) {
			return leases, err
		}
		// Either our place is gone, or the limit has changed: then nothing has happened, and we are still first.
		if _, err = place.Seats(ctx); err != nil {
			return nil, err
		}
		t, err = p.Count(place.sess).await(ctx)
	}
}

// take exchanges the place for n leases, in one transaction.
func (p *Pool) take(ctx context.Context, place *Place, n int, t tally) (*Bundle, error) {
	place.disarm() // or the server would tell us what we do ourselves
	ops := append([]zk.Op{zk.DeleteOp(place.node.Path, -1)}, t.unchanged...)
	var listed *zk.Future[zk.Children]
	leases, err := MakeBundle(ctx, place.sess, slices.Repeat([]*Line{p.Leases}, n), ops, func(b *zk.Batch) {
		listed = b.Children(p.Leases.Dir)
	})
	if err != nil {
		return nil, err
	}
	// That would do if everybody kept the rules. A client of Curator's whose place in the line was deleted by others
	// goes on, and takes a lease out of turn. It counts after that, and so do we: of two that took the last lease, the
	// later one sees both, and gives its own back. Leases that came after ours do not count. They are the others' to
	// give back, and may be right: the limit may have been raised since, and the next in line may have been quicker
	// than our list.
	names, err := listed.Get(ctx)
	for err != nil {
		if err = Settle(ctx, place.sess, err); err != nil {
			leases.Leave()
			return nil, err
		}
		names.Names, _, err = place.sess.Children(ctx, p.Leases.Dir)
	}
	if p.upTo(leases, names.Names) > t.limit {
		leases.Leave()
		return nil, ErrGone
	}
	return leases, nil
}

// upTo returns how many leases there are that came before ours or with them. Where numbers tell no order, behind their
// end on Apache's ZooKeeper, all have one number and count.
func (p *Pool) upTo(ours *Bundle, names []string) int {
	paths := ours.Paths()
	last, ok := ParseSeat(path.Base(paths[len(paths)-1]), p.Leases.Markers)
	n := 0
	for _, s := range Seats(names, p.Leases.Markers) {
		if !ok || s.Seq == last.Seq || Before(s, last) {
			n++
		}
	}
	return n
}

// awaitRoom waits until n leases may be taken. Only who is first in the line waits so: a lease that is given back wakes nobody else.
func (p *Pool) awaitRoom(ctx context.Context, place *Place, n int) (tally, error) {
	for {
		t, err := p.awaitChange(ctx, place, n)
		if err != nil {
			if err = Settle(ctx, place.sess, err); err != nil {
				return t, err
			}
			continue
		}
		if t.taken+n <= t.limit {
			return t, nil
		}
	}
}

// awaitChange returns the tally if n leases may be taken, and otherwise waits until that may have changed.
func (p *Pool) awaitChange(ctx context.Context, place *Place, n int) (tally, error) {
	var watches []*zk.Watch
	defer func() {
		for _, w := range watches {
			w.Close()
		}
	}()
	names, _, w, err := place.sess.ChildrenW(ctx, p.Leases.Dir)
	switch {
	case err == nil:
		watches = append(watches, w)
	case !errors.Is(err, zk.NoNode): // nobody but us may make it
		return tally{}, err
	}
	var node zk.Data
	if p.Limit.Path != "" {
		node.Data, node.Stat, w, err = place.sess.GetW(ctx, p.Limit.Path)
		switch {
		case err == nil:
			watches = append(watches, w)
		case !errors.Is(err, zk.NoNode):
			return tally{}, err
		}
	}
	t, err := p.tally(names, node, err)
	if err != nil || t.taken+n <= t.limit {
		return t, err
	}
	return t, place.awaitAny(ctx, watches)
}

// awaitAny waits until one of the watches fires. It returns ErrGone if our own node is deleted first.
func (p *Place) awaitAny(ctx context.Context, watches []*zk.Watch) error {
	within, stop := context.WithCancel(ctx)
	woken := make(chan error, len(watches)+1)
	var waits sync.WaitGroup
	for _, w := range watches {
		waits.Go(func() {
			_, err := w.Next(within)
			woken <- err
		})
	}
	waits.Go(func() { woken <- p.Watch(within, nil) })
	err := <-woken
	stop()
	waits.Wait() // the place is one goroutine's at a time
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
