package server

// Limiting the memory that all clients use together.

import (
	"cmp"
	"slices"
)

// countMemory counts memory that was just allocated for a client. After every enforceAfter bytes it enforces the limit.
// Any goroutine may call it.
func (s *Server) countMemory(n int) {
	if s.taken.Add(int64(n)) > enforceAfter {
		s.enforceMemory()
	}
}

// enforceMemory disconnects the clients that use most memory until all together are within Limits.Memory. Requests that
// wait, unsent replies and events, watches and identities count. It visits all connections, so it does not run for
// every request.
func (s *Server) enforceMemory() {
	if !s.enforcing.TryLock() {
		return // another goroutine is at it
	}
	defer s.enforcing.Unlock()
	s.taken.Store(0)
	limit := s.cfg.Limits.Memory
	if limit < 0 {
		return
	}
	total, all := s.memoryUse()
	if total <= limit {
		return
	}
	slices.SortFunc(all, func(a, b connMemory) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, w := range all {
		if total <= limit || w.bytes == 0 {
			return
		}
		s.hit(limitMemory, w.conn.remote)
		w.conn.kill()
		total -= w.bytes
	}
}

// connMemory is the memory in use for one connection.
type connMemory struct {
	conn  *conn
	bytes int
}

// memoryUse returns how many bytes are in use for all connections together, and for each.
func (s *Server) memoryUse() (total int, all []connMemory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = make([]connMemory, 0, len(s.conns))
	for _, c := range s.conns {
		n := c.memory()
		total += n
		all = append(all, connMemory{c, n})
	}
	return total, all
}

// memory returns how many bytes are in use for the connection.
func (c *conn) memory() int {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	return int(c.backlog.Load()) + c.bytes + int(c.incoming.Load()) + int(c.caller.Kept.Load())
}
