package zk

// The writes that prove a session to be alive.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// ErrUncertain is the cause of an ownership's end, for example of a lock's hold: no quorum has confirmed the session
// for so long that it may have expired, although a server may still answer. The session continues, and may prove to be
// alive.
var ErrUncertain = errors.New("the session is uncertain: no quorum has confirmed it within its timeout")

// Certain returns until when the ensemble cannot have ended the session, so that no other session can have acquired
// what this one owns. Every write answered with OK extends it, and during an Ownership the session sends a write that
// changes nothing every eighth of its timeout. A session that owns nothing sends none, and Certain may be in the past.
// See docs/partitions.md for the rule.
//
// With Config.NoCertificates it counts from any reply, as Deadline does.
func (s *Session) Certain() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.clock.system(s.certain())
}

// Certify returns nil once the session is certain for long enough to begin an Ownership, which is at once after a
// recent write. Otherwise it sends a transaction that checks that the nodes at paths exist, the first few hundred if
// there are more, and returns an error that wraps NoNode if one does not. It survives lost connections, and returns the
// cause if ctx or the session ends.
func (s *Session) Certify(ctx context.Context, paths ...string) error {
	for {
		if s.certainFor() {
			return nil
		}
		began := time.Now()
		_, err := s.Multi(ctx, checks(s.fitting(paths))...)
		switch {
		case err == nil && s.certainFor():
			return nil
		case ctx.Err() != nil:
			return contextError(ctx)
		case s.Err() != nil:
			return s.Err()
		case err == nil, Temporary(err):
			// After a long pause of the process a second proof is needed, some time after the first. A server that
			// refuses now may accept later.
			sleepIn(ctx, s.ctx, s.Timeout()/16-time.Since(began))
		default:
			return err
		}
	}
}

// checks returns the operations of a proof.
func checks(paths []string) []Op {
	ops := make([]Op, len(paths))
	for i, path := range paths {
		ops[i] = CheckOp(path, -1)
	}
	return ops
}

// sleepIn waits until d has passed or one of the contexts has ended.
func sleepIn(a, b context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, time.Nanosecond)) // never zero: golang/go#78156
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.Done():
	case <-b.Done():
	}
}

// certainFor reports whether the session is certain for long enough to begin an ownership: a proof sent at the next
// tick must have two ticks for its reply.
func (s *Session) certainFor() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.checkCertainty(now)
	return s.certain().Sub(now) >= min(3*s.timeout/16, s.window()/2)
}

// A proof checks at most maxChecks nodes whose paths have at most maxCheckBytes: the transaction alone proves that the
// session lives, and servers cut the connection at a request that is too large, some at 64 KiB (jute.maxbuffer). A
// session that owns more checks them in turn.
const (
	maxChecks     = 256
	maxCheckBytes = 32 << 10
)

// fitting returns as many of the paths as one proof checks: one at least, however long it is. A request that creates a
// node is longer than one that checks it.
func (s *Session) fitting(paths []string) []string {
	room, root := maxCheckBytes, len(s.client.cfg.root)
	for i, path := range paths {
		if room -= root + len(path); i == maxChecks || room < 0 && i > 0 {
			return paths[:i]
		}
	}
	return paths
}

// A proof is a certificate that the session requests by itself: a sync, and after its reply a transaction that checks
// nodes. With a sync right before it a certificate extends certainty the most.
type proof struct {
	nodes []ownedNode
	sent  time.Time
}

// An ownedNode is a node that a proof checks.
type ownedNode struct {
	path  string
	owner *Ownership
}

// prove queues a proof if something is owned and one is due. It returns an error if the pending proof is overdue and
// certainty is about to end: another server may still answer in time.
func (s *Session) prove(n *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.checkCertainty(now)
	if s.owned == nil || n.readOnly || s.client.cfg.NoCertificates {
		return nil
	}
	if n.proof != nil {
		if waited := now.Sub(n.proof.sent); waited >= n.timeout/8 && s.certain().Sub(now) <= n.timeout/8 {
			waited = waited.Round(time.Millisecond)
			const text = "zk: %w: no quorum has confirmed the session through %v for %v"
			return fmt.Errorf(text, ErrNoReply, n.server, waited)
		}
		return nil
	}
	if s.proofDue(n, now) > 0 {
		return nil
	}
	p := &proof{sent: now}
	n.proof = p
	list := s.front()
	s.mu.Unlock()
	var checked int
	p.nodes, checked = s.sample(list)
	s.mu.Lock()
	s.rotate(list[:checked])
	if s.conn != n || s.cause != nil || len(p.nodes) == 0 {
		n.proof = nil
		return nil
	}
	c := s.newCall(wire.OpSync, "")
	c.quiet, c.proof = true, p
	c.req.path.Path = s.client.cfg.root.server("/")
	s.enqueue(c, &c.req.path)
	return nil
}

