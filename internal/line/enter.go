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
	own := l.parts(p.guid)
	nodes := l.nodes(own)
	for try, leaving := 0, l.overtake(sess); ; leaving = nil {
		create := creation(p.create)
		if leaving != nil {
			create = leaving.replace(p)
		}
		created, look := create(sess, nodes)
		made, err := created(ctx)
		switch {
		case err == nil:
			return p.take(ctx, made, look)
		case ctx.Err() != nil:
			go withdraw(sess, own, created)
			return nil, context.Cause(ctx)
		case sess.Err() != nil:
			return nil, sess.Err() // the node, if it was made, ends with the session
		case zk.OutcomeOf(err) == zk.Unknown:
			found, err := find(ctx, sess, own)
			switch {
			case err != nil:
				go withdraw(sess, own, created)
				return nil, err
			case len(found) == len(own):
				return p.take(ctx, found, p.look)
			case len(found) > 0: // they came together, so somebody has deleted the other
				OwnBundle(sess, found...).Leave()
				return nil, ErrGone
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
type creation func(sess *zk.Session, nodes []zk.Node) (created func(context.Context) ([]zk.Created, error), look func(context.Context) error)

// create sends the creation of our nodes and the listing of the line, in one write.
func (p *Place) create(sess *zk.Session, nodes []zk.Node) (created func(context.Context) ([]zk.Created, error), look func(context.Context) error) {
	b := sess.Batch()
	created = makeNodes(b, sess, nodes)
	listed := b.Children(p.line.Dir)
	b.Send()
	return created, func(ctx context.Context) error {
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

// makeNodes adds the creation of nodes to a batch: all of them or none.
func makeNodes(b *zk.Batch, sess *zk.Session, nodes []zk.Node) func(context.Context) ([]zk.Created, error) {
	if len(nodes) == 1 {
		return single(b.CreateNode(nodes[0]).Get)
	}
	all := b.Multi(creations(nodes)...)
	return func(ctx context.Context) ([]zk.Created, error) { return createdBy(ctx, sess, all, len(nodes), 0) }
}

// take makes the nodes ours and looks at the line.
func (p *Place) take(ctx context.Context, nodes []zk.Created, look func(context.Context) error) (*Place, error) {
	ok := p.stand(nodes)
	err := fmt.Errorf("line: the server named our node %q, which no contender is named like", p.node.Path)
	switch {
	case ok && p.node.Stat.EphemeralOwner != p.sess.ID():
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

// stand makes the nodes ours: as many as the line has for each contender. It reports whether they are named as contenders are.
func (p *Place) stand(nodes []zk.Created) bool {
	var ok bool
	p.node = nodes[0]
	p.seat, ok = ParseSeat(path.Base(p.node.Path), p.line.Markers)
	if len(nodes) > 1 {
		p.twin = OwnBundle(p.sess, nodes[1:]...)
	}
	return ok
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
