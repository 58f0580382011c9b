package queue

// Marking items as delivered.

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// marks is the part of a consumer that marks items as delivered in their claims' nodes before it delivers them.
// Transactions that finish items mark the next, too: see claims.Ack.
type marks struct {
	co     *claimant
	takers *takers
	// order is held from choosing marks to sending them, so that a later request marks more. It is taken before the
	// mutexes of the takers and of the claims.
	order sync.Mutex
}

// begin begins a claims.Ack for items of these claims that are to be finished. The caller holds order until it is sent.
func (m *marks) begin(room bool, leases ...*claims.Lease) *claims.Ack {
	return m.co.claims.BeginAck(m.takers.demand(), room, leases...)
}

// end ends an Ack: done says whether its transaction was done. If it was, the caller hands out what that has marked.
func (m *marks) end(a *claims.Ack, done bool) {
	for _, f := range a.End(done) {
		m.co.clear(f.Lease, f.Rest)
	}
}

// write records that more items are about to be delivered. If another goroutine is writing, it waits until that has
// ended.
func (m *marks) write(ctx context.Context) error {
	m.order.Lock()
	a := m.begin(true)
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
	m.end(a, err == nil) // if the answer is lost the next try marks at least the same
	if errors.Is(err, zk.NoNode) {
		m.co.claimRemoved()
	}
	return err
}
