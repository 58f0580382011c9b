package zk

// Authentication by SASL, whatever the mechanism.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// SASL is a mechanism by which client and server authenticate each other on every connection: DigestMD5, or Kerberos by
// the module zk/gssapi. Its methods may be called from several goroutines at once.
type SASL interface {
	// Begin begins an exchange with a server. Host is the server's, as Config.Servers names it; it is empty for a unix
	// socket. Begin must return when ctx ends.
	Begin(ctx context.Context, host string) (SASLExchange, error)
}

// SASLExchange is the client's side of one authentication. If a method of SASL or of SASLExchange returns an error that
// wraps ErrAuthFailed the client ends; after other errors it connects again.
type SASLExchange interface {
	// Next returns the client's next token, given the server's last one, which is nil at first. At the end it returns
	// true and no token, after it has checked that the server is authenticated, too.
	Next(token []byte) (answer []byte, done bool, err error)
}

// maxSASLSteps bounds an exchange with a server that goes on for ever.
const maxSASLSteps = 16

// authenticateSASL authenticates the client and the server to each other.
func (n *conn) authenticateSASL(ctx context.Context, mechanism SASL) error {
	x, err := mechanism.Begin(ctx, n.server.host)
	if err != nil {
		return fmt.Errorf("SASL: %w", err)
	}
	var token []byte
	for step := range maxSASLSteps {
		answer, done, err := x.Next(token)
		if err != nil {
			return fmt.Errorf("SASL: %w", err)
		}
		if done {
			return nil
		}
		token, err = n.saslStep(answer)
		if _, digest := mechanism.(DigestMD5); digest && step == 0 && errors.Is(err, ErrAuthFailed) {
			// Nothing of the user or the password was sent yet.
			err = fmt.Errorf("%w: the server does not allow DIGEST-MD5 (ZooKeeper 3.9.6 does so only with "+
				"zookeeper.fips-mode=false)", err)
		}
		if err != nil {
			return err
		}
		if step == 0 && token == nil {
			return fmt.Errorf("%w: server does not support SASL", ErrAuthFailed)
		}
	}
	return fmt.Errorf("%w: SASL takes more than %d steps", ErrProtocol, maxSASLSteps)
}

// saslStep sends a token and returns the server's.
func (n *conn) saslStep(token []byte) ([]byte, error) {
	s := n.sess
	s.mu.Lock()
	xid := s.takeXid()
	s.mu.Unlock()
	if _, err := n.nc.Write(wire.AppendRequest(nil, xid, wire.OpSASL, &wire.SASLToken{Token: token})); err != nil {
		return nil, err
	}
	h, d, err := n.answer(xid)
	if err != nil {
		return nil, err
	}
	if h.Err != wire.OK {
		return nil, fmt.Errorf("%w: SASL: %v", ErrAuthFailed, h.Err)
	}
	var answer wire.SASLToken
	answer.Decode(d)
	return answer.Token, d.Err()
}
