package queue

// Acknowledgements that share a transaction.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxAcksInFlight is how many transactions that acknowledge items one consumer has in flight at the same time. Items
// that are to be acknowledged meanwhile go together in the next: a server does one transaction of many deletions in
// less time than many transactions.
const maxAcksInFlight = 4

// maxJoined is how many items are acknowledged in one transaction.
const maxJoined = 100

// ack is an item that is to be acknowledged, with no other writes in the same transaction.
type ack struct {
	item *Item
	turn chan bool // one slot: true tells the waiting goroutine to send all waiting acks; false that err is its answer
	err  error
}

// acks are those of a consumer that wait to be sent.
//
// One of the waiting goroutines sends, and takes along all that wait by then. There is one whenever some wait and
// another transaction may be in flight.
type acks struct {
	co    *claimant
	marks *marks

	mu       sync.Mutex // guards what follows
	waiting  []*ack
	inFlight int
	gathered bool // a goroutine is about to send what waits
}

// add adds an ack, and reports whether its goroutine is to send what waits.
func (as *acks) add(a *ack) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.waiting = append(as.waiting, a)
	return as.next() == a
}

// gather returns the acks to send together, n at most, and lets the next goroutine send what still waits.
func (as *acks) gather(n int) []*ack {
	as.mu.Lock()
	defer as.mu.Unlock()
	n = min(len(as.waiting), n)
	together := slices.Clone(as.waiting[:n])
	as.waiting = slices.Delete(as.waiting, 0, n)
	as.gathered = false
	as.pass()
	return together
}

// sent records that a transaction has its answer.
func (as *acks) sent() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.inFlight--
	as.pass()
}

// next returns the ack whose goroutine is to send what waits, if any. The caller holds the mutex.
func (as *acks) next() *ack {
	if as.gathered || as.inFlight == maxAcksInFlight || len(as.waiting) == 0 {
		return nil
	}
	as.gathered = true
	as.inFlight++
	return as.waiting[0]
}

// pass lets the next goroutine send what waits. The caller holds the mutex.
func (as *acks) pass() {
	if a := as.next(); a != nil {
		a.turn <- true
	}
}

// acknowledge removes the item, together with others that are to be acknowledged at the same time.
func (it *Item) acknowledge() error {
	if it.rec.Group != "" {
		return it.remove(removal{final: true})
	}
	as := it.co.acks
	a := &ack{item: it, turn: make(chan bool, 1)}
	if !as.add(a) && !<-a.turn {
		return a.err
	}
	if it.co.claims.Open() > 1 {
		runtime.Gosched() // lets goroutines come that are about to
	}
	as.send(as.gather(as.maxJoined(it)), it.co.handOut)
	as.sent()
	<-a.turn
	return a.err
}

