package line

// Where a contender of ours stands, and its wait.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// unknown is how many stand ahead of a position whose line was not listed yet. Such a position must not count as first,
// least of all when it is released (see position.infer).
const unknown = 1 << 30

// A position is where a contender of ours stands in one line.
type position struct {
	own   *Own
	line  *Line
	nodes []*node   // ours in this line
	self  Contender // by the first of them

	nearest  Contender   // the one to wait for, if ahead > 0
	ahead    int         // how many contenders blocked us when the line was last listed
	waited   bool        // some did once
	snapshot []Contender // all contenders of that list, if they were few and we were first

	prefetched *prefetch // nil if none is under way

	mark    string        // the path of our mark, which may be there; "" without a delay
	delay   time.Duration // what it tells
	started bool          // what the mark says is true
}

// identify reads our number from the node's name. It returns an error if the name is not that of a contender, or its
// number is one that contenders of ours must not keep.
func (p *position) identify() error {
	var ok bool
	p.self, ok = ParseContender(path.Base(p.nodes[0].path), p.line.Markers)
	if !ok {
		return fmt.Errorf("line: the server named our node %q, which is not a contender's name", p.nodes[0].path)
	}
	return p.line.checkNumber(p.self.Seq)
}

// list returns the contenders in the line, ours among them, or ErrGone if ours is not. The caller does not change what
// it returns. It uses the list that was asked
// for already, unless that is nil or has failed.
//
// A list that has our nodes is good enough, even from a server that lags: all contenders ahead were created before us,
// so a server that knows our nodes knows all of them. What it may not know yet is that some have left, and then we only
// wait longer.
func (p *position) list(ctx context.Context, listed *zk.Future[zk.Children]) ([]Contender, error) {
	var contenders []Contender
	var children zk.Children
	err := errNotAsked
	if listed != nil {
		children, err = listed.Get(ctx)
	}
	if err == nil {
		p.line.joins.listed(children.Names)
		p.line.Strangers.notice(p.nodes, children.Names)
		contenders = Contenders(children.Names, p.line.Markers)
	} else {
		contenders, err = p.line.list(ctx, p.own.sess)
	}
	if errors.Is(err, zk.NoNode) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	ours := 0
	for _, c := range contenders {
		if p.owns(c) {
			ours++
		}
	}
	if ours != len(p.nodes) {
		return nil, ErrGone
	}
	return contenders, nil
}

// errNotAsked stands for the answer to a list that was not asked for.
var errNotAsked = errors.New("not asked")

// see works out from the line's contenders which are ahead of us.
func (p *position) see(contenders []Contender) {
	p.nearest, p.ahead = Ahead(contenders, p.self, p.line.Blocks)
	p.waited = p.waited || p.ahead > 0
	p.snapshot = nil
	if p.ahead == 0 && len(contenders) <= maxSnapshot {
		p.snapshot = contenders
	}
}

// owns reports whether the contender is by a node of ours.
func (p *position) owns(c Contender) bool {
	ours := func(n *node) bool { return n.path == attempt.Join(p.line.Dir, c.Name) }
	return c.Name == p.self.Name || slices.ContainsFunc(p.nodes[1:], ours)
}

// Await waits until no contender that blocks us is ahead in any of the lines. It returns ErrGone if a node of ours was
// deleted meanwhile, and otherwise why it stopped: ctx's cause or the session's error. The nodes stay; the caller
// releases them.
func (o *Own) Await(ctx context.Context) error {
	err := o.await(ctx)
	if err == nil {
		o.firstAt = time.Now()
	}
	return err
}

