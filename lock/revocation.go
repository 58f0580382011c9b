package lock

// Being asked to release a lock.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	stdpath "path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
)

// ErrRevoked is wrapped by the cause of a hold's context after another client asked for the lock with Revoke. The lock
// is still held until Unlock, unless the other client takes it by force. A *RevokedError names the client that asked,
// and its reason.
var ErrRevoked = errors.New("revoked")

// Revocation is a request to a holder to release its lock, or to a leader to resign. One by Curator's Revoker has no
// content.
type Revocation struct {
	By     Owner     `json:"by"`     // the client that asks
	Reason string    `json:"reason"` // as passed to Revoke
	At     time.Time `json:"at"`     // by that client's clock
}

// parseRequest reads the request in a leader's node. What is no request of ours has no content, as Curator's.
func parseRequest(data []byte) (r Revocation) {
	_ = json.Unmarshal(data, &r)
	return r
}

// RevokedError is the cause of a hold's context, or of a leadership's, after a revocation. It wraps ErrRevoked.
type RevokedError struct {
	Revocation Revocation
}

// Error names the client that asked, and its reason, as far as they are known.
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

// ask asks an ownership for what it owns.
func (r Revocation) ask(o *line.Ownership, onRevoke func(context.Context, Revocation) bool) {
	key := ""
	if !r.At.IsZero() {
		key = fmt.Sprintf("%d %s %d %s", r.At.UnixNano(), r.By.Host, r.By.PID, r.Reason)
	}
	line.Ask(o, r, key, &RevokedError{Revocation: r}, onRevoke)
}

// maxReason bounds the reason of a revocation: it is kept in nodes, next to others.
const maxReason = 1 << 10

func checkReason(reason string) error {
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return attempt.Bad("lock: invalid reason; use UTF-8 of at most %d bytes", maxReason)
	}
	return nil
}

// askedOwner is the data of a node of ours whose holder was asked to release the lock. It keeps the owner's record.
type askedOwner struct {
	signed
	Revoked *Revocation `json:"revoked,omitempty"`
	// Asked is the token of the node's first hold, where the node's name does not say which contender is asked.
	Asked Token `json:"asked,omitempty"`
	// Token is that of the hold, where it is not the node's: the hold has changed its kind, and had another node then.
	Token Token `json:"token,omitempty"`
}

// withToken adds the hold's token to an owner's record.
func withToken(data []byte, token Token) []byte {
	record := askedOwner{Token: token}
	if json.Unmarshal(data, &record.signed) == nil {
		data, _ = json.Marshal(record) // every field marshals
	}
	return data
}

// tokenOf returns the token of the hold that a node of ours with that data stands for. Node is the token that the node
// gives, which later ones are not.
func tokenOf(data []byte, node Token) Token {
	var record askedOwner
	if json.Unmarshal(data, &record) == nil && 0 < record.Token && record.Token < node {
		return record.Token
	}
	return node
}

// parseRevocation reads the request from the data of a node of ours, whose first hold has the given token. It reports
// false if there is no request, or one to another contender: the node that was meant has gone, and this one has the
// same name.
func parseRevocation(data []byte, token Token) (Revocation, bool) {
	if string(data) == line.RevokeToken {
		return Revocation{}, true
	}
	var asked askedOwner
	if json.Unmarshal(data, &asked) != nil || asked.Revoked == nil || asked.Asked != 0 && asked.Asked != token {
		return Revocation{}, false
	}
	return *asked.Revoked, true
}

// withRequest returns what to write into a holder's node: data with the request, for one of ours, Curator's word for
// all others.
func withRequest(data []byte, r *Revocation, of *Contender) []byte {
	if of.ourCandidate() {
		record := line.DecodeCandidate(data)
		record.Request, _ = json.Marshal(r) // every field marshals
		return record.Encode()
	}
	var asked askedOwner
	_, ours := parseOwner(stdpath.Base(of.Path), of.marker, data)
	if !ours || json.Unmarshal(data, &asked) != nil {
		return []byte(line.RevokeToken)
	}
	if asked.Revoked = r; of.simple {
		asked.Asked = of.Token
	}
	b, err := json.Marshal(asked)
	if err != nil {
		return []byte(line.RevokeToken) // cannot happen: every field marshals
	}
	return b
}

// asked ends the holds of an ownership if its node has a request to release the lock, unless OnRevoke refuses.
func (b *base) asked(o *line.Ownership, data []byte) {
	r, ok := parseRevocation(data, Token(o.FirstToken()))
	switch {
	case !ok:
	case b.passes != nil:
		b.passes.asked(o, r)
	default:
		r.ask(o, b.cfg.OnRevoke)
	}
}

// asked tells an ownership that another client asks for it. If no goroutine holds the lock, none is asked, and the
// ownership ends.
func (q *localQueue) asked(o *line.Ownership, r Revocation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	onRevoke := q.base.cfg.OnRevoke
	if g := q.current; o.Turn() == 0 || g != nil && g.ownership == o && g.holds == 0 {
		onRevoke = nil
	}
	r.ask(o, onRevoke)
}
