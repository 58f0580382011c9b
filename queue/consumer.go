package queue

// A queue as a consumer, under one session.

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// consumer is a Queue as a consumer, under one session: an ephemeral node that shows that it is alive, the claims
// that refer to that node, and the items that were claimed and not delivered yet. When the session ends, so does the
// consumer, and its claims are free for the others.
//
// Its parts: claims knows what it has claimed; the fetcher claims more; marks and acks write the claims' nodes; the
// returner gives back what no taker wants; the waiter waits for items.
type consumer struct {
	d      *dispatcher
	sess   *zk.Session
	own    *zk.Ownership // of what it claims
	id     string
	node   string
	czxid  int64           // of the node's creation; 0 if the server did not tell
	about  []byte          // its data
	ctx    context.Context //nolint:containedctx // the items' contexts come from it
	end    context.CancelCauseFunc
	serial atomic.Int64 // of its claims

	claims    *claims.Set
	acks      acks
	marks     marks
	returner  *returner
	fetcher   *fetcher
	waiter    *waiter
	delivered delivered
	abandoned sync.Once // when its claims are lost, and its node goes
}

// openConsumer returns the consumer of the live session. It creates one if there is none.
func (d *dispatcher) openConsumer(ctx context.Context) (*consumer, error) {
	sess, err := d.session(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	co, leaving := d.consumer, d.abandoning
	d.mu.Unlock()
	if leaving != nil {
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if co != nil && co.sess == sess && co.ctx.Err() == nil {
		return co, nil
	}
	co = &consumer{d: d, sess: sess}
	co.own = sess.NewOwnership(co)
	co.claims = claims.New(co.own, d.cfg.Prefetch)
	co.acks.co, co.marks.co = co, co
	co.fetcher = &fetcher{co: co, gate: -1, delays: -1, consumers: 1}
	co.returner, co.waiter = newReturner(co), newWaiter(co)
	co.ctx, co.end = context.WithCancelCause(sess.Context())
	if err := co.createNode(ctx); err != nil {
		co.end(err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		co.removeNode()
		return nil, ErrClosed
	}
	d.consumer = co
	go co.watchNode()
	if d.cfg.bounded() {
		d.wg.Go(func() { d.keepBounds(co) })
	}
	context.AfterFunc(co.ctx, func() { d.dropConsumer(co) })
	return co, nil
}

// createNode creates the consumer's node. A creation whose outcome is unknown may still be done later, so the next
// attempt uses another name, and what the first has created is removed in the background.
func (co *consumer) createNode(ctx context.Context) error {
	about, err := json.Marshal(thisProcess())
	if err != nil {
		return err
	}
	co.about = about
	for {
		id := segment.NewID()
		co.id = hex.EncodeToString(id[:8])
		co.node = co.d.layout.path(dirConsumers, co.id)
		c, err := co.sess.CreateNode(ctx, co.d.layout.node(co.node, co.about, zk.Ephemeral))
		if err == nil {
			co.czxid = c.Stat.Czxid
			co.d.clock.saw(c.Stat.Ctime)
			return nil
		}
		if zk.OutcomeOf(err) == zk.Unknown {
			attempt.RemoveCreated(co.sess, attempt.Name{Dir: co.d.layout.path(dirConsumers), Prefix: co.id})
		}
		if err := attempt.Again(ctx, co.sess, err); err != nil {
			co.d.missing(err)
			return err
		}
	}
}

// watchNode ends the consumer when another client deletes its node: then its claims are free for all. It also does if
// that client has made the node again, even in the same transaction: such a node does not end with this session.
func (co *consumer) watchNode() {
	if attempt.AwaitGone(co.ctx, co.sess, co.node, co.czxid) {
		co.Gone(co.node)
	}
}

// replaced reports whether the consumer's node is not the one that it has created.
func (co *consumer) replaced(stat zk.Stat) bool { return co.czxid != 0 && stat.Czxid != co.czxid }

// Nodes returns the node that all claims refer to.
func (co *consumer) Nodes() []string { return []string{co.node} }

// Gone ends the consumer because its node no longer exists.
func (co *consumer) Gone(string) {
	co.end(fmt.Errorf("%w: the consumer's node %s was deleted by another client", ErrClaimLost, co.node))
}

// Lost ends the consumer because its session is uncertain.
func (co *consumer) Lost(cause error, cooldown time.Duration) {
	co.abandon(fmt.Errorf("%w: %w", ErrClaimLost, cause), cooldown)
}

// claimRemoved ends the consumer because another client has removed the node of one of its claims. No consumer could
// take the other claims over while the consumer's node exists, so that node goes, too. Handlers of its items learn of
// it, and have as long to stop as the owner of a session that is lost.
func (co *consumer) claimRemoved() { co.abandon(errClaimRemoved, co.sess.Timeout()/4) }

// abandon ends the consumer, whose node may still exist. The node goes as soon as a server can be reached, but not
// before the cooldown in which handlers can stop. Until then its claims stand, and the queue opens no other consumer,
// which would first take what comes behind them. If the session ends before, it takes the node along.
func (co *consumer) abandon(cause error, cooldown time.Duration) {
	co.abandoned.Do(func() {
		gone := make(chan struct{})
		co.d.mu.Lock()
		co.d.abandoning = gone
		co.d.mu.Unlock()
		co.end(cause)
		time.AfterFunc(cooldown, func() {
			defer close(gone)
			_ = co.removeNode().Wait(context.Background()) // it ends with the session at the latest
		})
	})
}

// certify returns nil once the session is certain that the consumer's claims are its own.
func (co *consumer) certify() error {
	err := co.sess.Certify(co.ctx, co.node)
	if errors.Is(err, zk.NoNode) {
		co.Gone(co.node)
	}
	if err != nil {
		return co.orLost(err)
	}
	return nil
}

// dropConsumer forgets a consumer that has ended.
func (d *dispatcher) dropConsumer(co *consumer) {
	d.mu.Lock()
	if d.consumer == co {
		d.consumer = nil
	}
	watches := co.claims.Drop()
	d.mu.Unlock()
	co.returner.stop()
	closeAll(watches)
	for _, item := range co.delivered.all() {
		item.lose()
	}
}

// err returns nil while the consumer's claims hold, and otherwise why they do not.
func (co *consumer) err() error {
	if err := co.own.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClaimLost, err)
	}
	return context.Cause(co.ctx)
}

// again returns nil if the consumer may ask again after err, at once or after a pause, and otherwise what orLost does.
// Nothing was done of what the server has refused for now.
func (co *consumer) again(err error) error {
	if err := attempt.Again(co.ctx, co.sess, err); err != nil {
		return co.orLost(err)
	}
	return nil
}

// mend is again for an err that may say that one of the queue's nodes is missing: it makes the node. Items are
// finished, and given back, after Close, too.
func (co *consumer) mend(err error) error {
	if co.d.missing(err) {
		err = co.d.makeNodes(co.ctx, co.sess)
	}
	if err == nil {
		return nil
	}
	return co.again(err)
}

// orLost returns err, or that the claims are lost if they are.
func (co *consumer) orLost(err error) error {
	if lost := co.err(); lost != nil {
		return fmt.Errorf("%w (%w)", lost, err)
	}
	return err
}

// next delivers the next item, nil if there is none that may be delivered. Now is the servers' time. The caller holds
// the dispatcher's mutex.
func (co *consumer) next(now int64) *Item {
	// err looks at the clock: a process that was stopped for a while has nothing to deliver.
	if co.err() != nil {
		return nil
	}
	l, x, few := co.claims.Pop(now)
	if l == nil {
		return nil
	}
	co.returner.restart()
	if few {
		co.d.claimAhead()
	}
	return co.item(l, x)
}

// item returns an item of a claim as it is delivered.
func (co *consumer) item(l *claims.Lease, x claims.Item) *Item {
	return &Item{
		co: co, lease: l, seq: x.Seq, rec: x.Record, created: x.Created,
		attempt: x.Record.Attempts + l.Tries + 1, begun: time.Now(),
	}
}

// send sends a transaction.
func (co *consumer) send(ops []zk.Op) *zk.Future[[]zk.Result] {
	b := co.sess.Batch()
	answer := b.Multi(ops...)
	b.Send()
	return answer
}

func (co *consumer) nextSerial() string {
	return fmt.Sprintf("%s%x", co.id, co.serial.Add(1))
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

// removeNode ends the consumer and removes its node, when no claim needs it.
func (co *consumer) removeNode() *attempt.Removal {
	co.end(ErrClosed)
	return attempt.Remove(co.sess, co.node)
}
