package line

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// Await waits until nobody who blocks us stands ahead. It returns ErrGone if our node was deleted meanwhile, and otherwise why it
// stopped: the context's cause or the session's. The place stays taken; the caller leaves it.
func (p *Place) Await(ctx context.Context) error {
	for p.ahead > 0 {
		gone, listed, err := p.awaitNearest(ctx)
		switch {
		case err != nil:
			return err
		case gone && p.ahead == 1 && p.steady():
			// The seats ahead only ever get fewer: whoever comes later gets a larger number. The one that is gone was
			// the last of them, and our own node was still there after it (see awaitNearest). No second look is needed.
			p.ahead = 0
		default:
			if err := p.look(ctx, listed); err != nil {
				return err
			}
		}
	}
	p.line.lead(p)
	return nil
}

// steady reports whether we are first if the nearest seat ahead is gone and was the only one there.
//
// That is not so where seats change their kind. A writer that becomes a reader leaves a reader with its number where we saw it go, and a
// reader further ahead, who never blocked us, may meanwhile be a writer that does. And it says nothing about our second node.
func (p *Place) steady() bool {
	return p.twin == nil && (p.line.Change == nil || !p.line.Change(p.nearest))
}

// awaitNearest waits until the nearest seat ahead has changed. It reports gone only if that seat's node is deleted and ours was still
// there at a later point of the server's history: then, if it was the only one ahead, we are served. Listed is a list of the line that
// was asked for after the change, whatever has become of it; nil if there is none.
//
// Ownership is seen here, not inferred from the neighbour's leaving. Both watches are set on one connection, and a connection
// carries events in the order of the changes: had our node been deleted first, its event would have arrived first. That order
// holds within one connection only. After a reconnect the events are made up by the server in the order of the paths that the client
// sent, so anything that arrives over a later connection is a reason to look again and nothing more.
func (p *Place) awaitNearest(ctx context.Context) (gone bool, listed *zk.Future[zk.Children], err error) {
	b := p.sess.Batch()
	ahead, reconnected := p.watchNearest(b)
	var own *zk.Future[zk.WatchedData]
	if p.ahead == 1 { // else the watch comes later, or a look, which finds out
		own = p.armOwn(b)
	}
	b.Send()

	w, err := ahead.Get(ctx)
	if ctx.Err() != nil {
		ahead.Abandon()
		if own != nil {
			own.Abandon()
		}
		return false, nil, context.Cause(ctx)
	}
	ownErr := p.armed(ctx, own)
	missing := errors.Is(err, zk.NoNode)
	switch {
	case err == nil:
		defer w.Watch.Close()
	case !missing:
		return false, nil, Settle(ctx, p.sess, err)
	}
	if ownErr != nil {
		return false, nil, Settle(ctx, p.sess, ownErr)
	}
	if missing { // and our node was there when the next answer, its own, was made
		return !isClosed(reconnected) && !p.ownTouched(), nil, nil
	}
	ev, listed, err := p.next(ctx, w.Watch)
	if err != nil {
		return false, nil, Settle(ctx, p.sess, err)
	}
	return ev.Type == zk.EventDeleted && !isClosed(reconnected) && !p.ownTouched(), listed, nil
}

// watchNearest adds the watch on the nearest seat to b, unless it was asked for already. The channel is closed when the connection has
// changed since that was sent.
func (p *Place) watchNearest(b *zk.Batch) (*zk.Future[zk.WatchedData], <-chan struct{}) {
	if e := p.early; e != nil && e.seat.Name == p.nearest.Name {
		p.early = nil
		return e.watch, e.reconnected
	}
	p.abandonEarly()
	_, reconnected := p.sess.State()
	return b.GetW(join(p.line.Dir, p.nearest.Name)), reconnected
}

// next waits for the event of the nearest seat ahead. If somebody else may stand ahead then, the line is listed at once when the event has
// come, and next returns when the answer has: who waits is woken once, not twice.
//
// If the nearest seat is a place of ours, p is told when that place is first: then it is the only one ahead, and nothing is left to be looked for.
func (p *Place) next(ctx context.Context, w *zk.Watch) (zk.Event, *zk.Future[zk.Children], error) {
	if p.ahead == 1 && p.steady() {
		ev, err := w.Next(ctx)
		return ev, nil, err
	}
	b := p.sess.Batch()
	listed := b.Children(p.line.Dir)
	stop := b.SendOn(w)
	defer stop()
	if !p.steady() {
		ev, err := nextListed(ctx, w, listed)
		return ev, listed, err
	}
	wait, tell := context.WithCancelCause(ctx)
	defer tell(nil)
	f := p.line.follow(p, tell, stop)
	ev, err := nextListed(wait, w, listed)
	if !p.line.unfollow(p, f) {
		return ev, listed, err
	}
	if err := p.armed(ctx, f.own); err != nil {
		return zk.Event{}, nil, err
	}
	p.ahead = 1
	if errors.Is(err, errNext) {
		ev, err = w.Next(ctx)
	}
	return ev, nil, err
}

// nextListed waits for the answer of a list that is sent with the next event of w, and returns that event.
func nextListed(ctx context.Context, w *zk.Watch, listed *zk.Future[zk.Children]) (zk.Event, error) {
	select {
	case <-listed.Done():
	case <-ctx.Done():
	}
	return w.Next(ctx)
}