func (o *Own) await(ctx context.Context) error {
	if len(o.positions) > 1 && o.First() {
		return nil
	}
	for _, p := range o.positions {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	if len(o.positions) > 1 {
		// While we waited in one line, our node in another may have been deleted, and others have come to be first
		// there.
		return o.check(ctx)
	}
	return nil
}

func (p *position) await(ctx context.Context) error {
	for p.ahead > 0 {
		gone, listed, err := p.awaitNearest(ctx)
		switch {
		case err != nil:
			return err
		case gone && p.ahead == 1 && p.steady():
			// The contenders ahead only ever get fewer: later ones get larger numbers. The one that is gone was the
			// last of them, and our own node was still there after it (see awaitNearest). So we are first, unlisted.
			p.ahead = 0
		default:
			contenders, err := p.list(ctx, listed)
			if err != nil {
				return err
			}
			p.see(contenders)
		}
	}
	p.line.lead(p)
	return nil
}

// steady reports whether we are first if the nearest contender ahead is gone and was the only one there.
//
// That is not so where contenders change their kind. When a writer becomes a reader, its node goes and a reader with
// its number stays; and a reader further ahead, which never blocked us, may meanwhile be a writer that does. Nor is it
// so if we have a second node, of which the first says nothing.
func (p *position) steady() bool {
	return len(p.nodes) == 1 && (p.line.Change == nil || !p.line.Change(p.nearest))
}

// awaitNearest waits until the nearest contender ahead has changed. It reports gone only if that one's node is deleted
// and ours was still there at a later point of the server's history: then, if it was the only one ahead, we are first.
// Listed is a list of the line that was asked for after the change, whatever its outcome; nil if there is none.
//
// The watch on our own node shows here that it is there; the neighbour's leaving would not. Both watches are set on one
// connection, and a connection carries events in the order of the changes: had our node been deleted first, its event
// would have arrived first. That order holds within one connection only. After a reconnect the server generates the
// events in the order of the paths that the client sent, so an event that arrives over a later connection is only a
// reason to look again.
func (p *position) awaitNearest(ctx context.Context) (gone bool, listed *zk.Future[zk.Children], err error) {
	sess, self := p.own.sess, p.nodes[0]
	b := sess.Batch()
	ahead, reconnected := p.watchNearest(b)
	var own *zk.Future[zk.WatchedData]
	if p.ahead == 1 { // otherwise the watch is set later, or a list finds out
		own = p.own.watch(b, self)
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
	ownErr := p.own.watched(ctx, self, own)
	missing := errors.Is(err, zk.NoNode)
	switch {
	case err == nil:
		defer w.Watch.Close()
		if w.Stat.EphemeralOwner == 0 && p.line.Stray != nil {
			p.line.Stray(p.nearest.Name)
		}
	case !missing:
		return false, nil, attempt.Again(ctx, sess, err)
	}
	if ownErr != nil {
		return false, nil, attempt.Again(ctx, sess, ownErr)
	}
	if missing { // and our node was there when the next request, for its watch, was answered
		return !isClosed(reconnected) && !p.own.touched(self), nil, nil
	}
	ev, listed, err := p.next(ctx, w.Watch)
	if err != nil {
		return false, nil, attempt.Again(ctx, sess, err)
	}
	return ev.Type == zk.EventDeleted && !isClosed(reconnected) && !p.own.touched(self), listed, nil
}

// watchNearest adds the watch on the nearest contender to b, unless it was prefetched. The channel is closed when the
// connection has changed since that was sent.
func (p *position) watchNearest(b *zk.Batch) (*zk.Future[zk.WatchedData], <-chan struct{}) {
	if f := p.prefetched; f != nil && f.contender.Name == p.nearest.Name {
		p.prefetched = nil
		return f.watch, f.reconnected
	}
	p.cancelPrefetch()
	_, reconnected := p.own.sess.State()
	return b.GetW(attempt.Join(p.line.Dir, p.nearest.Name)), reconnected
}

// next waits for the event of the nearest contender ahead. If others may be ahead then, the list of the line leaves as
// soon as the event has come, and next returns after its answer: the waiter wakes once, not twice.
//
// If the nearest contender is one of ours, p is told when that one is first: then it is the only one ahead, and no list
// is needed.
func (p *position) next(ctx context.Context, w *zk.Watch) (zk.Event, *zk.Future[zk.Children], error) {
	if p.ahead == 1 && p.steady() {
		ev, err := w.Next(ctx)
		return ev, nil, err
	}
	b := p.own.sess.Batch()
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
	if err := p.own.watched(ctx, p.nodes[0], f.own); err != nil {
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

// Contenders lists the contenders in the first line, ours once among them. It returns ErrGone if ours is not there.
func (o *Own) Contenders(ctx context.Context) ([]Contender, error) {
	return o.positions[0].contenders(ctx, nil)
}

func (p *position) contenders(ctx context.Context, listed *zk.Future[zk.Children]) ([]Contender, error) {
	list, err := p.list(ctx, listed)
	second := func(c Contender) bool { return p.owns(c) && c.Name != p.self.Name }
	return slices.DeleteFunc(slices.Clone(list), second), err
}

// Others reports whether a contender other than ours stands in the first line, ahead or behind, that sort selects.
func (o *Own) Others(ctx context.Context, sort func(Contender) bool) (bool, error) {
	p := o.positions[0]
	children, _, err := o.sess.Children(ctx, p.line.Dir)
	return p.others(children, sort), err
}

func (p *position) others(children []string, sort func(Contender) bool) bool {
	other := func(c Contender) bool { return !p.owns(c) && sort(c) }
	return slices.ContainsFunc(Contenders(children, p.line.Markers), other)
}

// WatchLine tells found whether other contenders stand in the first line, now and after each change, until found
// returns false: then it returns nil. Otherwise it returns why it stopped: ctx's cause, the session's error, or the
// server's refusal. It wakes with every change of the line, so only the first contender may use it.
func (o *Own) WatchLine(ctx context.Context, found func(others bool) bool) error {
	p := o.positions[0]
	for {
		type children struct {
			names []string
			watch *zk.Watch
		}
		c, err := attempt.Ask(ctx, o.sess, func() (children, error) {
			names, _, watch, err := o.sess.ChildrenW(ctx, p.line.Dir)
			return children{names, watch}, err
		})
		if err != nil {
			return err
		}
		if !found(p.others(c.names, func(Contender) bool { return true })) {
			c.watch.Close()
			return nil
		}
		_, err = c.watch.Next(ctx)
		c.watch.Close()
		if err != nil {
			return err
		}
	}
}
