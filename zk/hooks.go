package zk

// Hooks for metrics and logs.

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/both"
)

// Hooks are called about a client's requests, connections and sessions. They must not block, and must not call
// Client.Close, which waits for them to return; a hook that has to close the client starts a goroutine for it. None is
// called on a goroutine that reads from a connection. Nil fields cost nothing.
//
// One goroutine, which keeps the client connected, calls all but Request and Proof. For each session it calls Opened,
// then Connected and Disconnected in turn, once for each connection, and Ended last. A session that no server has made
// calls State alone.
type Hooks struct {
	// Request is called once when a request has been answered or has failed: by the goroutine that called the method of
	// Session or Client, before that returns. An operation of a Batch is reported as well, whether or not anything
	// reads its future: by a goroutine of the client, in the order of the answers, with the values of the context that
	// was passed to Open. Get may return first, and Close waits until all are reported. What the session sends by
	// itself is not reported: pings, proofs, credentials, and the removal of watches.
	Request func(ctx context.Context, r RequestDone)
	// Proof is called once when a proof of the session's life, which it sends by itself while something is owned, was
	// answered or has failed: by the goroutine that reports the operations of batches. A proof that nothing needs any
	// more is not reported.
	Proof func(p ProofDone)
	// Certain is called when Session.Certain has changed while something is owned, at most about every sixteenth of
	// the session's timeout, and with the zero time when nothing is owned any more. Without a connection it is not
	// called, and the last time may pass: then what was owned is lost.
	Certain func(until time.Time)
	// State is called when the state of the client's session changes. Ended is the last state of a session; the states
	// of the next session follow.
	State func(State)
	// Opened is called when a server has made the session, before Connected.
	Opened func(s SessionOpened)
	// Ended is called when that session has ended, after the state Ended, with the cause of its context: ErrExpired,
	// ErrLost, ErrClosed, ErrAuthFailed or ErrUnsupported.
	Ended func(session int64, cause error)
	// Connected is called when a server has accepted a connection for the session.
	Connected func(addr string)
	// Disconnected is called when that connection has failed or the session has ended, with the reason: the cause of
	// the session's end, ErrNoReply, ErrMoved, ErrProtocol, or what the network says.
	Disconnected func(addr string, err error)
}

// And returns hooks that call those of h and then those of more: a program's own, and for example those of package
// metrics.
func (h Hooks) And(more Hooks) Hooks {
	return Hooks{
		Request:      both.Two(h.Request, more.Request),
		Proof:        both.One(h.Proof, more.Proof),
		Certain:      both.One(h.Certain, more.Certain),
		State:        both.One(h.State, more.State),
		Opened:       both.One(h.Opened, more.Opened),
		Ended:        both.Two(h.Ended, more.Ended),
		Connected:    both.One(h.Connected, more.Connected),
		Disconnected: both.Two(h.Disconnected, more.Disconnected),
	}
}

// RequestDone describes a request that was answered or has failed.
type RequestDone struct {
	Op   string // as in Error.Op
	Path string
	Took time.Duration
	Err  error // nil if it succeeded
}

// ProofDone describes a proof that was answered or has failed.
type ProofDone struct {
	Nodes int // that it checks: some of those by which the session owns something
	Took  time.Duration
	Err   error // nil if a quorum has confirmed the session and the nodes; wraps NoNode if one did not exist
}

// SessionOpened describes a new session.
type SessionOpened struct {
	ID        int64
	Requested time.Duration // the timeout that was asked for: Config.Timeout
	Granted   time.Duration // Session.Timeout
}
