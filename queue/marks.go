package queue

// Marking items as delivered.

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// marks is the part of a consumer that marks items as delivered in their claims' nodes before it delivers them.
// Transactions that finish items mark the next, too: see ackTxn.
type marks struct {
	co      *consumer
	changed chan struct{} // one slot: a claim's node was written, or a writer has stopped waiting
	// order is held from choosing marks to sending them, so that a later request marks more. It is taken before the
	// dispatcher's mutex.
	order sync.Mutex
}

// write records that more items are about to be delivered. If another goroutine is writing, it waits until that has
// ended.
func (m *marks) write(ctx context.Context) error {
	m.order.Lock()
	e := m.co.beginAck(true)
	if e.marked == nil {
		m.order.Unlock()
		select {
		case <-m.changed:
		case <-ctx.Done():
		case <-m.co.ctx.Done():
		}
		return nil
	}
	answer := m.co.send(e.ops())
	m.order.Unlock()
	_, err := answer.Get(m.co.ctx)
	e.end(err == nil) // if the answer is lost the next try marks at least the same
	if errors.Is(err, zk.NoNode) {
		m.co.claimRemoved()
	}
	return err
}

// wake wakes write if it waits.
func (m *marks) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
