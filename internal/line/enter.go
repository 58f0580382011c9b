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
	p := &Place{line: l, sess: sess, guid: NewGUID(), ahead: unlooked}
	own := []part{{l.Dir, l.Prefix(p.guid)}}
	node := zk.Node{Path: own[0].path(), Data: l.Data(), Mode: zk.EphemeralSequential, ACL: l.ACL}
	for try, leaving := 0, l.overtake(sess); ; leaving = nil {
		create := creation(p.create)
		if leaving != nil {
			create = leaving.replace(p)
		}
		created, look := create(sess, node)
		c, err := created(ctx)
		switch {
		case err == nil:
			return p.take(ctx, c, look)
		case ctx.Err() != nil:
			go withdraw(sess, own, single(created))
			return nil, context.Cause(ctx)
		case sess.Err() != nil:
			return nil, sess.Err() // the node, if it was made, ends with the session
		case zk.OutcomeOf(err) == zk.Unknown:
			found, err := find(ctx, sess, own)
			switch {
			case err != nil:
				go withdraw(sess, own, single(created))
				return nil, err
			case len(found) > 0:
				return p.take(ctx, found[0], p.look)
			}
		case leaving != nil:
			// Refused, most likely because somebody has deleted the old node. It is seen to; the new one is made the ordinary way.
		case errors.Is(err, zk.NoNode):
			if try++; try > maxTries {
				return nil, fmt.Errorf("line: the parents of %s vanish as often as they are made: %w", l.Dir, err)
			}
			if err := l.makeParents(ctx, sess, l.Dir); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// A creation has been sent. Created waits for its answer, and may be called again after its context ended; look finds out then who is ahead.
type creation func(sess *zk.Session, node zk.Node) (created func(context.Context) (zk.Created, error), look func(context.Context) error)

// create sends the creation of our node and the listing of the line, in one write.
func (p *Place) create(sess *zk.Session, node zk.Node) (created func(context.Context) (zk.Created, error), look func(context.Context) error) {
	b := sess.Batch()
	made := b.CreateNode(node)
	listed := b.Children(p.line.Dir)
	b.Send()
	return made.Get, func(ctx context.Context) error {
		children, err := listed.Get(ctx)
		if err == nil {
			return p.see(children.Names)
		}
		if err := settle(ctx, sess, err); err != nil {
			return err
		}
		return p.look(ctx)
	}
}

// take makes c our node and looks at the line.
func (p *Place) take(ctx context.Context, c zk.Created, look func(context.Context) error) (*Place, error) {
	p.node = c
	seat, ok := ParseSeat(path.Base(c.Path), p.line.Markers)
	p.seat = seat
	err := fmt.Errorf("line: the server named our node %q, which no contender is named like", c.Path)
	switch {
	case ok && c.Stat.EphemeralOwner != p.sess.ID():
		// A node that a server finds for us is ours only if it belongs to the live session. One of an older session is about to
		// vanish, and whoever took it for theirs would hold nothing (CURATOR-498, CURATOR-604).
		err = ErrGone
	case ok:
		err = look(ctx)
	}
	if err != nil {
		p.Leave()
		return nil, err
	}
	return p, nil
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
