package queue

import "slices"

// WithSegment makes segments hold n items, so that tests see many of them.
func (c Config) WithSegment(n int) Config {
	c.segment = n
	return c
}

// HoldPens keeps everybody from writing the nodes of the consumer's claims, until the function that it returns is
// called.
func (q *Queue) HoldPens() func() {
	q.mu.Lock()
	windows := slices.Clone(q.desk.windows)
	q.mu.Unlock()
	for _, w := range windows {
		w.pen <- struct{}{}
	}
	return func() {
		for _, w := range windows {
			w.written()
		}
	}
}
