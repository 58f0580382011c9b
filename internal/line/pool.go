package line

// Leases of a limited number.

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A Pool is leases, of which there is a limited number, and a line of contenders that want some. Only the first
// contender takes leases, and leaves the line by the same transaction.
//
// That is why there are never too many leases. The first contender sees every lease that was taken before, by the
// contenders ahead of it: their nodes in the line went with or after the taking. Leases that it does not see any more
// can only have been given back. And its own transaction is refused if its node in the line is gone, or if the limit
// has changed since it was read.
type Pool struct {
	Line   *Line // of the contenders
	Leases *Line // where the leases are: nodes that wait for nothing
	Limit  Limit
}

// A Limit is how many leases there may be.
type Limit struct {
	Permits int    // unless a node says it
	Path    string // of that node; empty if there is none
	// Read reads the node's data. There says whether the node exists. The error is final, except ErrGone: then all
	// begins anew.
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
	asked := c
	return attempt.Ask(ctx, c.sess, func() (tally, error) {
		count := asked
		if asked = nil; count == nil {
			count = c.pool.Count(c.sess)
		}
		return count.answer(ctx)
	})
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
	t := tally{taken: p.Leases.taken(names), limit: p.Limit.Permits}
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

// Enter asks for a contender at the end of the line, and for the count in the same write: it is as of when we came.
func (p *Pool) Enter(ctx context.Context, sess *zk.Session) (*Own, *Count, error) {
	r := p.Line.Ask(sess)
	c := p.Count(sess)
	own, err := r.finish(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.resent {
		c = p.Count(sess)
	}
	return own, c, nil
}

// Await waits until the contender is first in the line. It returns the count that Enter has asked for, or a newer one
// if it had to wait.
func (p *Pool) Await(ctx context.Context, own *Own, asked *Count) (*Count, error) {
	if own.First() {
		return asked, nil
	}
	if err := own.Await(ctx); err != nil {
		return nil, err
	}
	return p.Count(own.sess), nil
}

// Take exchanges a contender that is first in the line for n leases, and waits until so many may be taken. The
// contender is over if it succeeds; the caller releases it otherwise. Asked is a count that was asked for when the
// contender was first. Full is called when there is something to wait for, and ends the attempt with its error if it
// returns one.
//
// If Take returns an error, no lease is left behind, or its removal goes on in the background until it is done or the
// session has ended (CURATOR-315, CURATOR-335, CURATOR-462). ErrGone says that another client deleted a node of ours.
func (p *Pool) Take(ctx context.Context, own *Own, n int, asked *Count, full func() error) (*Own, error) {
	t, err := asked.await(ctx)
	for {
		if err != nil {
			return nil, err
		}
		if t.taken+n > t.limit {
			if err = full(); err != nil {
				return nil, err
			}
			if t, err = p.awaitRoom(ctx, own, n); err != nil {
				return nil, err
			}
		}
		var leases *Own
		if leases, err = p.exchange(ctx, own, n, t); !errors.Is(err, ErrGone) {
			return leases, err
		}
		// Either our contender is gone, or the limit has changed: then nothing has happened, and we are still first.
		if _, err = own.Contenders(ctx); err != nil {
			return nil, err
		}
		t, err = p.Count(own.sess).await(ctx)
	}
}

// exchange gives up the contender for n leases, in one transaction.
func (p *Pool) exchange(ctx context.Context, own *Own, n int, t tally) (*Own, error) {
	closeAll(own.takeWatches(false)) // or the server would send an event for our own deletion
	r := &Request{
		own:    &Own{sess: own.sess, watcher: &p.Leases.watcher},
		lines:  slices.Repeat([]*Line{p.Leases}, n),
		checks: append([]zk.Op{zk.DeleteOp(own.Path(), -1)}, t.unchanged...),
	}
	r.send()
	leases, err := r.finish(ctx)
	if err != nil {
		return nil, err
	}
	// That would do if all clients kept the rules. A client of Curator's whose node in the line was deleted by another
	// client goes on, and takes a lease out of turn. It counts after that, and so do we: of two that took the last
	// lease, the later one sees both, and gives its own back. Leases that came after ours do not count. They are the
	// others' to give back, and may be right: the limit may have been raised since, and the next in line may have been
	// quicker than our list.
	listed, err := r.listed[0].Get(ctx)
	for err != nil {
		if err = attempt.Again(ctx, own.sess, err); err != nil {
			break
		}
		listed.Names, _, err = own.sess.Children(ctx, p.Leases.Dir)
	}
	gone := errors.Is(err, zk.NoNode) // another client has deleted the leases' directory, and ours
	if gone || err == nil && p.upTo(leases, listed.Names) > t.limit {
		err = ErrGone
	}
	if err != nil {
		leases.Release()
		return nil, err
	}
	return leases, nil
}

// upTo returns how many leases there are that came before ours or with them. Where numbers tell no order, behind their
// end on Apache's ZooKeeper, all have one number and count. So do all where leases have no numbers.
func (p *Pool) upTo(ours *Own, names []string) int {
	if p.Leases.Fixed {
		return p.Leases.taken(names)
	}
	paths := ours.Paths()
	last, ok := ParseContender(path.Base(paths[len(paths)-1]), p.Leases.Markers)
	n := 0
	for _, c := range Contenders(names, p.Leases.Markers) {
		if !ok || c.Seq == last.Seq || Before(c, last) {
			n++
		}
	}
	return n
}

// awaitRoom waits until n leases may be taken. Only the first in the line waits so: a lease that is given back wakes no
// other contender.
func (p *Pool) awaitRoom(ctx context.Context, own *Own, n int) (tally, error) {
	for {
		t, err := attempt.Ask(ctx, own.sess, func() (tally, error) { return p.awaitChange(ctx, own, n) })
		if err != nil || t.taken+n <= t.limit {
			return t, err
		}
	}
}

// awaitChange returns the tally if n leases may be taken, and otherwise waits until that may have changed.
func (p *Pool) awaitChange(ctx context.Context, own *Own, n int) (tally, error) {
	var watches []*zk.Watch
	defer func() { closeAll(watches) }()
	names, _, w, err := own.sess.ChildrenW(ctx, p.Leases.Dir)
	switch {
	case err == nil:
		watches = append(watches, w)
	case !errors.Is(err, zk.NoNode): // the first contender alone makes it
		return tally{}, err
	}
	var node zk.Data
	if p.Limit.Path != "" {
		node.Data, node.Stat, w, err = own.sess.GetW(ctx, p.Limit.Path)
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
	return t, own.awaitAny(ctx, watches)
}

// awaitAny waits until one of the watches fires. It returns ErrGone if our own node is deleted first.
func (o *Own) awaitAny(ctx context.Context, watches []*zk.Watch) error {
	within, stop := context.WithCancel(ctx)
	woken := make(chan error, len(watches)+1)
	var waits sync.WaitGroup
	for _, w := range watches {
		waits.Go(func() {
			_, err := w.Next(within)
			woken <- err
		})
	}
	waits.Go(func() { woken <- o.Watch(within, nil) })
	err := <-woken
	stop()
	waits.Wait() // one goroutine at a time uses the contender
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
