package queue

// Who claims: a node, under one session.

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

// claimant is a consumer as the servers know it: an ephemeral node under one session that shows that it is alive, and
// the claims that refer to that node. When the session ends, so does the claimant, and its claims are free for the
// others. It asks the servers on behalf of the consumer's parts, and knows none of them.
type claimant struct {
	q      *base
	sess   *zk.Session
	own    *zk.Ownership // of what it claims
	id     string
	node   string
	czxid  int64           // of the node's creation; 0 if the server did not tell
	about  []byte          // its data
	ctx    context.Context //nolint:containedctx // the items' contexts come from it
	end    context.CancelCauseFunc
	serial atomic.Int64 // of its claims
	claims *claims.Set

	ended sync.Once     // decides when free is closed
	free  chan struct{} // closed when it has ended, and this Queue need not wait for its claims any more
}

// newClaimant returns a claimant whose node exists.
func newClaimant(ctx context.Context, q *base, sess *zk.Session) (*claimant, error) {
	co := &claimant{q: q, sess: sess, free: make(chan struct{})}
	co.own = sess.NewOwnership(co)
	co.claims = claims.New(co.own, q.cfg.Prefetch)
	co.ctx, co.end = context.WithCancelCause(sess.Context())
	if err := co.createNode(ctx); err != nil {
		co.end(err)
		return nil, err
	}
	return co, nil
}

// createNode creates the consumer's node. A creation whose outcome is unknown may still be done later, so the next
// attempt uses another name, and what the first has created is removed in the background.
func (co *claimant) createNode(ctx context.Context) error {
	about, err := json.Marshal(thisProcess())
	if err != nil {
		return err
	}
	co.about = about
	for {
		id := segment.NewID()
		co.id = hex.EncodeToString(id[:8])
		co.node = co.q.layout.path(dirConsumers, co.id)
		c, err := co.sess.CreateNode(ctx, co.q.layout.node(co.node, co.about, zk.Ephemeral))
		if err == nil {
			co.czxid = c.Stat.Czxid
			co.q.clock.saw(c.Stat.Ctime)
			return nil
		}
		if zk.OutcomeOf(err) == zk.Unknown {
			attempt.RemoveCreated(co.sess, attempt.Name{Dir: co.q.layout.path(dirConsumers), Prefix: co.id})
		}
		if err := attempt.Again(ctx, co.sess, err); err != nil {
			co.q.missing(err)
			return err
		}
	}
}

// watchNode ends the consumer when another client deletes its node: then its claims are free for all. It also does if
// that client has made the node again, even in the same transaction: such a node does not end with this session.
func (co *claimant) watchNode() {
	if attempt.AwaitGone(co.ctx, co.sess, co.node, co.czxid) {
		co.Gone(co.node)
	}
}

// replaced reports whether the consumer's node is not the one that it has created.
func (co *claimant) replaced(stat zk.Stat) bool { return co.czxid != 0 && stat.Czxid != co.czxid }

// Nodes returns the node that all claims refer to.
func (co *claimant) Nodes() []string { return []string{co.node} }

// Gone ends the consumer because its node no longer exists.
func (co *claimant) Gone(string) {
	co.end(fmt.Errorf("%w: the consumer's node %s was deleted by another client", ErrClaimLost, co.node))
}

// Lost ends the consumer because its session is uncertain.
func (co *claimant) Lost(cause error, cooldown time.Duration) {
	co.abandon(fmt.Errorf("%w: %w", ErrClaimLost, cause), cooldown)
}

// claimRemoved ends the consumer because another client has removed the node of one of its claims. No consumer could
// take the other claims over while the consumer's node exists, so that node goes, too. Handlers of its items learn of
// it, and have as long to stop as the owner of a session that is lost.
func (co *claimant) claimRemoved() { co.abandon(errClaimRemoved, co.sess.Timeout()/4) }

// abandon ends the consumer, whose node may still exist. The node goes as soon as a server can be reached, but not
// before the cooldown in which handlers can stop. Until then its claims stand, and the queue opens no other consumer,
// which would first take what comes behind them. If the session ends before, it takes the node along.
func (co *claimant) abandon(cause error, cooldown time.Duration) {
	co.ended.Do(func() {
		co.end(cause)
		time.AfterFunc(cooldown, func() {
			defer close(co.free)
			_ = co.removeNode().Wait(context.Background()) // it ends with the session at the latest
		})
	})
}

// drop forgets what it has claimed, and returns the watches that were set: it has ended. If abandon has not ended it,
// its node or its session is gone, or the Queue is closed.
func (co *claimant) drop() []*zk.Watch {
	co.ended.Do(func() { close(co.free) })
	return co.claims.Drop()
}

// certify returns nil once the session is certain that the consumer's claims are its own.
func (co *claimant) certify() error {
	err := co.sess.Certify(co.ctx, co.node)
	if errors.Is(err, zk.NoNode) {
		co.Gone(co.node)
	}
	if err != nil {
		return co.orLost(err)
	}
	return nil
}

// err returns nil while the consumer's claims hold, and otherwise why they do not.
func (co *claimant) err() error {
	if err := co.own.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClaimLost, err)
	}
	return context.Cause(co.ctx)
}

// again returns nil if the consumer may ask again after err, at once or after a pause, and otherwise what orLost does.
// Nothing was done of what the server has refused for now.
func (co *claimant) again(err error) error {
	if err := attempt.Again(co.ctx, co.sess, err); err != nil {
		return co.orLost(err)
	}
	return nil
}

// mend is again for an err that may say that one of the queue's nodes is missing: it makes the node. Items are
// finished, and given back, after Close, too.
func (co *claimant) mend(err error) error {
	if co.q.missing(err) {
		err = co.q.makeNodes(co.ctx, co.sess)
	}
	if err == nil {
		return nil
	}
	return co.again(err)
}

// orLost returns err, or that the claims are lost if they are.
func (co *claimant) orLost(err error) error {
	if lost := co.err(); lost != nil {
		return fmt.Errorf("%w (%w)", lost, err)
	}
	return err
}

// send sends a transaction.
func (co *claimant) send(ops []zk.Op) *zk.Future[[]zk.Result] {
	b := co.sess.Batch()
	answer := b.Multi(ops...)
	b.Send()
	return answer
}

func (co *claimant) nextSerial() string {
	return fmt.Sprintf("%s%x", co.id, co.serial.Add(1))
}

// removeNode ends the consumer and removes its node, when no claim needs it.
func (co *claimant) removeNode() *attempt.Removal {
	co.end(ErrClosed)
	return attempt.Remove(co.sess, co.node)
}
