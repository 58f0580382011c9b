package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxAckFlights is how many transactions that acknowledge items one consumer has under way at the same time. What is to be acknowledged
// meanwhile goes together in the next: a server does one transaction of many deletions in less time than many.
const maxAckFlights = 4

// maxJoined is how many items are acknowledged in one transaction.
const maxJoined = 100

// ack is an item that is to be acknowledged, without anything else to be done in the same transaction.
type ack struct {
	item *Item
	turn chan bool // one slot: true bids the goroutine that waits to send what has gathered; false says that err is the answer
	err  error
}

// acks are those of a desk that wait to be sent. Guarded by the queue's mutex.
//
// One of the goroutines that wait is the one to send, and takes with it those that come until it does. There is one whenever somebody waits
// and there is room for a flight.
type acks struct {
	waiting  []*ack
	flights  int
	gathered bool // somebody is about to send what waits
}

// next returns who is to send what waits, if anybody is.
func (a *acks) next() *ack {
	if a.gathered || a.flights == maxAckFlights || len(a.waiting) == 0 {
		return nil
	}
	a.gathered = true
	a.flights++
	return a.waiting[0]
}

// acknowledge removes the item, together with others that are to be acknowledged at the same time.
func (it *Item) acknowledge() error {
	d := it.d
	a := &ack{item: it, turn: make(chan bool, 1)}
	d.q.mu.Lock()
	d.acks.waiting = append(d.acks.waiting, a)
	mine := d.acks.next() == a
	others := d.open > 1
	d.q.mu.Unlock()
	if !mine && !<-a.turn {
		return a.err
	}
	if others {
		runtime.Gosched() // lets those come who are about to
	}
	d.q.mu.Lock()
	n := min(len(d.acks.waiting), d.maxJoined(it))
	together := slices.Clone(d.acks.waiting[:n])
	d.acks.waiting = slices.Delete(d.acks.waiting, 0, n)
	d.acks.gathered = false
	d.pass()
	d.q.mu.Unlock()
	d.acknowledge(together)
	d.q.mu.Lock()
	d.acks.flights--
	d.pass()
	d.q.mu.Unlock()
	<-a.turn
	return a.err
}

// DoneAll acknowledges items that were taken from this Queue, as Done does each, in as few transactions as packets allow. It returns nil if all
// were acknowledged, and otherwise what Done would have returned for each of the others, joined: each tells its item's id, and none stands in
// the way of the rest. If ctx ends first, it returns ctx's cause and goes on in the background.
func (q *Queue) DoneAll(ctx context.Context, items []*Item) error {
	if ctx.Err() != nil {
		return q.failed("acknowledge", context.Cause(ctx))
	}
	var errs []error
	var mine []*ack
	for _, it := range items {
		if it.begin() {
			mine = append(mine, &ack{item: it, turn: make(chan bool, 1)})
		} else {
			errs = append(errs, it.failed(ErrFinished))
		}
	}
	if !through(ctx, func() {
		for rest := mine; len(rest) > 0; {
			d := rest[0].item.d
			n := slices.IndexFunc(rest, func(a *ack) bool { return a.item.d != d }) // taken under another session
			n = min(cmp.Or(max(n, 0), len(rest)), d.maxJoined(rest[0].item))
			d.acknowledge(rest[:n])
			rest = rest[n:]
		}
		for _, a := range mine {
			a.item.end(a.err)
			if a.err == nil {
				a.item.tellDone(ctx)
			}
		}
	}) {
		return q.failed("acknowledge", &zk.Error{Op: "finish", Path: q.root, Err: context.Cause(ctx), Outcome: zk.Unknown})
	}
	for _, a := range mine {
		if a.err != nil {
			errs = append(errs, a.item.failed(a.err))
		}
	}
	return errors.Join(errs...)
}

// pass bids the next one send what waits. The caller holds the queue's mutex.
func (d *desk) pass() {
	if a := d.acks.next(); a != nil {
		a.turn <- true
	}
}

// maxJoined returns how many items such as it fit into one transaction: each with a claim of its own, at worst.
func (d *desk) maxJoined(it *Item) int {
	each := 2*segment.OpSize + len(it.Path()) + len(it.w.path)
	return max(1, min(maxJoined, (d.q.cfg.MaxPacket-headroom)/each))
}

// acknowledge removes items, all in one transaction, and answers those who wait for it. See Item.remove for why that is safe. An item that
// cannot be removed is in nobody's way: the others go without it.
func (d *desk) acknowledge(list []*ack) {
	for len(list) > 0 {
		if err := d.err(); err != nil {
			answer(list, err)
			return
		}
		items := make([]*Item, len(list))
		ops := make([]zk.Op, len(list), len(list)+2)
		for i, a := range list {
			items[i], ops[i] = a.item, zk.DeleteOp(a.item.Path(), -1)
		}
		d.order.Lock()
		e := d.book(true, items...)
		sent := d.send(append(ops, e.ops()...))
		d.order.Unlock()
		results, err := sent.Get(d.ctx)
		if err == nil {
			d.q.clock.saw(results[len(results)-1].Stat.Mtime) // 0 unless the entry has set a claim's node
			e.close(true)
			answer(list, nil)
			return
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index < len(list):
			e.close(false)
			list = d.without(list, failed)
		case refused && errors.Is(failed, zk.NoNode):
			e.close(false)
			d.claimRemoved()
		case zk.OutcomeOf(err) != zk.Unknown:
			e.close(false)
			answer(list, d.orLost(err))
			return
		default:
			list = d.resolve(list, e, ops, err)
		}
	}
}

// answer answers those who wait.
func answer(list []*ack, err error) {
	for _, a := range list {
		a.err = err
		a.turn <- false
	}
}

// without answers the one whose item was refused, and returns the others.
func (d *desk) without(list []*ack, failed *zk.MultiError) []*ack {
	a := list[failed.Index]
	if errors.Is(failed, zk.NoNode) {
		a.item.w.left(1)
		answer([]*ack{a}, errItemRemoved)
	} else {
		answer([]*ack{a}, d.orLost(failed))
	}
	return slices.Delete(slices.Clone(list), failed.Index, failed.Index+1)
}

// resolve finds out what became of a transaction without an answer, and returns what is still to be acknowledged.
func (d *desk) resolve(list []*ack, e *entry, ops []zk.Op, err error) []*ack {
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = ops[i].Path()
	}
	there, lookErr := d.look(paths...)
	if lookErr != nil {
		e.close(false)
		answer(list, d.orLost(errors.Join(err, lookErr)))
		return nil
	}
	var left, gone []*ack
	for i, a := range list {
		if there[i].Exists {
			left = append(left, a)
		} else {
			gone = append(gone, a)
		}
	}
	e.close(len(left) == 0)
	if len(left) == 0 {
		answer(gone, nil)
		return nil
	}
	// The transaction was not done: what is gone has gone some other way.
	for _, a := range gone {
		a.item.w.left(1)
	}
	answer(gone, errItemRemoved)
	return left
}

var (
	errItemRemoved  = fmt.Errorf("%w: somebody else has removed the item", ErrClaimLost)
	errClaimRemoved = fmt.Errorf("%w: the claim's node was removed by somebody else", ErrClaimLost)
)
