package queue

// Marking items as delivered.

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// marks is the part of a consumer that marks items as delivered in their claims' nodes before it delivers them.
// Transactions that finish items mark the next, too: see claims.Ack.
type marks struct {
	co *consumer
	// order is held from choosing marks to sending them, so that a later request marks more. It is taken before the
	// dispatcher's mutex.
	order sync.Mutex
}

// write records that more items are about to be delivered. If another goroutine is writing, it waits until that has
// ended.
func (m *marks) write(ctx context.Context) error {
	m.order.Lock()
	a := m.co.beginAck(true)
	if !a.Marks() {
		m.order.Unlock()
		select {
		case <-m.co.claims.Changed():
		case <-ctx.Done():
		case <-m.co.ctx.Done():
		}
		return nil
	}
	answer := m.co.send(a.Ops())
	m.order.Unlock()
	_, err := answer.Get(m.co.ctx)
	m.co.endAck(a, err == nil) // if the answer is lost the next try marks at least the same
	if errors.Is(err, zk.NoNode) {
		m.co.claimRemoved()
	}
	return err
}
