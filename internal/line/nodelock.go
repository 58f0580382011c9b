package line

// A lock that is one node.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/internal/attempt"
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

// TryTake is Take for a caller that does not wait. It returns nil if another contender has the node, as a rule after
// one read.
func (l *NodeLock) TryTake(ctx context.Context, sess *zk.Session) (*Own, error) {
	switch _, exists, err := sess.Exists(ctx, l.Path); {
	case err != nil:
		return nil, err
	case exists:
		return nil, l.Line.checkACL(ctx, sess)
	}
	own, err := l.Take(ctx, sess, func() error { return errTaken })
	if errors.Is(err, errTaken) {
		return nil, nil
	}
	return own, err
}

// errTaken says that another contender has the node.
var errTaken = errors.New("the node exists")

// Take makes the node, and waits until it can. Full is called whenever another contender has it, and ends the attempt
// with its error if it returns one.
//
// If Take returns an error, no node of ours is left behind, or its removal goes on in the background until it is done
// or the session has ended: also if ctx ends or the connection breaks before the answer came.
func (l *NodeLock) Take(ctx context.Context, sess *zk.Session, full func() error) (*Own, error) {
	tries := 0
	for {
		guid := attempt.NewGUID()
		made := func(data []byte) bool { return l.Ours(data, guid) }
		names := []name{{Dir: l.Line.Dir, Prefix: l.Path[len(attempt.Join(l.Line.Dir, "")):], Fixed: true, Made: made}}
		b := sess.Batch()
		node := zk.Node{Path: l.Path, Data: l.Data(guid), Mode: zk.Ephemeral, ACL: l.Line.ACL}
		creation, _ := attempt.NewCreation(b, sess, names, nil, []zk.Node{node})
		b.Send()
		nodes, err := creation.Resolve(ctx)
		switch {
		case err == nil:
			own := &Own{sess: sess, watcher: &l.Line.watcher, shared: true}
			own.made(nodes)
			if nodes[0].Stat.EphemeralOwner != sess.ID() { // see Request.adopt
				return nil, ErrGone
			}
			if err := l.Line.checkACL(ctx, sess); err != nil {
				own.Release()
				return nil, err
			}
			return own, nil
		case ctx.Err() != nil || sess.Err() != nil:
			creation.Cancel()
			return nil, err
		case errors.Is(err, attempt.ErrLost):
			continue
		case errors.Is(err, zk.NoNode):
			if tries++; tries > attempt.MaxRemakes {
				return nil, attempt.Vanishes(l.Path, err)
			}
			err = l.Line.MakeDir(ctx, sess)
		case errors.Is(err, zk.NodeExists):
			if err = l.Line.checkACL(ctx, sess); err == nil { // or anyone can have made it
				err = l.awaitGone(ctx, sess, full)
			}
		default:
			if err = attempt.Again(ctx, sess, err); err != nil {
				creation.Cancel() // the search for it may be what was refused
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
			if err := attempt.Again(ctx, sess, err); err != nil {
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
