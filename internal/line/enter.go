package line

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// maxTries bounds how often a node is created anew after its parent vanished in between. Containers are collected when they are
// empty, so once is ordinary and ten times in a row is somebody deleting them.
const maxTries = 10

// Enter takes a place at the end of the line: one request creates our node and the next, in the same write, lists the line.
//
// If it returns an error, no node is left behind, or its removal goes on in the background until it is done or the session has ended:
// also if ctx ends or the connection breaks before the answer came, when nobody knows whether the node was made. Then it is
// searched for by the random part of its name (CURATOR-79).
func (l *Line) Enter(ctx context.Context, sess *zk.Session) (*Place, error) {
	e := l.Ask(sess)
	p, err := e.Place(ctx)
	if err != nil {
		e.Abandon()
	}
	return p, err
}

// An Entry is a place that has been asked for. One goroutine at a time may use it; it is to be used until Place returns a place or Abandon
// is called, or the node stays in the line for as long as the session.
type Entry struct {
	place    *Place
	own      []part
	nodes    []zk.Node
	leaving  bool // another node of ours is deleted by the same transaction
	tries    int
	resent   bool // what was asked right behind the first creation has been answered before the node was made
	created  func(context.Context) ([]zk.Created, error)
	look     func(context.Context) error
	standing bool  // the node is there, and place has it
	refused  error // why the node that is there is not to be used
	final    error // why there is none and will be none
}

// Ask sends the request for a place, and does not wait for the answer.
func (l *Line) Ask(sess *zk.Session) *Entry {
	p := &Place{line: l, sess: sess, guid: NewGUID(), ahead: unlooked}
	e := &Entry{place: p, own: l.parts(p.guid)}
	e.nodes = l.nodes(e.own)
	create := creation(p.create)
	if leaving := l.overtake(sess); leaving != nil {
		e.leaving = true
		create = leaving.replace(p)
	}
	e.created, e.look = create(sess, e.nodes)
	return e
}

// Session returns the session that the place belongs to.
func (e *Entry) Session() *zk.Session { return e.place.sess }

// Place waits for the place. An error is final, and leaves nothing behind, unless ctx has ended: then it is ctx's cause, nothing is given up,
// and another call goes on waiting where this one stopped.
func (e *Entry) Place(ctx context.Context) (*Place, error) {
	if e.final != nil {
		return nil, e.final
	}
	err := e.await(ctx)
	switch {
	case err == nil:
		if e.place.First() {
			e.place.line.lead(e.place)
		}
		return e.place, nil
	case ctx.Err() != nil && e.refused == nil:
		return nil, context.Cause(ctx)
	default:
		e.Abandon()
		e.final = err
		return nil, err
	}
}

// Abandon gives the place up, whatever has become of it.
func (e *Entry) Abandon() {
	switch {
	case e.final != nil:
		return
	case e.standing:
		e.place.Leave()
	default:
		e.place.abandonEarly()
		go withdraw(e.place.sess, e.own, e.created)
	}
	e.final = ErrGone
}

// await waits until the node is made and the line has been looked at.
func (e *Entry) await(ctx context.Context) error {
	for !e.standing {
		if err := e.make(ctx); err != nil {
			return err
		}
	}
	if e.place.ahead != unlooked {
		return nil
	}
	return e.look(ctx)
}

// make waits for the answer of the creation that was sent last, and sends another if that is what it takes.
func (e *Entry) make(ctx context.Context) error {
	p := e.place
	made, err := e.created(ctx)
	switch {
	case err == nil:
		return e.take(made)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.sess.Err() != nil:
		return p.sess.Err() // the node, if it was made, ends with the session
	case zk.OutcomeOf(err) == zk.Unknown:
		found, err := find(ctx, p.sess, e.own)
		if err != nil {
			return err
		}
		switch len(found) {
		case 0:
			go sweep(p.sess, e.own)
			p.guid = NewGUID()
			e.own = p.line.parts(p.guid)
			e.nodes = p.line.nodes(e.own)
		case len(e.own):
			e.look = func(ctx context.Context) error { return p.look(ctx, nil) }
			return e.take(found)
		default:
			return ErrGone // they came together, so somebody has deleted the other
		}
	case e.leaving:
		// Refused, most likely because somebody has deleted the old node. It is seen to; the new one is made the ordinary way.
	case errors.Is(err, zk.NoNode):
		if e.tries++; e.tries > maxTries {
			return fmt.Errorf("line: the parents of %s vanish as often as they are made: %w", p.line.Dir, err)
		}
		if err := p.line.makeParents(ctx, p.sess, p.line.Dir); err != nil {
			return err
		}
	default: // nothing was made
		if err := Settle(ctx, p.sess, err); err != nil {
			return err
		}
	}
	e.leaving, e.resent = false, true
	p.abandonEarly()
	e.created, e.look = p.create(p.sess, e.nodes)
	return nil
}

