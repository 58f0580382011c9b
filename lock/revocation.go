package lock

// Being asked to release a lock.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// ErrRevoked is wrapped by the cause of a hold's context after another client asked for the lock with Revoke. The lock
// is still held until Unlock, unless the other client takes it by force. A *RevokedError names the client that asked,
// and its reason.
var ErrRevoked = errors.New("lock: revoked")

// Revocation is a request to a holder to release its lock. One by Curator's Revoker has no content.
type Revocation struct {
	By     Owner     `json:"by"`     // the client that asks
	Reason string    `json:"reason"` // as passed to Revoke
	At     time.Time `json:"at"`     // by that client's clock
}

// RevokedError is the cause of a hold's context after a revocation. It wraps ErrRevoked.
type RevokedError struct {
	Revocation Revocation
}

// Error names the client that asked for the lock, and its reason, as far as they are known.
func (e *RevokedError) Error() string {
	var b strings.Builder
	b.WriteString(ErrRevoked.Error())
	if by := e.Revocation.By; by.Host != "" || by.PID != 0 {
		fmt.Fprintf(&b, " by %s, pid %d on %s", by.Program, by.PID, by.Host)
	}
	if e.Revocation.Reason != "" {
		b.WriteString(": " + e.Revocation.Reason)
	}
	return b.String()
}

// Unwrap returns ErrRevoked.
func (e *RevokedError) Unwrap() error { return ErrRevoked }

// maxReason bounds the reason of a revocation: it is kept in nodes, next to others.
const maxReason = 1 << 10

func checkReason(reason string) error {
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return fmt.Errorf("lock: invalid reason; use UTF-8 of at most %d bytes", maxReason)
	}
	return nil
}

// revokeToken is what Curator's Revoker writes into the node of a holder, and what Curator's holders look for.
const revokeToken = "__REVOKE__"

// askedOwner is the data of a node of ours whose holder was asked to release the lock. It keeps the owner's record.
type askedOwner struct {
	signed
	Revoked *Revocation `json:"revoked,omitempty"`
	// Asked is the token of the node's first hold, where the node's name does not say which contender is asked.
	Asked Token `json:"asked,omitempty"`
}

// parseRevocation reads the request from the data of a node whose first hold has the given token. It reports false if
// there is no request, or one to another contender: the node that was meant has gone, and this one has the same name.
func parseRevocation(data []byte, token Token) (Revocation, bool) {
	if bytes.Equal(data, []byte(revokeToken)) {
		return Revocation{}, true
	}
	if _, ours := parseOwner(data); !ours {
		return Revocation{}, false
	}
	var asked askedOwner
	if json.Unmarshal(data, &asked) != nil || asked.Revoked == nil || asked.Asked != 0 && asked.Asked != token {
		return Revocation{}, false
	}
	return *asked.Revoked, true
}

// request returns what to write into a holder's node: data with the request, for one of ours, Curator's word for all
// others.
func (r Revocation) request(data []byte, of *Contender) []byte {
	asked := askedOwner{Revoked: &r}
	if _, ours := parseOwner(data); !ours || json.Unmarshal(data, &asked.signed) != nil {
		return []byte(revokeToken)
	}
	if of.simple {
		asked.Asked = of.Token
	}
	b, err := json.Marshal(asked)
	if err != nil {
		return []byte(revokeToken) // cannot happen: every field marshals
	}
	return b
}

// asked ends the holds of an ownership if its node has a request to release the lock, unless OnRevoke refuses.
//
// The node stays until the lock is unlocked, so that no other contender comes in while the holder finishes.
func (c *Config) asked(t *line.Ownership, data []byte) {
	r, ok := parseRevocation(data, Token(t.FirstToken()))
	if !ok {
		return
	}
	cause := &RevokedError{Revocation: r}
	if c.OnRevoke == nil {
		t.Stop(cause)
		return
	}
	// OnRevoke may take its time: the node is still watched meanwhile.
	t.StopIf(func(ctx context.Context) bool { return c.OnRevoke(ctx, r) }, cause)
}
