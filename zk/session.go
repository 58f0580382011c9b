package zk

// A session: its state, its local deadline and its end.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// A Session is one session with an ensemble. It survives reconnects and ends exactly once; see Context. Its methods may
// be called from several goroutines at once.
//
// Requests made without a connection wait for the next one. A request that was pending when its connection broke fails
// with ErrConnectionLost and outcome Unknown; none is sent twice. When the session ends, all its requests fail with the
// cause of the end.
type Session struct {
	client *Client
	ctx    context.Context //nolint:containedctx // ends with the session; callers derive theirs from it
	cancel context.CancelCauseFunc

	mu        sync.Mutex // guards what follows; never held while something blocks
	id        int64
	password  []byte
	cause     error // why the session has ended
	state     State
	changed   chan struct{} // closed at the next change of state
	conn      *conn         // nil while suspended
	closedAt  wire.Op       // the oldest request without a reply when a server closed the last connection; 0 if none
	server    server        // of conn, or of the last one
	timeout   time.Duration // granted at the session's creation
	heard     time.Time     // when the last answered request was sent
	verified  time.Time     // when the last request answered by a server that was not read-only was sent
	expiry    *time.Timer   // calls checkDeadline
	certainty certainty
	owned     *Ownership    // the first of the list of active ownerships
	owning    chan struct{} // one slot: the first of them has begun
	doubt     *time.Timer   // calls checkCertainty when certainty ends; nil until needed
	doubting  bool          // doubt is running
	lastZxid  int64         // the last transaction seen in a reply
	told      time.Time     // the last time that the hook was told of as certain; keep's alone
	xid       int32
	calls     fifo          // pending calls in the order of their xids
	unsent    int           // how many calls, at the end of the queue, are still in out
	canceled  int           // how many of these are canceled; less than half
	drained   chan struct{} // closed when no calls are pending; nil unless drain or leave waits for that
	out       []byte        // frames to write
	spare     []byte        // replaces out while that is written
	watches   watchSet
	auth      []Auth  // the credentials for every connection
	auths     []*call // pending calls of AddAuth
}

func newSession(c *Client) *Session {
	s := &Session{
		client: c, state: Suspended, changed: make(chan struct{}), auth: slices.Clip(c.cfg.Auth),
		owning: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.ctx, s.cancel = lifetime{ctx, s}, cancel
	return s
}

// ID returns the session's number at the servers, which is the EphemeralOwner of its ephemeral nodes.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Client returns the client that the session belongs to.
func (s *Session) Client() *Client { return s.client }

// Timeout returns the session timeout, which the server granted when it created the session. It does not change: see
// ErrLost.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}

// Context returns a context that ends with the session, exactly once. context.Cause returns ErrExpired, ErrLost,
// ErrClosed, ErrAuthFailed or ErrUnsupported. The context's Err checks the deadline, so that after a pause of the
// process it does not return nil only because a timer has not run yet.
func (s *Session) Context() context.Context { return s.ctx }

// Deadline returns when the session ends with ErrLost unless a reply arrives first: the time at which the last answered
// request was sent, plus the session's timeout, less the margin. Every reply moves it. It is exact on the monotonic
// clock. A reply shows that some server is alive, not that the ensemble still knows the session: see Certain.
func (s *Session) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.clock.system(s.deadline())
}

// LastZxid returns the largest zxid of all replies under this session: the server that sent it had applied all
// transactions up to that one. Every event of a watch that belongs to them is available before LastZxid returns it.
func (s *Session) LastZxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastZxid
}

// now returns the time of the client's clock, which all times of the session refer to.
func (s *Session) now() time.Time { return s.client.clock.now() }

func (s *Session) deadline() time.Time { return s.heard.Add(s.window()) }

// window returns how long the session lives after sending the last request that is answered. The caller holds s.mu.
func (s *Session) window() time.Duration { return s.client.window(s.timeout) }

