package server

import (
	"cmp"
	"slices"
)

// took counts memory that has just been taken for a client, and looks at what all take when it is enough. Any
// goroutine may call it.
func (s *Server) took(n int) {
	if s.taken.Add(int64(n)) > weighAfter {
		s.weigh()
	}
}

// weigh disconnects the clients for which most memory is in use until what all take is within the limit: requests
// that wait, replies and events that are not sent, watches and identities. It looks at all connections, so it runs
// when there is enough that is new.
func (s *Server) weigh() {
	if !s.weighing.TryLock() {
		return // somebody does it
	}
	defer s.weighing.Unlock()
	s.taken.Store(0)
	limit := s.cfg.Limits.Memory
	if limit < 0 {
		return
	}
	total, all := s.weights()
	if total <= limit {
		return
	}
	slices.SortFunc(all, func(a, b weight) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, w := range all {
		if total <= limit || w.bytes == 0 {
			return
		}
		s.hit(limitMemory, w.conn.remote)
		w.conn.kill()
		total -= w.bytes
	}
}

// weight is what one client takes.
type weight struct {
	conn  *conn
	bytes int
}

// weights returns how many bytes all clients take, and each.
func (s *Server) weights() (total int, all []weight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = make([]weight, 0, len(s.conns))
	for _, c := range s.conns {
		n := c.weight()
		total += n
		all = append(all, weight{c, n})
	}
	return total, all
}

// weight returns how many bytes wait for or because of the client, and how many are kept for it.
func (c *conn) weight() int {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	return int(c.backlog.Load()) + c.bytes + int(c.coming.Load()) + int(c.caller.Kept.Load())
}
