package queue

import "context"

// WithSegment makes segments hold n items, so that tests see many of them.
func (c Config) WithSegment(n int) Config {
	c.segment = n
	return c
}

// HoldWrites keeps the consumer from writing the nodes of its claims until the function that it returns is called.
func (q *Queue) HoldWrites() func() {
	leases := q.dispatcher.current().claims.Leases()
	for _, l := range leases {
		l.WaitToWrite() <- struct{}{}
		l.WaitedToWrite()
	}
	return func() {
		for _, l := range leases {
			l.EndWrite()
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
	return len(q.dispatcher.current().delivered.all())
}
