package queue

// The transactions that finish an item.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// removal says how an item is removed.
type removal struct {
	ops   []zk.Op              // the caller's, in the same transaction
	to    func() *segment.List // where data is appended; nil for nowhere
	data  []byte
	final bool // the item does not come again: the next one of its group is ready
}

// remove removes the item in one transaction with other operations, and appends data to another list, if there is
// one.
//
// The transaction checks that the claim's node exists. A consumer that takes a claim over removes that node, so a
// consumer that has lost its claim finishes nothing. Only the claim's owner removes the item's node, unless an operator
// does: if it does not exist after an unknown outcome, the item is finished. That is not enough to tell what became of
// operations of the caller's. For them the transaction also writes to a receipt.
func (it *Item) remove(r removal) error {
	co, path := it.co, it.Path()
	var receipt *attempt.Receipt
	defer func() { co.keep(receipt) }()
	for try := 1; ; try++ {
		if err := co.err(); err != nil {
			return err
		}
		var c *segment.List
		var end segment.Tail
		var next succession
		var err error
		if r.to != nil {
			c = r.to()
			end, err = c.Find(co.ctx, co.sess)
		}
		if err == nil && r.final && it.rec.Group != "" {
			next, err = co.q.succeed(co.ctx, co.sess, it.rec.Group)
		}
		p := co.q.layout.store.NewTxn()
		if err == nil {
			if c != nil {
				p.Assume(c, end)
				p.Append(c, r.data)
			}
			err = next.append(co.ctx, co.sess, p)
		}
		if err == nil && len(r.ops) > 0 && receipt == nil {
			receipt, err = co.receipts.Get(co.ctx, co.sess)
		}
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil:
			if err := co.mend(err); err != nil {
				return err
			}
			continue
		}
		co.marks.order.Lock()
		e := co.marks.begin(c == nil, it.lease)
		own := e.Ops()
		guards := slices.Concat([]zk.Op{zk.DeleteOp(path, -1), own[0]}, r.ops, next.ops, own[1:])
		claims := len(guards) // the index behind our operations on claims
		var stamp string
		if receipt != nil {
			var op zk.Op
			op, stamp = receipt.Stamp(0)
			guards = append(guards, op)
		}
		for _, op := range guards {
			p.Guard(op)
		}
		sent := co.send(p.Ops())
		co.marks.order.Unlock()
		results, err := sent.Get(co.ctx)
		if err == nil {
			p.Done(results)
			it.co.q.clock.saw(results[len(guards)-1].Stat.Mtime) // 0 unless the last guard has set something
			if receipt != nil {
				receipt.Done()
			}
			co.marks.end(e, true)
			co.handOut()
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			co.marks.end(e, false)
			co.finished(it.lease) // there is nothing left to claim
			return errItemRemoved
		case refused && errors.Is(failed, zk.NoNode) &&
			(failed.Index == 1 || failed.Index >= 2+len(r.ops)+len(next.ops) && failed.Index < claims):
			co.marks.end(e, false)
			co.claimRemoved()
			return co.err()
		case refused && failed.Index == claims && receipt != nil &&
			(errors.Is(failed, zk.NoNode) || errors.Is(failed, zk.BadVersion)):
			co.marks.end(e, false)
			receipt = nil // it was swept away
			continue
		case p.Stale(err), refused && next.changed(failed, 2+len(r.ops)):
			co.marks.end(e, false)
			continue
		case refused && failed.Index >= 2 && failed.Index < 2+len(r.ops):
			co.marks.end(e, false)
			return co.orLost(ofCaller(failed, 2, len(r.ops)))
		case zk.OutcomeOf(err) != zk.Unknown:
			co.marks.end(e, false)
			if err := co.again(err); err != nil {
				return err
			}
			continue
		}
		done, lookErr := co.wasDone(path, receipt, stamp)
		co.marks.end(e, done)
		co.handOut()
		if lookErr != nil {
			receipt = nil
		}
		switch {
		case done:
			return nil
		case lookErr != nil && !errors.Is(lookErr, attempt.ErrNotDone):
			return co.orLost(errors.Join(err, lookErr))
		}
		if try >= maxBroken && len(r.ops) > 0 {
			return fmt.Errorf("not done, and the connection broke %d times in a row; "+
				"do the servers accept a request of this size? %w", try, err)
		}
	}
}

