package queue

// Making claims.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// claimBehind claims the items of a segment from a place up to end, or as many as there is room for: it moves the
// ready list's cursor behind them, on condition that no other consumer has moved it, and creates a claim's node, in
// one transaction.
//
// All consumers share the cursor, and one that finds it moved has asked in vain. So a consumer that has met others
// here moves it further, and makes free claims of what it does not need: as many as consumers need at the same time,
// each of which is taken by itself.
func (f *fetcher) claimBehind(
	ready *segment.List, at claims.Place, end int, class string, version int32,
) (*claims.Lease, error) {
	room := f.room()
	if segment.Large([]byte(class)) {
		room = min(room, maxLarge)
	}
	s := claims.Range{First: at.Item, Last: end - 1, Class: segment.Class(class)}
	var free []claims.Range
	if f.spread > 1 && f.co.claims.FreeClaims() < maxPutBack/2 {
		free = s.From(at.Item + room).UpTo(at.Item + room*(1+min(2*f.spread, f.maxParts())) - 1).Cut(room)
	}
	s = s.UpTo(at.Item + room - 1)
	next := s.Last + 1
	if len(free) > 0 {
		next = free[len(free)-1].Last + 1
	}
	l := f.newLease(ready, at, s)
	cursor := segment.Cursor{Segment: at.Segment, Item: next}
	ops := append([]zk.Op{zk.SetOp(ready.Dir, cursor.Encode(), version)}, f.makeFree(ready, at, free)...)
	return l, f.make(l, ops...)
}

// makeFree returns the operations that create free claims, and change the ready list's change node: waiting consumers
// may have looked for free claims before, and at the cursor afterwards.
func (f *fetcher) makeFree(ready *segment.List, at claims.Place, free []claims.Range) []zk.Op {
	var ops []zk.Op
	for _, s := range free {
		path := f.co.freePath(at.At(s.First))
		ops = append(ops, f.co.q.layout.store.CreateOp(path, s.Encode()))
	}
	if len(free) > 0 {
		ops = append(ops, zk.SetOp(ready.Change, nil, -1))
	}
	return ops
}

// maxParts is how many free claims one transaction may create: those that fit into a packet, and no more than are
// taken while they are fresh.
func (f *fetcher) maxParts() int {
	each := 3*segment.OpSize + len(f.co.q.layout.root) + f.co.q.layout.store.ACLSize()
	return max(1, min(64, (f.co.q.cfg.MaxPacket-headroom)/each))
}

// newLease returns what is to be a claim of a range that begins at a place.
func (f *fetcher) newLease(ready *segment.List, at claims.Place, s claims.Range) *claims.Lease {
	path := f.co.q.layout.path(dirClaims, claimName(at, f.co.id, f.co.nextSerial()))
	return f.co.claims.NewLease(path, ready, at, s, f.takers.demand())
}

// errTaken says that another consumer was quicker to claim the same.
var errTaken = fmt.Errorf("%w, and has claimed the same", errAgain)

// make creates a claim's node in one transaction with other operations, the first of which is refused if another
// consumer was quicker: then it returns errTaken.
func (f *fetcher) make(l *claims.Lease, ops ...zk.Op) error {
	q := f.co.q
	ops = append([]zk.Op{zk.CheckOp(f.co.node, -1), q.layout.store.CreateOp(l.Path, l.Range().Encode())}, ops...)
	own := len(ops)
	ops = append(ops, zk.CheckOp(q.layout.path(dirGate), f.gate))
	if f.limit != nil {
		ops = append(ops, f.limit.op(q, l.Size))
	}
	for {
		results, err := f.co.sess.Multi(f.co.ctx, ops...)
		if err == nil {
			l.Token = results[0].Zxid
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0:
			f.co.Gone(f.co.node)
			return f.co.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			q.recheckNodes()
			return errAgain
		case refused && failed.Index >= own && errors.Is(failed, zk.BadVersion):
			// Another consumer has used the rate, or the gate node has changed: then the event of its watch came before
			// this reply, so that the next step looks at the node anew.
			return errAgain
		case refused && failed.Index == 2 && (errors.Is(failed, zk.BadVersion) || errors.Is(failed, zk.NoNode)):
			f.metOthers()
			return errTaken
		case refused && errors.Is(failed, zk.NoNode): // another client has removed the change node, or the directory
			q.recheckNodes()
			return cmp.Or(l.List.Mend(f.co.ctx, f.co.sess), errAgain)
		case zk.OutcomeOf(err) != zk.Unknown:
			if err := f.co.again(err); err != nil {
				return err
			}
			continue
		}
		// No other consumer creates a node of this name: it tells whether we have.
		there, err := f.co.exist(l.Path)
		if err != nil {
			return err
		}
		if there[0].Exists {
			l.Token = there[0].Stat.Czxid
			return nil
		}
	}
}

// remaining is exist for nodes that only the owner of this consumer's claims removes. It returns ErrClaimLost if the
// consumer's node is not its own any more: then another consumer may have removed them.
func (co *claimant) remaining(paths ...string) ([]zk.Existence, error) {
	there, err := co.exist(append(slices.Clone(paths), co.node)...) // the node last: it was there when the others went
	if err != nil {
		return nil, err
	}
	return there[:len(paths)], co.stillOwner(there[len(paths)])
}

// stillOwner returns ErrClaimLost if the consumer's node is not its own any more.
func (co *claimant) stillOwner(node zk.Existence) error {
	if node.Exists && !co.replaced(node.Stat) {
		return nil
	}
	co.Gone(co.node)
	return co.err()
}

// exist tells which nodes exist, after everything that this session has sent before was done or never will be.
func (co *claimant) exist(paths ...string) ([]zk.Existence, error) {
	there, err := attempt.Ask(co.ctx, co.sess, func() ([]zk.Existence, error) {
		b := co.sess.Batch()
		passed := attempt.Fence(b)
		looks := make([]*zk.Future[zk.Existence], len(paths))
		for i, path := range paths {
			looks[i] = b.Exists(path)
		}
		b.Send()
		there := make([]zk.Existence, len(paths))
		err := passed(co.ctx)
		for i := 0; i < len(looks) && err == nil; i++ {
			there[i], err = looks[i].Get(co.ctx)
		}
		return there, err
	})
	if err != nil {
		return nil, co.orLost(err)
	}
	return there, nil
}
