package line

// Asking a holder to give up what it holds.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Owner describes a contender to others: see lock.Owner.
type Owner struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Label   string `json:"label,omitempty"`

	// Set has all paths of a set's contender. Where they are longer than 1,024 bytes together, only the node at the
	// first path has all of them, and the others have the first.
	Set []string `json:"set,omitempty"`

	Since time.Time `json:"since"` // when it joined the line, by its own clock; the last field (lock.ownerData)
}

// ThisProcess returns the owner record of this process without a time.
func ThisProcess(label string) Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // the record is for people; a host without a name must still be able to lock
	}
	return Owner{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Label: label}
}

// ErrRevoked is wrapped by every RevokedError.
var ErrRevoked = errors.New("revoked")

// Revocation is a request to a holder: see lock.Revocation.
type Revocation struct {
	By     Owner     `json:"by"`     // the client that asks
	Reason string    `json:"reason"` // as passed to Revoke
	At     time.Time `json:"at"`     // by that client's clock
}

// Same reports whether two requests are one: a node has been read twice.
func (r Revocation) Same(other Revocation) bool {
	return r.At.Equal(other.At) && r.Reason == other.Reason && r.By.Host == other.By.Host && r.By.PID == other.By.PID
}

// RevokedError is the cause of a holder's context after a request. It wraps ErrRevoked.
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

// Asked stops the ownership, because another client asks for what it owns, unless onRevoke is not nil and returns
// false. The nodes stay until the ownership is released, so that no other contender comes in while the holder finishes.
// OnRevoke runs on a goroutine of its own, and may take its time: the nodes are still watched meanwhile. It answers for
// the hold that there is, and its context ends with that: no further hold is served (see Spent).
func (o *Ownership) Asked(r Revocation, onRevoke func(ctx context.Context, r Revocation) bool) {
	o.mu.Lock()
	// One request comes again if a node is read twice, or another node has taken its place. Curator's have no content.
	again := o.asked != nil && r.Same(*o.asked) && !r.At.IsZero()
	o.asked = &r
	o.mu.Unlock()
	if again {
		return
	}
	cause := &RevokedError{Revocation: r}
	if onRevoke == nil {
		o.Stop(cause)
		return
	}
	go func() {
		ctx, cancel := o.NewContext()
		defer cancel(nil)
		if ctx.Err() == nil && onRevoke(ctx, r) {
			o.stop(cause)
		}
	}()
}
