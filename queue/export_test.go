package queue

import "slices"

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
