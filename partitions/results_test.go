//go:build unix

package partitions_test

import "sync"

// results are the samples of all tests.
var results collection

type collection struct {
	mu      sync.Mutex // guards samples
	samples []sample
}

func (c *collection) add(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, s)
}

func (c *collection) write(string) error { return nil }