// DoneAll acknowledges items that were taken from this Queue, as Done does each, in as few transactions as packets
// allow. It returns nil if it has acknowledged all, and otherwise what Done would have returned for each of the
// others, joined: each error has its item's id, and none keeps the rest from being acknowledged. If ctx ends first,
// it returns ctx's cause and goes on in the background.
func (q *Queue) DoneAll(ctx context.Context, items []*Item) error {
	if ctx.Err() != nil {
		return q.failed("acknowledge", context.Cause(ctx))
	}
	if slices.Contains(items, nil) {
		return q.failed("acknowledge", attempt.Bad("an item is nil"))
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
	if left := through(ctx, func() {
		for rest := together(mine); len(rest) > 0; {
			co := rest[0].item.co
			n := slices.IndexFunc(rest, func(a *ack) bool { return a.item.co != co }) // taken under another session
			n = min(cmp.Or(max(n, 0), len(rest)), co.acks.maxJoined(rest[0].item))
			co.acks.send(rest[:n], co.handOut)
			rest = rest[n:]
		}
		for _, a := range mine {
			end := a.item.end(a.err, ItemEnd{Result: ResultDone})
			if a.err == nil {
				a.item.tellDone(ctx)
			}
			a.item.tellEnded(ctx, end)
		}
	}); left != nil {
		err := &zk.Error{Op: "finish", Path: q.layout.root, Err: left, Outcome: zk.Unknown}
		return q.failed("acknowledge", err)
	}
	for _, a := range mine {
		if a.err != nil {
			errs = append(errs, a.item.failed(a.err))
		}
	}
	return errors.Join(errs...)
}

// together acknowledges those that have a group, each by itself, and returns the others.
func together(list []*ack) (others []*ack) {
	for _, a := range list {
		if a.item.rec.Group == "" {
			others = append(others, a)
		} else {
			a.err = a.item.acknowledge()
		}
	}
	return others
}

// maxJoined returns how many items such as it fit into one transaction: at worst, each with a claim of its own.
func (as *acks) maxJoined(it *Item) int {
	each := 2*segment.OpSize + len(it.Path()) + len(it.lease.Path)
	return max(1, min(maxJoined, (as.co.q.cfg.MaxPacket-headroom)/each))
}

// send removes items in one transaction, and answers those that wait for it. See Item.remove for why that is
// safe. If an item cannot be removed, the others go without it.
//
// Before it answers, handOut gives takers what the transaction has marked: those that are answered want the next, and
// would come behind takers that wait, of which one then has to ask for more.
func (as *acks) send(list []*ack, handOut func()) {
	for len(list) > 0 {
		if err := as.co.err(); err != nil {
			answer(list, err)
			return
		}
		leases := make([]*claims.Lease, len(list))
		ops := make([]zk.Op, len(list), len(list)+2)
		for i, a := range list {
			leases[i], ops[i] = a.item.lease, zk.DeleteOp(a.item.Path(), -1)
		}
		as.marks.order.Lock()
		e := as.marks.begin(true, leases...)
		sent := as.co.send(append(ops, e.Ops()...))
		as.marks.order.Unlock()
		results, err := sent.Get(as.co.ctx)
		if err == nil {
			as.co.q.clock.saw(results[len(results)-1].Stat.Mtime) // 0 unless the transaction has set a claim's node
			as.marks.end(e, true)
			handOut()
			answer(list, nil)
			return
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index < len(list):
			as.marks.end(e, false)
			list = as.without(list, failed)
		case refused && errors.Is(failed, zk.NoNode):
			as.marks.end(e, false)
			as.co.claimRemoved()
		case zk.OutcomeOf(err) != zk.Unknown:
			as.marks.end(e, false)
			if err := as.co.again(err); err != nil {
				answer(list, err)
				return
			}
		default:
			list = as.resolve(list, e, ops, err, handOut)
		}
	}
}

// answer gives err to all that wait.
func answer(list []*ack, err error) {
	for _, a := range list {
		a.err = err
		a.turn <- false
	}
}

// without answers the ack whose item was refused, and returns the others.
func (as *acks) without(list []*ack, failed *zk.MultiError) []*ack {
	a := list[failed.Index]
	if errors.Is(failed, zk.NoNode) {
		as.co.finished(a.item.lease)
		answer([]*ack{a}, errItemRemoved)
	} else {
		answer([]*ack{a}, as.co.orLost(failed))
	}
	return slices.Delete(slices.Clone(list), failed.Index, failed.Index+1)
}

// resolve finds out what became of a transaction without an answer, and returns what is still to be acknowledged.
func (as *acks) resolve(list []*ack, e *claims.Ack, ops []zk.Op, err error, handOut func()) []*ack {
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = ops[i].Path()
	}
	there, lookErr := as.co.remaining(paths...)
	if lookErr != nil {
		as.marks.end(e, false)
		answer(list, as.co.orLost(errors.Join(err, lookErr)))
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
	as.marks.end(e, len(left) == 0)
	if len(left) == 0 {
		handOut()
		answer(gone, nil)
		return nil
	}
	// The transaction was not done: an item that does not exist has gone some other way.
	for _, a := range gone {
		as.co.finished(a.item.lease)
	}
	answer(gone, errItemRemoved)
	return left
}

var (
	errItemRemoved  = fmt.Errorf("%w: another client has removed the item", ErrClaimLost)
	errClaimRemoved = fmt.Errorf("%w: another client has removed the claim's node", ErrClaimLost)
)