// proofDue returns the time until the next proof is due: an eighth of the timeout after the last certificate, or now if
// that one left less than a quarter of the timeout. The caller holds s.mu.
func (s *Session) proofDue(n *conn, now time.Time) time.Duration {
	switch {
	case n.proof != nil, n.readOnly, s.client.cfg.NoCertificates:
		return n.timeout / 16
	case s.certain().Sub(now) < n.timeout/4:
		return 0
	default:
		return s.certainty.newest.Add(n.timeout / 8).Sub(now)
	}
}

// front returns the ownerships at the front of the list. The caller holds s.mu.
func (s *Session) front() []*Ownership {
	var list []*Ownership
	for o := s.owned; o != nil && len(list) < maxChecks; o = o.next {
		list = append(list, o)
	}
	return list
}

// sample returns the nodes that the next proof checks, and of how many of the ownerships these are the last. An
// ownership with many nodes goes on where it stopped. The caller does not hold s.mu: an owner may call this session
// while it holds its own lock.
func (s *Session) sample(list []*Ownership) (nodes []ownedNode, checked int) {
	var paths []string
	for _, o := range list {
		all := o.owner.Nodes()
		o.checked = min(o.checked, len(all)) // there may be fewer than before
		had := len(paths)
		paths = s.fitting(append(paths, all[o.checked:min(len(all), o.checked+maxChecks)]...))
		for _, path := range paths[had:] {
			nodes = append(nodes, ownedNode{path, o})
			o.checked++
		}
		if o.checked < len(all) {
			break
		}
		o.checked = 0
		checked++
	}
	return nodes, checked
}

// rotate moves ownerships to the end of the list, except those that have ended. The caller holds s.mu.
func (s *Session) rotate(list []*Ownership) {
	end := s.owned
	for end != nil && end.next != nil {
		end = end.next
	}
	for _, o := range list {
		if o.listed && o != end {
			o.unlist()
			o.listed, o.previous, end.next = true, end, o
			end = o
		}
	}
}

// proved handles the reply to a part of a proof, and sends the next part. A certificate was recorded before.
func (s *Session) proved(c *call) {
	p := c.proof
	s.mu.Lock()
	n := s.conn
	ours := n != nil && n.proof == p
	if ours && c.op == wire.OpSync && c.code == wire.OK {
		if s.sendChecks(p) {
			s.flush(true)
			c.free()
			return
		}
	}
	if ours {
		n.proof = nil
	}
	broken := cmp.Or(s.cause, ErrConnectionLost)
	s.mu.Unlock()
	switch passed := c.op == wire.OpSync && c.err == nil && c.code == wire.OK; {
	case !passed:
		c.reportProof(c.failure())
	case !ours:
		c.reportProof(broken)
	}
	for i, r := range c.multi {
		if r.Err == wire.NoNode {
			node := p.nodes[i]
			go node.owner.owner.Gone(node.path)
		}
	}
	c.free()
}

// sendChecks queues the transaction of a proof, unless all its ownerships have ended. The caller holds s.mu, and
// flushes.
func (s *Session) sendChecks(p *proof) bool {
	p.nodes = slices.DeleteFunc(p.nodes, func(n ownedNode) bool { return !n.owner.listed }) // its ownership has ended
	paths := make([]string, len(p.nodes))
	for i, node := range p.nodes {
		paths[i] = node.path
	}
	req, err := s.multiRequest(checks(paths))
	if err != nil || len(paths) == 0 || s.cause != nil {
		return false
	}
	c := s.newCall(wire.OpMulti, "")
	c.quiet, c.proof, c.parts = true, p, len(paths)
	s.enqueue(c, req)
	return true
}
