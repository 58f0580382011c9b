package queue

// A queue as a consumer, under one session.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
)

// consumer is a Queue as a consumer, under one session: a claimant, and the parts that work for it. Each of them knows
// the claimant, the takers and those before it at most: marks and acks write the claims' nodes, the returner gives back
// what no taker wants, the fetcher claims more, and the waiter waits for that.
type consumer struct {
	*claimant
	takers    *takers
	receipts  *attempt.Pool
	marks     *marks
	acks      *acks
	returner  *returner
	fetcher   *fetcher
	waiter    *waiter
	delivered delivered
}

// openConsumer returns the consumer of the live session. It creates one if there is none.
func (d *dispatcher) openConsumer(ctx context.Context) (*consumer, error) {
	sess, err := d.session(ctx)
	if err != nil {
		return nil, err
	}
	if last := d.current(); last != nil {
		if last.sess == sess && last.ctx.Err() == nil {
			return last, nil
		}
		select {
		case <-last.free:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	who, err := newClaimant(ctx, d.base, sess)
	if err != nil {
		return nil, err
	}
	co := newConsumer(who, d.takers, d.receipts)
	context.AfterFunc(co.ctx, co.drop)
	if !d.unlessClosed(func() { d.consumer.Store(co) }) {
		co.removeNode()
		return nil, ErrClosed
	}
	go co.watchNode()
	if d.cfg.bounded() {
		d.background(func() { d.keepBounds(who) })
	}
	return co, nil
}

func newConsumer(who *claimant, takers *takers, receipts *attempt.Pool) *consumer {
	co := &consumer{claimant: who, takers: takers, receipts: receipts}
	co.marks = &marks{co: who, takers: takers}
	co.acks = &acks{co: who, marks: co.marks}
	co.returner = newReturner(who, takers)
	co.fetcher = &fetcher{co: who, takers: takers, returner: co.returner, gate: -1, delays: -1, consumers: 1}
	co.waiter = newWaiter(co.fetcher)
	return co
}

// drop forgets what was claimed: the consumer has ended.
func (co *consumer) drop() {
	watches := co.claimant.drop()
	co.returner.stop()
	closeAll(watches)
	for _, item := range co.delivered.all() {
		item.lose()
	}
}

// next delivers the next item, nil if there is none that may be delivered. Few reports that a fast consumer has just so
// few left that it is to claim the next.
func (co *consumer) next() (item *Item, few bool) { return co.nextAt(co.q.clock.now()) }

// nextAt is next at a time by the servers' clock.
func (co *consumer) nextAt(now int64) (item *Item, few bool) {
	// err looks at the clock: a process that was stopped for a while has nothing to deliver.
	if co.err() != nil {
		return nil, false
	}
	l, x, few := co.claims.Pop(now)
	if l == nil {
		return nil, false
	}
	co.returner.restart()
	return co.item(l, x), few
}

// handOut gives takers what was marked for them.
func (co *consumer) handOut() { co.takers.serve(co.next, nil) }

// item returns an item of a claim as it is delivered.
func (co *consumer) item(l *claims.Lease, x claims.Item) *Item {
	return &Item{
		co: co, lease: l, seq: x.Seq, rec: x.Record, created: x.Created,
		attempt: x.Record.Attempts + l.Tries + 1, begun: time.Now(),
	}
}

// close gives back the buffered items. The node goes when all other items are finished; then what could not be given
// back is free.
func (co *consumer) close(ctx context.Context) error {
	if co.ctx.Err() != nil {
		return nil //nolint:nilerr // nothing is claimed any more
	}
	err := co.returner.release(ctx, false)
	if co.claims.Close() {
		err = errors.Join(err, co.removeNode().Wait(ctx))
	}
	return err
}