// wasDone finds out whether a transaction without an answer was done that removes the item at path, and stamps the
// receipt unless that is nil. If it returns an error the receipt is of no use any more: attempt.ErrNotDone if the
// transaction was not done.
func (co *consumer) wasDone(path string, receipt *attempt.Receipt, stamp string) (bool, error) {
	if receipt != nil {
		session := func(context.Context) (*zk.Session, error) { return co.sess, co.err() }
		n, err := receipt.Resolve(co.ctx, session, []string{stamp}, co.q.clock.saw)
		switch {
		case err == nil:
			return n == 1, nil
		case !errors.Is(err, attempt.ErrGone):
			return false, unresolvedError{err}
		}
	}
	there, err := co.remaining(path)
	switch {
	case err != nil:
		return false, err
	case receipt == nil:
		return !there[0].Exists, nil
	case there[0].Exists:
		return false, attempt.ErrNotDone
	}
	return false, unresolvedError{errors.New("another client has removed the receipt")}
}

// keep gives back a receipt, if there is one. After Close nothing else would remove it.
func (co *consumer) keep(r *attempt.Receipt) {
	co.receipts.Put(r)
	if r == nil || co.q.ctx.Err() == nil {
		return
	}
	for _, r := range co.receipts.Drain() {
		attempt.Remove(co.sess, r.Path)
	}
}

// moveToDead moves the item to the dead letters. Last is a failed attempt to record; empty if there is none.
func (it *Item) moveToDead(reason, last string) error {
	dead := *it.rec
	dead.Priority, dead.Attempts = it.lease.Priority, it.attempt
	dead.Enqueued = it.EnqueuedAt().UnixMilli()
	dead.Delay, dead.Due = 0, 0
	dead.Reason = segment.Shorten(reason)
	if last != "" {
		dead.Failures = slices.Clone(dead.Failures)
		dead.Fail(it.co.q.clock.now(), last)
	}
	data := dead.Encode()
	if it.rec.Priority == corrupt && len(data) > it.co.q.largest() {
		// A node that is not an item may be as large as a packet, and then no transaction could hold it. It stays
		// where it is, and is not delivered: the cursor is behind it.
		it.co.finished(it.lease)
		return nil
	}
	err := it.remove(removal{to: it.co.q.layout.deadLetters, data: data, final: true})
	if err == nil {
		it.co.q.died()
	}
	if hook := it.co.q.cfg.Hooks.Dead; hook != nil && err == nil {
		hook(it.co.ctx, it.ID(), reason)
	}
	return err
}

// putBack makes the item free for all, in its old place: its claim excludes it from now on, and a free claim holds
// it. That claim counts so many tries beside the attempts that the item's data counts.
func (it *Item) putBack(tries int) error {
	l, co, q := it.lease, it.co, it.co.q
	if err := co.beginWrite(co.ctx, l); err != nil {
		return co.orLost(err)
	}
	defer l.EndWrite()
	for {
		if err := co.err(); err != nil {
			return err
		}
		kept, last := l.PutBack(it.seq)
		back := claims.Range{First: it.seq, Last: it.seq, Delivered: it.seq - 1, Tries: tries}
		own := zk.SetOp(l.Path, kept.Encode(), -1)
		if last {
			own = zk.DeleteOp(l.Path, -1)
		}
		_, err := co.sess.Multi(co.ctx, own,
			zk.CheckOp(it.Path(), -1),
			q.layout.store.CreateOp(co.freePath(l.At(it.seq)), back.Encode()),
			zk.SetOp(l.List.Change, nil, -1))
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			co.claimRemoved()
			return co.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			co.finished(it.lease) // there is nothing left to give back
			return errItemRemoved
		case refused && failed.Index == 3 && errors.Is(failed, zk.NoNode):
			if err := l.List.Mend(co.ctx, co.sess); err != nil { // another client has removed the change node
				if err := co.mend(err); err != nil {
					return err
				}
			}
			continue
		case refused && failed.Index == 2 && errors.Is(failed, zk.NoNode):
			if err := co.mend(failed); err != nil { // another client has removed the directory of free claims
				return err
			}
			continue
		case zk.OutcomeOf(err) != zk.Unknown:
			if err := co.again(err); err != nil {
				return err
			}
			continue
		default:
			// Only this consumer writes the claim's node, so it tells whether it has.
			s, there, lookErr := co.readNode(co.ctx, l)
			if lookErr != nil {
				return co.orLost(errors.Join(err, lookErr))
			}
			if there == last || there && !slices.Contains(s.Except, it.seq) {
				continue
			}
		}
		co.clear(l, l.PutBackDone(kept, last))
		return nil
	}
}

// maxPutBack is up to how many free claims an item that is given back gets one of its own: they are listed, and a
// list must stay far smaller than a packet.
const maxPutBack = 1000

// mayPutBack reports whether one more item may have a claim of its own, and counts it.
func (co *consumer) mayPutBack() bool { return co.claims.CountFreeClaim() <= maxPutBack }
