package queue

// WithSegment makes segments hold n items, so that tests see many of them.
func (c Config) WithSegment(n int) Config {
	c.segment = n
	return c
}
