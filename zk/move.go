package zk

// The list of servers, which may change, and the move of a session to another server.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// errMoved ends a connection so that the session goes on with another server.
var errMoved = fmt.Errorf("%w: the list of servers has changed", ErrMoved)

// maxLeaveWait bounds how long a connection that is left waits for replies; a sixteenth of the session timeout does so,
// too.
const maxLeaveWait = time.Second

// SetServers replaces the servers of Config.Servers. The chroot stays: it may be left out. The session does not end. It
// moves to another server if its own is not in the list any more; and with more servers than before it may move to one
// of the new ones, with the probability that spreads the clients evenly if all of them learn of the change
// (ZOOKEEPER-1355). Requests that are under way get their replies first, unless that takes long; requests made
// meanwhile are sent to the next server.
func (c *Client) SetServers(servers string) error {
	list, root, err := parseServers(servers)
	if err != nil {
		return err
	}
	if root != "" && root != c.cfg.root {
		return fmt.Errorf("zk: the chroot cannot change from %q to %q: open another client", c.cfg.root, root)
	}
	c.setServers(list)
	return nil
}

// Servers returns the addresses of the servers that the client connects to, sorted, as Config.Servers names them.
func (c *Client) Servers() []string { return serverNames(c.serverList()) }

func (c *Client) setServers(list []server) {
	if old, order := c.replaceServers(list); old != nil {
		c.log.Info("the list of servers has changed", "before", serverNames(old), "now", serverNames(order))
	}
}

// replaceServers returns the servers of before and of now, or nil if they are the same.
func (c *Client) replaceServers(list []server) (old, order []server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sameServers(c.servers, list) {
		return nil, nil
	}
	var n *conn // a later one meets the new list: see leaveUnlisted
	if s := c.current; s != nil {
		s.mu.Lock()
		n = s.conn
		s.mu.Unlock()
	}
	old = c.servers
	order, move := rebalance(old, list, func(srv server) bool { return n != nil && n.isTo(srv) }, rand.Float64)
	c.servers, c.turn = order, 0
	if move && n != nil && !c.closed {
		c.wg.Go(func() { n.leave(errMoved) })
	}
	return old, order
}

// leaveUnlisted has the session leave a server that was taken out of the list while it connected.
func (c *Client) leaveUnlisted(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !slices.ContainsFunc(c.servers, n.isTo) {
		c.wg.Go(func() { n.leave(errMoved) })
	}
}

// isTo reports whether the connection leads to srv, under this or another name.
func (n *conn) isTo(srv server) bool {
	if n.server == srv {
		return true
	}
	addr := n.raw.RemoteAddr()
	return addr != nil && srv.network == addr.Network() && srv.address == addr.String()
}

// rebalance returns the order in which to try the servers of the new list, and whether to leave the current one.
// Current reports whether a server is the current one, if there is one. Each of the clients of the old servers is to
// have the same chance to end up with each of the new ones; the rule is that of ZooKeeper's own client
// (ZOOKEEPER-1355).
func rebalance(old, list []server, current func(server) bool, random func() float64) (order []server, move bool) {
	var kept, added []server
	for _, s := range list {
		if slices.Contains(old, s) {
			kept = append(kept, s)
		} else {
			added = append(added, s)
		}
	}
	shuffle(kept)
	shuffle(added)
	before, now, stay := float64(len(old)), float64(len(list)), float64(len(kept))
	switch {
	case slices.ContainsFunc(list, current) && (before >= now || random() >= 1-before/now):
		order = slices.Concat(kept, added)
		shuffle(order)
		return order, false
	case slices.ContainsFunc(list, current), len(kept) == 0:
		return append(added, kept...), true
	case random() < stay*(before-now)/(now*(before-stay)):
		// As many of the clients of a server that has gone turn to those that stay as these may take.
		return append(kept, added...), true
	default:
		return append(added, kept...), true
	}
}

func shuffle(list []server) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func sameServers(a, b []server) bool {
	in := func(list []server) func(server) bool {
		return func(s server) bool { return !slices.Contains(list, s) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

func serverNames(list []server) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.String()
	}
	slices.Sort(names)
	return names
}

// leave ends the connection when the requests that were sent have got their replies, or after a while. Those that were
// not sent wait for the next connection.
func (n *conn) leave(why error) {
	s := n.sess
	s.mu.Lock()
	if s.conn != n || n.leaving {
		s.mu.Unlock()
		return
	}
	n.leaving = true
	limit := min(s.timeout/16, maxLeaveWait)
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	drained := s.drained
	s.noteDrained()
	s.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-drained:
	case <-n.dead:
	case <-timer.C:
	}
	n.fail(why)
}
