package zk

// Credentials that are added to a session.

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// maxAuth is the size of a credential that servers accept: they cut the connection at larger requests.
const maxAuth = wire.DefaultMaxFrame - 64

// validate returns an error for a credential that would end each connection on which it is sent.
func (a *Auth) validate() error {
	switch {
	case a.Scheme == "":
		return fmt.Errorf("%w: scheme of a credential must not be empty", BadArguments)
	case len(a.Scheme)+len(a.Data) > maxAuth:
		return fmt.Errorf("%w: credential of %d bytes, limit %d", BadArguments, len(a.Scheme)+len(a.Data), maxAuth)
	}
	return nil
}

// AddAuth adds a credential to the session, for this connection and all that follow, and waits for the server to accept
// it. If the server refuses it, the client ends with ErrAuthFailed. If ctx ends first, AddAuth returns its cause, and
// the credential stays.
func (s *Session) AddAuth(ctx context.Context, a Auth) error {
	if err := a.validate(); err != nil {
		return refuse(wire.OpAuth, "", err)
	}
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

// sendAuth queues a credential for this connection only. The caller holds sess.mu.
func (n *conn) sendAuth(a Auth) {
	n.extra = wire.AppendRequest(n.extra, wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: a.Scheme, Auth: a.Data})
}

// resumeAuth returns the calls of AddAuth whose credential the handshake has sent, and sends the other credentials. The
// caller holds s.mu.
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
