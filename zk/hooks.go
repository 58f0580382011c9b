package zk

// Hooks for metrics and logs.

import (
	"context"
	"time"
)

// Hooks are called on the goroutine that did the work, never on one that reads from a connection. They must not block.
// Nil fields cost nothing. State, Connected and Disconnected must not call Client.Close, which waits for them to
// return; a hook that has to close the client starts a goroutine for it.
type Hooks struct {
	// Request is called when a request has been answered or has failed. An operation of a Batch is reported at the
	// first Get of its future, and not at all without one.
	Request func(ctx context.Context, r RequestDone)
	// State is called when the state of the client's session changes. Ended is the last state of a session; the states
	// of the next session follow.
	State func(State)
	// Connected is called when a server has accepted a connection for the session.
	Connected func(addr string)
	// Disconnected is called when that connection has failed or the session has ended, with the reason.
	Disconnected func(addr string, err error)
}

// RequestDone describes a request that was answered or has failed.
type RequestDone struct {
	Op   string // as in Error.Op
	Path string
	Took time.Duration
	Err  error // nil if it succeeded
}