// take makes the nodes ours.
func (e *Entry) take(nodes []zk.Created) error {
	p := e.place
	e.standing = true
	e.refused = p.stand(nodes)
	if p.node.Stat.EphemeralOwner != p.sess.ID() {
		// A node that a server finds for us is ours only if it belongs to the live session. One of an older session is about to
		// vanish, and whoever took it for theirs would hold nothing (CURATOR-498, CURATOR-604).
		e.refused = ErrGone
	}
	return e.refused
}

// A creation has been sent. Created waits for its answer, and may be called again after its context ended; look finds out then who is ahead.
type creation func(sess *zk.Session, nodes []zk.Node) (created func(context.Context) ([]zk.Created, error), look func(context.Context) error)

// create sends the creation of our nodes and the listing of the line, in one write.
func (p *Place) create(sess *zk.Session, nodes []zk.Node) (created func(context.Context) ([]zk.Created, error), look func(context.Context) error) {
	b := sess.Batch()
	created = makeNodes(b, sess, nodes)
	listed := b.Children(p.line.Dir)
	b.Send()
	return created, func(ctx context.Context) error { return p.look(ctx, listed) }
}

// makeNodes adds the creation of nodes to a batch: all of them or none.
func makeNodes(b *zk.Batch, sess *zk.Session, nodes []zk.Node) func(context.Context) ([]zk.Created, error) {
	if len(nodes) == 1 {
		return single(b.CreateNode(nodes[0]).Get)
	}
	all := b.Multi(creations(nodes)...)
	return func(ctx context.Context) ([]zk.Created, error) { return createdBy(ctx, sess, all, len(nodes), 0) }
}

// stand makes the nodes ours: as many as the line has for each contender. If it returns an error, they are not named as contenders are, or
// their numbers are used up, and the place is to be left.
func (p *Place) stand(nodes []zk.Created) error {
	var ok bool
	p.node = nodes[0]
	p.seat, ok = ParseSeat(path.Base(p.node.Path), p.line.Markers)
	if len(nodes) > 1 {
		p.twin = OwnBundle(p.sess, nodes[1:]...)
	}
	if !ok {
		return fmt.Errorf("line: the server named our node %q, which no contender is named like", p.node.Path)
	}
	return p.line.checkNumber(p.seat.Seq)
}

// parts are the nodes of one contender.
func (l *Line) parts(guid string) []part {
	parts := []part{{l.Dir, l.Prefix(guid)}}
	if l.Twin != nil {
		parts = append(parts, part{l.Dir, l.Twin(guid)})
	}
	return parts
}

// width is how many nodes a contender has.
func (l *Line) width() int {
	if l.Twin != nil {
		return 2
	}
	return 1
}

// nodes are the nodes to create for parts.
func (l *Line) nodes(parts []part) []zk.Node {
	data := l.Data()
	nodes := make([]zk.Node, len(parts))
	for i, p := range parts {
		nodes[i] = zk.Node{Path: p.path(), Data: data, Mode: zk.EphemeralSequential, ACL: l.ACL}
	}
	return nodes
}

// MakeDir makes the line's path, unless it is there.
func (l *Line) MakeDir(ctx context.Context, sess *zk.Session) error {
	return l.makeParents(ctx, sess, l.Dir)
}

// makeParents makes dirs and what is missing above them, as containers, which servers remove when they are empty
// again, unless they are to last. It works from the leaves upward, because the ancestors may be closed to us
// (CURATOR-715): all that are wanted at a time leave in one write, so that many cost as many round trips as one.
func (l *Line) makeParents(ctx context.Context, sess *zk.Session, dirs ...string) error {
	mode := zk.Container
	if l.Lasting {
		mode = zk.Persistent
	}
	for len(dirs) > 0 {
		b := sess.Batch()
		made := make([]*zk.Future[zk.Created], len(dirs))
		for i, dir := range dirs {
			made[i] = b.CreateNode(zk.Node{Path: dir, Mode: mode, ACL: l.ACL})
		}
		b.Send()
		var missing, above []string
		var refused error
		next := mode
		for i, dir := range dirs {
			_, err := made[i].Get(ctx)
			switch {
			case err == nil || errors.Is(err, zk.NodeExists):
				continue
			case errors.Is(err, zk.NoNode) && path.Dir(dir) != dir:
				above = append(above, path.Dir(dir))
			case errors.Is(err, zk.Unimplemented) && mode == zk.Container:
				next = zk.Persistent // a server before 3.5.3
			case refused == nil || Passing(refused):
				refused = err // of several, one that does not pass
			}
			missing = append(missing, dir)
		}
		if refused != nil {
			if err := Settle(ctx, sess, refused); err != nil {
				return err
			}
		}
		slices.Sort(above)
		if err := l.makeParents(ctx, sess, slices.Compact(above)...); err != nil {
			return err
		}
		dirs, mode = missing, next
	}
	return nil
}
