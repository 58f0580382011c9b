package line

// A contender that changes its kind and keeps its number.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// beside returns a contender at p's number in the line to, whose nodes are not made yet, and the names of its nodes.
func (p *position) beside(to *Line) (*position, []name) {
	own := &Own{sess: p.own.sess, watcher: &to.watcher}
	next := &position{own: own, line: to}
	own.positions = []*position{next}
	names := to.names(attempt.NewGUID())
	nodes := make([]zk.Created, len(names))
	for i := range names {
		// The names are all of ours to choose: they are not sequential. As the server prints numbers, so that others
		// can read them. A second node has the next number.
		names[i].Prefix += fmt.Sprintf("%010d", p.self.Seq+int32(i))
		nodes[i].Path = names[i].Path()
	}
	own.made(nodes)
	next.self, _ = ParseContender(path.Base(next.nodes[0].path), to.Markers)
	return next, names
}

// Become exchanges our nodes for those of another kind where they stand: to is a line of the same path, and the new
// nodes have the old ones' numbers, and that data. Both happen in one transaction, so that no waiter finds our number
// free (CURATOR-621). It returns the new contender, and the old one is over; or it returns an error, and the old one is
// unchanged. The error is ErrGone if another client deleted its node.
//
// It waits for the outcome until the session ends, so that the caller always knows what it holds.
func (o *Own) Become(to *Line, data []byte) (*Own, error) {
	ctx, p := o.sess.Context(), o.positions[0]
	next, names := p.beside(to)
	ops := attempt.Deletions(o.Paths())
	if p.mark != "" { // the new node has a mark of its own
		next.mark, next.delay, next.started = attempt.Join(path.Dir(p.mark), next.self.Name), p.delay, true
		ops = append(ops, zk.CreateNodeOp(next.marked()), zk.DeleteOp(p.mark, -1))
	}
	for lost := false; ; {
		// The creations come first: if only the answer to an earlier attempt was lost, they are what is refused.
		b := o.sess.Batch()
		var all []zk.Op
		for _, n := range to.creations(names, zk.Ephemeral, data) {
			all = append(all, zk.CreateNodeOp(n))
		}
		both := b.Multi(slices.Concat(all, ops)...)
		b.Send()
		_, err := both.Get(ctx)
		switch {
		case err == nil, errors.Is(err, zk.NodeExists):
			closeAll(o.takeWatches(true))
			return next.own, nil
		case o.sess.Err() != nil:
			return nil, o.sess.Err()
		case errors.Is(err, zk.NoNode):
			return nil, ErrGone
		default: // after a lost answer, the next attempt finds out
			lost = lost || zk.OutcomeOf(err) == zk.Unknown
			if err := attempt.Again(ctx, o.sess, err); err == nil || zk.OutcomeOf(err) != zk.Refused {
				continue
			}
			if lost {
				earlier := attempt.Creation{Sess: o.sess, Names: names}
				earlier.Answer = func(context.Context) ([]zk.Created, error) { return nil, zk.ErrConnectionLost }
				if _, missing := earlier.Resolve(ctx); missing == nil {
					closeAll(o.takeWatches(true))
					return next.own, nil
				}
			}
			return nil, err
		}
	}
}

// Beside makes a second contender of ours where the first stands: to is a line of the same path, and the new node has
// the old one's number, and that data. It returns the new one, and the contenders in the line when both were there. If
// it returns an error, there is no new node, or its removal goes on in the background; the error is ErrGone if another
// client deleted the old node.
func (o *Own) Beside(ctx context.Context, to *Line, data []byte) (*Own, []Contender, error) {
	p := o.positions[0]
	for {
		next, names := p.beside(to)
		b := o.sess.Batch()
		made, _ := attempt.NewCreation(b, o.sess, names, nil, to.creations(names, zk.Ephemeral, data))
		listed := b.Children(to.Dir)
		b.Send()
		_, err := made.Resolve(ctx)
		switch {
		case err == nil:
			contenders, err := p.contenders(ctx, listed)
			if err != nil {
				next.own.Release()
				return nil, nil, err
			}
			return next.own, contenders, nil
		case ctx.Err() != nil:
			made.Cancel()
			return nil, nil, context.Cause(ctx)
		case errors.Is(err, zk.NoNode):
			return nil, nil, ErrGone
		case errors.Is(err, attempt.ErrLost):
		default:
			if err := attempt.Again(ctx, o.sess, err); err != nil {
				made.Cancel() // the search for it may be what was refused
				return nil, nil, err
			}
		}
	}
}

// Succeed releases old, beside which o was made: others wait for o from now on. If it returns an error, old is
// unchanged, and the caller releases o.
func (o *Own) Succeed(ctx context.Context, old *Own) error {
	if err := o.positions[0].startLike(ctx, old.positions[0]); err != nil {
		return err
	}
	old.Release()
	return nil
}
