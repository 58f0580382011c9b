package zk

// The writes that prove a session to be alive.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// ErrUncertain is why an ownership has ended: a lock's hold, say. No quorum of the ensemble has confirmed the session for so long that it may
// have expired there, although a server may still answer. The session goes on, and may turn out to be alive.
var ErrUncertain = errors.New("zk: session uncertain: no quorum has confirmed it within its timeout")

// Certain returns until when no other session can have been given what this one owns, as far as is known now: the ensemble cannot have
// ended the session before. It moves on with every write that is answered, and while there is an Ownership the session sends one that
// changes nothing every eighth of its timeout. It may lie in the past: a session that owns nothing does not pay for certainty. See
// docs/partitions.md for the rule and its argument.
//
// With Config.NoCertificates it counts from any answer, as Deadline does.
func (s *Session) Certain() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.clock.system(s.certain())
}

// Certify returns nil once the session is certain for long enough to begin an Ownership: at once, if it has written something lately. Otherwise
// it proves the session with a transaction that checks that the nodes at paths are there, and returns an error that wraps NoNode if
// one is not. A connection that breaks is waited for. It ends with ctx, with its cause, and with the session.
func (s *Session) Certify(ctx context.Context, paths ...string) error {
	for {
		if s.certainFor() {
			return nil
		}
		began := time.Now()
		_, err := s.Multi(ctx, checks(paths[:min(len(paths), maxChecks)])...)
		switch {
		case err == nil && s.certainFor():
			return nil
		case ctx.Err() != nil:
			return contextError(ctx)
		case s.Err() != nil:
			return s.Err()
		case err == nil, passing(err):
			// A client that was stopped for long needs a second proof, some time after the first. A server that refuses for now may not later.
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

// passing reports whether err is a refusal that tells nothing about the request.
func passing(err error) bool {
	for _, code := range []Code{SessionMoved, NotReadOnly, OperationTimeout, ThrottledOp} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, ErrConnectionLost)
}

// sleepIn waits until d has passed or one of the contexts has ended.
func sleepIn(a, b context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, time.Nanosecond)) // never zero: see golang/go#78156 in docs/bugs.md
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.Done():
	case <-b.Done():
	}
}

// certainFor reports whether the session is certain for long enough to begin an ownership: until a proof that begins at the next tick has had
// two ticks to come back.
func (s *Session) certainFor() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.checkCertainty(now)
	return s.certain().Sub(now) >= min(3*s.timeout/16, s.window()/2)
}

// maxChecks bounds how many nodes one proof checks. A session that owns more checks them in turn.
const maxChecks = 256

// A proof is a certificate that the session asks for by itself, on its way: a sync, and when that is answered a transaction that checks
// nodes. With the sync right before it the certificate brings the most (see certainty).
type proof struct {
	nodes []ownedNode
	sent  time.Time
}

// An ownedNode is a node that a proof checks.
type ownedNode struct {
	path  string
	owner *Ownership
}

// prove queues a proof if something is owned and the last certificate is an eighth of the timeout old, or has not brought much. It returns
// an error when the proof under way has had its time: while there is some left, another server may give it.
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
			return fmt.Errorf("zk: %v has not confirmed the session with a quorum for %v", n.server, waited.Round(time.Millisecond))
		}
		return nil
	}
	if s.proofDue(n, now) > 0 {
		return nil
	}
	p := &proof{sent: now}
	n.proof = p
	// Owners have locks of their own, under which they ask this session.
	list := s.rotate()
	s.mu.Unlock()
	for _, o := range list {
		for _, path := range o.owner.Nodes() {
			p.nodes = append(p.nodes, ownedNode{path, o})
		}
	}
	s.mu.Lock()
	if s.conn != n || s.cause != nil || len(p.nodes) == 0 {
		n.proof = nil
		return nil
	}
	c := s.newCall(wire.OpSync, "")
	c.quiet, c.proof = true, p
	c.req.path.Path = s.client.cfg.root.server(p.nodes[0].path)
	s.enqueue(c, &c.req.path)
	return nil
}

// proofDue returns how long it is until the next proof is to be sent: an eighth of the timeout after the last certificate, or at the next tick
// if that has not brought much. The caller holds s.mu.
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

// rotate returns owners for one proof, and puts them at the end of the list. The caller holds s.mu.
func (s *Session) rotate() []*Ownership {
	var list []*Ownership
	for o := s.owned; o != nil && len(list) < maxChecks; o = o.next {
		list = append(list, o)
	}
	last := list[len(list)-1]
	if last.next == nil {
		return list
	}
	end := last
	for end.next != nil {
		end = end.next
	}
	end.next, s.owned.previous = s.owned, end
	s.owned, last.next.previous, last.next = last.next, nil, nil
	return list
}

// proved looks at the answer of a part of a proof, and sends the next. The certificate, if it is one, has been booked.
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
	s.mu.Unlock()
	for i, r := range c.multi {
		if r.Err == wire.NoNode {
			node := p.nodes[i]
			go node.owner.owner.Gone(node.path)
		}
	}
	c.free()
}

// sendChecks queues the transaction of a proof, unless there is no more to be said. The caller holds s.mu, and flushes.
func (s *Session) sendChecks(p *proof) bool {
	p.nodes = slices.DeleteFunc(p.nodes, func(n ownedNode) bool { return !n.owner.listed }) // it was given up meanwhile
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
