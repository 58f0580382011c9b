package line

import (
	"context"
	"errors"
	"fmt"
	"path"

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
	node     zk.Node
	leaving  bool // another node of ours is deleted by the same transaction
	tries    int
	resent   bool // what was asked right behind the first creation has been answered before the node was made
	created  func(context.Context) (zk.Created, error)
	look     func(context.Context) error
	standing bool  // the node is there, and place has it
	final    error // why there is none and will be none
}

// Ask sends the request for a place, and does not wait for the answer.
func (l *Line) Ask(sess *zk.Session) *Entry {
	p := &Place{line: l, sess: sess, guid: NewGUID(), ahead: unlooked}
	e := &Entry{place: p, own: []part{{l.Dir, l.Prefix(p.guid)}}}
	e.node = zk.Node{Path: e.own[0].path(), Data: l.Data(), Mode: zk.EphemeralSequential, ACL: l.ACL}
	create := creation(p.create)
	if leaving := l.overtake(sess); leaving != nil {
		e.leaving = true
		create = leaving.replace(p)
	}
	e.created, e.look = create(sess, e.node)
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
		return e.place, nil
	case ctx.Err() != nil:
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
		go withdraw(e.place.sess, e.own, single(e.created))
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
	c, err := e.created(ctx)
	switch {
	case err == nil:
		return e.take(c)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.sess.Err() != nil:
		return p.sess.Err() // the node, if it was made, ends with the session
	case zk.OutcomeOf(err) == zk.Unknown:
		found, err := find(ctx, p.sess, e.own)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			e.look = p.look
			return e.take(found[0])
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
	default:
		return err
	}
	e.leaving, e.resent = false, true
	e.created, e.look = p.create(p.sess, e.node)
	return nil
}

// take makes c our node.
func (e *Entry) take(c zk.Created) error {
	p := e.place
	e.standing = true
	p.node = c
	seat, ok := ParseSeat(path.Base(c.Path), p.line.Markers)
	p.seat = seat
	switch {
	case !ok:
		return fmt.Errorf("line: the server named our node %q, which no contender is named like", c.Path)
	case c.Stat.EphemeralOwner != p.sess.ID():
		// A node that a server finds for us is ours only if it belongs to the live session. One of an older session is about to
		// vanish, and whoever took it for theirs would hold nothing (CURATOR-498, CURATOR-604).
		return ErrGone
	}
	return nil
}

// A creation has been sent. Created waits for its answer, and may be called again after its context ended; look finds out then who is ahead.
type creation func(sess *zk.Session, node zk.Node) (created func(context.Context) (zk.Created, error), look func(context.Context) error)

// create sends the creation of our node and the listing of the line, in one write.
func (p *Place) create(sess *zk.Session, node zk.Node) (created func(context.Context) (zk.Created, error), look func(context.Context) error) {
	b := sess.Batch()
	made := b.CreateNode(node)
	listed := b.Children(p.line.Dir)
	b.Send()
	return made.Get, func(ctx context.Context) error { return p.lookAt(ctx, listed) }
}

// MakeDir makes the line's path, unless it is there.
func (l *Line) MakeDir(ctx context.Context, sess *zk.Session) error {
	return l.makeParents(ctx, sess, l.Dir)
}

// makeParents makes dir and what is missing above it, as containers, which servers remove when they are empty again, unless they are to
// last. It works from the leaf upward, because the ancestors may be closed to us (CURATOR-715).
func (l *Line) makeParents(ctx context.Context, sess *zk.Session, dir string) error {
	mode := zk.Container
	if l.Lasting {
		mode = zk.Persistent
	}
	for {
		_, err := sess.CreateNode(ctx, zk.Node{Path: dir, Mode: mode, ACL: l.ACL})
		switch {
		case err == nil || errors.Is(err, zk.NodeExists):
			return nil
		case errors.Is(err, zk.NoNode) && path.Dir(dir) != dir:
			if err := l.makeParents(ctx, sess, path.Dir(dir)); err != nil {
				return err
			}
		case errors.Is(err, zk.Unimplemented) && mode == zk.Container:
			mode = zk.Persistent // a server before 3.5.3
		default:
			if err := settle(ctx, sess, err); err != nil {
				return err
			}
		}
	}
}
