package zk

// Credentials that are added to a session.

import (
	"context"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// AddAuth gives the session one more credential, on this connection and on all that follow. A credential that the server refuses
// ends the client with ErrAuthFailed. While there is no connection it waits for the next one; if ctx ends, the credential stays.
func (s *Session) AddAuth(ctx context.Context, a Auth) error {
	c := s.newCall(wire.OpAuth, "")
	s.mu.Lock()
	if cause := s.cause; cause != nil {
		s.mu.Unlock()
		c.free()
		return refuse(wire.OpAuth, "", cause)
	}
	s.auth = append(s.auth, Auth{Scheme: a.Scheme, Data: slices.Clone(a.Data)})
	c.count = int32(len(s.auth))
	s.auths = append(s.auths, c)
	if s.conn != nil {
		s.conn.sendAuth(a)
	}
	s.flush(true)
	select {
	case <-c.done:
		return c.discard()
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(callOpen, callLeft) {
		return &Error{Op: opName(wire.OpAuth), Err: contextError(ctx), Outcome: Unknown}
	}
	<-c.done
	return c.discard()
}

// sendAuth queues a credential for this connection alone. The caller holds sess.mu.
func (n *conn) sendAuth(a Auth) {
	n.extra = wire.AppendRequest(n.extra, wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: a.Scheme, Auth: a.Data})
}

// resumeAuth returns the calls of AddAuth whose credential the handshake has sent, and sends the others. The caller holds s.mu.
func (s *Session) resumeAuth(n *conn) (done []*call) {
	for len(s.auths) > 0 && int(s.auths[0].count) <= n.auths {
		done = append(done, s.auths[0])
		s.auths = s.auths[1:]
	}
	for _, a := range s.auth[n.auths:] {
		n.sendAuth(a)
	}
	return done
}