// State returns the session's state, and a channel that is closed at the next change.
func (s *Session) State() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// States yields the session's state now and after every change, until the session or ctx has ended. A slow caller
// misses intermediate states, but never the last.
func (s *Session) States(ctx context.Context) iter.Seq[State] {
	return func(yield func(State) bool) {
		for last := State(0); ; {
			state, changed := s.State()
			if state != last && !yield(state) || state == Ended {
				return
			}
			last = state
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Server returns the server that the session is connected to, as Config.Servers names it, or else the one that it was
// connected to last. It returns "" before the first connection.
func (s *Session) Server() (address string, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server.String(), s.conn != nil
}

// setState changes the state. The caller holds s.mu.
func (s *Session) setState(state State) {
	if s.state == state {
		return
	}
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}

// answered records that the server has answered a request sent at the given time. A reply after the deadline does not
// revive the session. The caller holds s.mu.
func (s *Session) answered(n *conn, sent time.Time) {
	now := s.now()
	n.lastReply = now
	if sent.After(s.heard) && now.Before(s.deadline()) {
		s.heard = sent
	}
	s.certainty.answered(sent, now)
	if !n.readOnly && sent.After(s.verified) {
		if s.client.cfg.NoCertificates {
			s.checkCertainty(now)
		}
		s.verified = sent
	}
}

// travelled records that a sync or a write was answered with OK. The caller holds s.mu.
func (s *Session) travelled(n *conn, c *call) {
	if c.op.Writes() {
		s.checkCertainty(n.lastReply)
		s.certainty.certified(c.sent, s.timeout-s.window())
	}
	s.certainty.travelled(c.sent, n.lastReply)
}

// checkDeadline ends the session if its deadline has passed, and otherwise sets the timer for the deadline.
func (s *Session) checkDeadline() {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	if left := s.deadline().Sub(s.now()); left > 0 {
		s.expiry.Reset(left)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.end(errSilent)
}

// attach makes n the session's connection after its handshake, and returns false if the session has ended. Requests
// that wait are written after the watches are restored.
func (s *Session) attach(n *conn) bool {
	s.mu.Lock()
	now := s.now()
	if s.cause != nil || !now.Before(s.deadline()) {
		s.mu.Unlock()
		n.start() // closeSession sends on it
		s.end(errSilent)
		return false
	}
	s.checkCertainty(now)
	s.heard = n.started
	s.certainty.connected(n.started, n.timeout, n.timeout-s.window(), n.fresh)
	s.doubting = false // certainty may end before the running timer fires
	s.watchCertainty(now)
	if !n.readOnly {
		s.verified = n.started
	}
	n.lastSent, n.lastReply = now, now
	n.restore = s.watches.restore(s.lastZxid)
	n.setWatches = len(n.restore)
	n.writing = true // the writer begins with the watches
	s.conn, s.server = n, n.server
	done := s.resumeAuth(n)
	s.expiry.Reset(s.deadline().Sub(now))
	state := Connected
	if n.readOnly {
		state = ConnectedReadOnly
	}
	s.setState(state)
	s.mu.Unlock()
	for _, c := range done {
		if !c.finish() {
			c.free()
		}
	}
	n.start()
	return true
}

// drain waits until no request is pending, the connection breaks, or limit has passed.
func (s *Session) drain(limit time.Duration) {
	s.mu.Lock()
	if s.conn == nil || s.calls.len() == 0 {
		s.mu.Unlock()
		return
	}
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	drained, changed := s.drained, s.changed
	s.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-drained:
	case <-changed:
	case <-timer.C:
	}
}

// detach removes a connection that has failed. Calls that were sent fail; the others wait for the next connection.
func (s *Session) detach(n *conn, why error) {
	n.fail(why)
	n.wg.Wait() // the reader may still deliver a reply, and set a watch that the next connection must restore
	s.mu.Lock()
	if s.conn != n {
		s.mu.Unlock()
		return
	}
	s.conn, s.drained = nil, nil
	sent := make([]*call, s.calls.len()-s.unsent)
	closed := closedByServer(why)
	s.closedAt = 0
	for i := range sent {
		sent[i] = s.calls.pop()
		if closed && i == 0 {
			s.closedAt = sent[i].op
		}
		if w := sent[i].watch; w != nil {
			s.watchAnswered(w, false, false)
		}
	}
	s.watches.reset()
	s.setState(Suspended)
	s.mu.Unlock()
	for i, c := range sent {
		err := c.lost(why)
		if closed && i == 0 {
			err = fmt.Errorf("%w: the server closed the connection at this request, operation %d", err, c.op)
		}
		c.drop(err, Unknown)
	}
}

// closedByServer reports whether a server has ended the connection, rather than this client or the network between.
func closedByServer(why error) bool {
	return errors.Is(why, io.EOF) || errors.Is(why, syscall.ECONNRESET)
}

// drop ends a call without a reply.
func (c *call) drop(why error, outcome Outcome) {
	c.err, c.outcome = why, outcome
	if c.proof != nil {
		c.reportProof(why)
	}
	if c.quiet || !c.finish() {
		c.free()
	}
}

// end ends the session, once. Everything sent, queued or watched under it fails with the cause.
func (s *Session) end(cause error) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.cause, s.conn = cause, nil
	sent := s.calls.len() - s.unsent
	dropped := make([]*call, s.calls.len())
	for i := range dropped {
		dropped[i] = s.calls.pop()
		dropped[i].waits = false
	}
	s.out, s.unsent, s.canceled = nil, 0, 0
	auths := s.auths
	s.auths = nil
	var watches []*Watch
	var held []*Batch
	s.watches.all(func(w *Watch) {
		watches, held = append(watches, w), append(held, w.then)
		w.then = nil
	})
	for s.owned != nil {
		s.owned.unlist()
	}
	s.setState(Ended)
	if s.doubt != nil {
		s.doubt.Stop()
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.mu.Unlock()

	s.cancel(cause)
	for i, c := range dropped {
		if i < sent {
			c.drop(cause, Unknown)
		} else {
			c.drop(cause, NotSent)
		}
	}
	for _, c := range auths {
		c.drop(cause, Unknown)
	}
	for i, w := range watches {
		w.end(cause)
		held[i].drop(cause)
	}
}

// String returns the session's number as ZooKeeper's tools show it.
func (s *Session) String() string { return "session " + s.hexID() }

// hexID returns the id as ZooKeeper's tools show it.
func (s *Session) hexID() string { return fmt.Sprintf("0x%x", s.ID()) }
