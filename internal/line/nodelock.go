package line

// A lock that is one node.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// A NodeLock is one node that all its contenders try to make, and all watch: there is no line, and the quickest wins.
//
// All its nodes have one name, so neither a name nor a number tells whose the node is. The random identifier in its
// data tells, together with the session that the node belongs to; later, the transaction that made it does.
type NodeLock struct {
	Line *Line                               // the parent's; for its parents and ACL
	Path string                              // of the node
	Data func(guid string) []byte            // what a new node carries
	Ours func(data []byte, guid string) bool // whether it carries that identifier
}

// Take makes the node, and waits until it can. Full is called whenever another contender has it, and ends the attempt
// with its error if it returns one.
//
// If Take returns an error, no node of ours is left behind, or its removal goes on in the background until it is done
// or the session has ended: also if ctx ends or the connection breaks before the answer came.
func (l *NodeLock) Take(ctx context.Context, sess *zk.Session, full func() error) (*Own, error) {
	tries := 0
	for {
		guid := NewGUID()
		made := func(data []byte) bool { return l.Ours(data, guid) }
		names := []name{{dir: l.Line.Dir, prefix: l.Path[len(join(l.Line.Dir, "")):], fixed: true, made: made}}
		b := sess.Batch()
		node := zk.Node{Path: l.Path, Data: l.Data(guid), Mode: zk.Ephemeral, ACL: l.Line.ACL}
		answer := create(b, sess, nil, []zk.Node{node})
		b.Send()
		nodes, err := resolve(ctx, sess, names, answer)
		switch {
		case err == nil:
			own := &Own{sess: sess, watcher: &l.Line.watcher, shared: true}
			own.made(nodes)
			if nodes[0].Stat.EphemeralOwner != sess.ID() { // see Request.adopt
				return nil, ErrGone
			}
			return own, nil
		case ctx.Err() != nil || sess.Err() != nil:
			go cancelCreation(sess, names, answer)
			return nil, err
		case errors.Is(err, errLost):
			continue
		case errors.Is(err, zk.NoNode):
			if tries++; tries > maxTries {
				return nil, vanishes(l.Path, err)
			}
			err = l.Line.MakeDir(ctx, sess)
		case errors.Is(err, zk.NodeExists):
			err = l.awaitGone(ctx, sess, full)
		default:
			if err = AwaitRetry(ctx, sess, err); err != nil {
				go cancelCreation(sess, names, answer) // the search for it may be what was refused
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// awaitGone waits until no contender has the node.
func (l *NodeLock) awaitGone(ctx context.Context, sess *zk.Session, full func() error) error {
	for {
		// With getData, which leaves no watch where there is no node (CURATOR-217).
		_, _, watch, err := sess.GetW(ctx, l.Path)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err != nil {
			if err := AwaitRetry(ctx, sess, err); err != nil {
				return err
			}
			continue
		}
		if err := full(); err != nil {
			watch.Close()
			return err
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return err
		}
	}
}

// releaseShared deletes our node, whose name other contenders use as well. It looks before each attempt, because the
// answer to a removal may be lost, and the node may be the next contender's by then. After a lost answer it looks
// behind a barrier: a removal that was on its way when the connection broke is not applied after that, unless a
// partition holds it up as sweep tells. A removal that is held up may remove the next holder's node. So may one that
// comes after another client has deleted the node by hand, between the look and the removal, and the next holder has
// made it again.
func (o *Own) releaseShared() *Removal {
	return RemoveBy(func() error {
		for lost := false; ; lost = true {
			err := o.removeShared(lost)
			switch {
			case err == nil, o.sess.Err() != nil:
				return nil //nolint:nilerr // an ephemeral node ends with its session
			case errors.Is(err, zk.NoAuth), errors.Is(err, zk.BadArguments):
				return err
			case zk.OutcomeOf(err) == zk.Refused && !errors.Is(err, zk.BadVersion):
				_ = pause(context.Background(), o.sess)
			}
		}
	})
}

func (o *Own) removeShared(lost bool) error {
	ctx, n := context.Background(), o.nodes[0]
	b := o.sess.Batch()
	passed := func(context.Context) error { return nil }
	if lost {
		passed = Barrier(b, n.path)
	}
	seen := b.Get(n.path)
	b.Send()
	if err := passed(ctx); err != nil {
		return err
	}
	node, err := seen.Get(ctx)
	if err == nil && node.Stat.Czxid == n.stat.Czxid {
		err = o.sess.Delete(ctx, n.path, node.Stat.Version)
	}
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	return err
}
