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
	if m.news != nil && m.stale() {
		m.news.drop()
		m.news = nil
	}
	if m.news == nil && m.round == 0 {
		if err := m.learn(ctx); err != nil {
			return false, err
		}
	}
	if m.lowest == "" || m.lowest == m.name {
		return false, nil
	}
	b := m.sess.Batch()
	var asked *zk.Future[zk.WatchedData]
	if m.news == nil && m.signal == nil { // a member that has opened the barrier itself has not read the ready node
		_, m.changed = m.sess.State()
		asked = b.GetW(m.double.ready())
	}
	deleted := b.Delete(m.Path(), -1)
	b.Send()
	if asked != nil {
		m.take(ctx, asked)
	}
	switch {
	case m.news != nil:
		over, err = m.listenToNews(ctx)
	case m.signal != nil:
		over, err = m.listen(ctx)
	}
	// Our node must be gone when we come again, or it might count.
	if _, gone := deleted.Get(ctx); gone == nil {
		m.removed = true
		if m.round == 0 {
			m.round = deleted.Zxid() // the barrier was open
		}
	} else if m.remove(); err == nil {
		err = m.removal.Wait(ctx)
		m.removed = err == nil && m.sess.Err() == nil
	}
	if over && err == nil {
		m.leftClosed()
	}
	return over && err == nil, err
}

// take takes the watch on the ready node. If a peer has deleted that, and others have opened the barrier anew, it is a
// later one. Its end is the end of the member's round, too: the last member has seen no other one.
func (m *Member) take(ctx context.Context, asked *zk.Future[zk.WatchedData]) {
	ready, err := asked.Get(ctx)
	if err != nil {
		asked.Abandon()
		return
	}
	m.signal = ready.Watch
}

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
var errPatience = errors.New("another party is silent")

// forget gives up the watches on the ready node.
func (m *Member) forget() {
	m.news.drop()
	m.news = nil
	if m.signal != nil {
		m.signal.Close()
	}
}
