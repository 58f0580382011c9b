package server

// weigh disconnects the clients for which most memory is in use until what all take is within the limit: requests that wait, replies
// and events that are not sent. It looks at all connections, so it runs when there is enough that is new.
func (o *owner) weigh() {
	o.made = 0
	for o.cfg.Limits.Memory > 0 {
		total, worst := o.heaviest()
		if total <= o.cfg.Limits.Memory || worst == nil {
			return
		}
		o.hit(limitMemory, worst.remote)
		worst.kill()
	}
}

// heaviest returns how many bytes all clients take, and the connection that takes most of them.
func (s *Server) heaviest() (total int, worst *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for _, c := range s.conns {
		n := c.weight()
		total += n
		if n > most {
			most, worst = n, c
		}
	}
	return total, worst
}

// weight returns how many bytes wait for or because of the client.
func (o *outbox) weight() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int(o.backlog.Load()) + o.bytes
}
