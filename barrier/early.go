package barrier

// Leaving a double barrier before the others: what the lowest member says at the end, and trusting it.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// patience is how long a party relies on another one: a member that has deleted its node on the lowest one, to say that
// the round is over, and a party that has come on those that came later, to open the barrier. After that it looks for
// itself: the other may be a peer's, which does it in another way, or may have died.
const patience = time.Second

// leaveEarly deletes the node of a member that is not the lowest, and waits for the lowest one to say that the round is
// over. If it returns neither an error nor that the round is over, the member has to follow the protocol of the peers.
//
// The lowest one says so by writing to the ready node before it deletes that, in the transaction that deletes its own
// node too. So whoever watches the ready node is told of a change, and not of a deletion; with a deletion, peers begin
// or end their leaving. The lowest one does it when it sees no other member any more. So a member that gets this one
// event has nothing left to read: all have left, the barrier is closed, and no later look would find more.
//
// The event counts only if it came by the connection on which the watch was set. After another one, the server may
// report the difference between this round's ready node and the next one's as a change.
func (m *Member) leaveEarly(ctx context.Context) (over bool, err error) {
	if m.asked != nil && m.asked.failed() || m.asked == nil && m.round == 0 {
		if err := m.learn(ctx); err != nil {
			return false, err
		}
	}
	if m.asked == nil && !m.hasLower() {
		return false, nil
	}
	b := m.sess.Batch()
	if m.asked == nil && m.signal == nil { // a member that has opened the barrier itself has not read the ready node
		m.asked = m.ask(b)
	}
	deleted := b.Delete(m.Path(), -1)
	b.Send()
	if m.asked != nil {
		_ = m.take(ctx)
	}
	if m.signal != nil && m.hasLower() {
		over, err = m.listen(ctx)
	}
	// Our node must be gone when we come again, or it might count.
	if _, gone := deleted.Get(ctx); gone == nil {
		m.removed = true
	} else if m.remove(); err == nil {
		err = m.removal.Wait(ctx)
		m.removed = err == nil && m.sess.Err() == nil
	}
	if over && err == nil {
		m.leftClosed(false)
	}
	return over && err == nil, err
}

// hasLower reports whether the lowest member of the round is known, and is another one.
func (m *Member) hasLower() bool { return m.lowest != "" && m.lowest != m.name }

// listen waits until the lowest member says that the round is over, or, without an error, until it makes sense to look.
func (m *Member) listen(ctx context.Context) (over bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	event, err := next(ctx, m.changed, m.signal)
	if errors.Is(err, errPatience) {
		return false, nil
	}
	select {
	case <-m.changed:
		return false, err
	default:
		return event.Type == zk.EventDataChanged, err
	}
}

// errPatience is the cause of a context that lasts as long as patience.
var errPatience = errors.New("barrier: another party is silent")

// forget gives up the watch on the ready node.
func (m *Member) forget() {
	if m.asked != nil {
		m.asked.abandon()
	}
	if m.signal != nil {
		m.signal.Close()
	}
}

// leftClosed says that the round's last member has closed the barrier.
func (m *Member) leftClosed(lowest bool) {
	m.double.last.Store(&past{version: m.version, name: m.node, lowest: lowest})
}
