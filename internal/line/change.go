package line

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// beside is a place at p's number, in the line to, that has no node yet.
func (p *Place) beside(to *Line) *Place {
	next := &Place{line: to, sess: p.sess, guid: NewGUID()}
	// The name is all of ours to choose: it is not sequential. As the server prints numbers, so that others can read it.
	next.seat.Name = to.Prefix(next.guid) + fmt.Sprintf("%010d", p.seat.Seq)
	next.node.Path = join(to.Dir, next.seat.Name)
	next.seat, _ = ParseSeat(next.seat.Name, to.Markers)
	if to.Twin != nil { // which stands at our twin's number
		next.twin = OwnBundle(p.sess, zk.Created{Path: join(to.Dir, to.Twin(next.guid)+fmt.Sprintf("%010d", p.seat.Seq+1))})
	}
	return next
}

// wanted are the nodes of a place that has none yet.
func (p *Place) wanted() []zk.Node {
	data := p.line.Data()
	paths := p.Paths()
	nodes := make([]zk.Node, len(paths))
	for i, node := range paths {
		nodes[i] = zk.Node{Path: node, Data: data, Mode: zk.Ephemeral, ACL: p.line.ACL}
	}
	return nodes
}

// named are the nodes of a place whose names are whole.
func (p *Place) named() []part {
	var parts []part
	for _, node := range p.Paths() {
		parts = append(parts, part{p.line.Dir, path.Base(node)})
	}
	return parts
}

// Become exchanges our node for one of another kind where it stands: to is a line of the same path, and the new node has the old one's
// number. Both happen in one transaction, so that nobody who waits for the old node finds the place empty (CURATOR-621). It returns the
// new place and the old one is over; or it returns an error and the old one is what it was: ErrGone if its node was deleted by others.
//
// It ends with the session and not before, so that nobody is left in doubt what they hold.
func (p *Place) Become(to *Line) (*Place, error) {
	ctx := p.sess.Context()
	next := p.beside(to)
	for {
		b := p.sess.Batch()
		ops := creations(next.wanted())
		for _, old := range p.Paths() {
			ops = append(ops, zk.DeleteOp(old, -1))
		}
		if p.mark != "" { // the new node has a mark of its own
			next.mark, next.delay, next.started = join(path.Dir(p.mark), next.seat.Name), p.delay, true
			ops = append(ops, zk.CreateNodeOp(next.marked()), zk.DeleteOp(p.mark, -1))
		}
		both := b.Multi(ops...)
		b.Send()
		_, err := both.Get(ctx)
		switch {
		case err == nil, errors.Is(err, zk.NodeExists): // it exists if only the answer to an earlier attempt was lost
			p.retire()
			return next, nil
		case p.sess.Err() != nil:
			return nil, p.sess.Err()
		case errors.Is(err, zk.NoNode):
			return nil, ErrGone
		default: // if nobody knows, the next attempt finds out
			if err := Settle(ctx, p.sess, err); err != nil && zk.OutcomeOf(err) == zk.Refused {
				return nil, err
			}
		}
	}
}

// Beside makes a second node of ours where the first stands: to is a line of the same path, and the new node has the old one's number.
// It returns the new place, and who stood in the line when both were there. If it returns an error, there is no new node, or its removal
// goes on in the background; the error is ErrGone if the old node was deleted by others.
func (p *Place) Beside(ctx context.Context, to *Line) (*Place, []Seat, error) {
	next := p.beside(to)
	for {
		b := p.sess.Batch()
		made := makeNodes(b, p.sess, next.wanted())
		listed := b.Children(to.Dir)
		b.Send()
		_, err := made(ctx)
		switch {
		case err == nil, errors.Is(err, zk.NodeExists): // likewise
		case ctx.Err() != nil:
			go withdraw(p.sess, next.named(), made)
			return nil, nil, context.Cause(ctx)
		case p.sess.Err() != nil:
			return nil, nil, p.sess.Err()
		case errors.Is(err, zk.NoNode):
			return nil, nil, ErrGone
		case zk.OutcomeOf(err) == zk.Refused && !Passing(err):
			return nil, nil, err
		default:
			_ = Settle(ctx, p.sess, err) // if ctx ends meanwhile, the next attempt is withdrawn
			continue
		}
		seats, err := p.among(p.list(ctx, listed))
		if err != nil {
			next.Leave()
			return nil, nil, err
		}
		return next, seats, nil
	}
}

// Seats lists who stands in the line now. It returns ErrGone if our own node does not.
func (p *Place) Seats(ctx context.Context) ([]Seat, error) {
	return p.among(p.list(ctx, nil))
}

// among returns the seats that children are, without our second node. It returns ErrGone if we are not among them.
func (p *Place) among(children []string, err error) ([]Seat, error) {
	if err != nil {
		return nil, err
	}
	seats := Seats(children, p.line.Markers)
	if !p.whole(seats) {
		return nil, ErrGone
	}
	return slices.DeleteFunc(seats, func(s Seat) bool { return p.owns(s) && s.Name != p.seat.Name }), nil
}

// Succeed gives up old, beside which p was made: p is what others wait for from now on. If it returns an error, old is what it was, and p
// is to be left.
func (p *Place) Succeed(ctx context.Context, old *Place) error {
	if err := p.startLike(ctx, old); err != nil {
		return err
	}
	old.Leave()
	return nil
}

// Seat returns our seat.
func (p *Place) Seat() Seat { return p.seat }
