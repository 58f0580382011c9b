package queue

import (
	"context"
	"slices"
)

// WithSegment makes segments hold n items, so that tests see many of them.
func (c Config) WithSegment(n int) Config {
	c.segment = n
	return c
}

// HoldWrites keeps the consumer from writing the nodes of its claims until the function that it returns is called.
func (q *Queue) HoldWrites() func() {
	q.dispatcher.mu.Lock()
	leases := slices.Clone(q.dispatcher.consumer.leases)
	q.dispatcher.mu.Unlock()
	for _, l := range leases {
		l.writing <- struct{}{}
	}
	return func() {
		for _, l := range leases {
			l.endWrite()
		}
	}
}

// BeginFinish begins a call that is to finish the item.
func (it *Item) BeginFinish() bool { return it.begin() }

// EndFinish ends it, with what the servers have answered.
func (it *Item) EndFinish(ctx context.Context, err error) {
	it.tellEnded(ctx, it.end(err, ItemEnd{Result: ResultDone}))
}

// KeptForHooks returns how many items are kept until they have ended.
func (q *Queue) KeptForHooks() int {
	co := q.dispatcher.current()
	co.d.mu.Lock()
	defer co.d.mu.Unlock()
	return len(co.delivered)
}
