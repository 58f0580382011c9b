package zk

// Hooks for metrics and logs.

import (
	"context"
	"time"
)

// Hooks are called on the goroutine that did the work, never on one that reads from a connection. Nil fields cost
// nothing. They must not block. State, Connected and Disconnected must not call Client.Close, which waits for them:
// none of them is called any more when it returns. A hook that is to close the client does so on a goroutine of its
// own.
type Hooks struct {
	// Request is called when a request has its answer or has failed. For an operation of a Batch that is when the first Get
	// takes the answer; a future that nobody asks is not reported.
	Request func(ctx context.Context, r RequestDone)
	// State is called when the state of the client's session changes. The last state of a session is Ended; those of
	// the next follow.
	State func(State)
	// Connected is called when a server has accepted a connection for the session.
	Connected func(addr string)
	// Disconnected is called when that connection has failed or the session has ended, with the reason.
	Disconnected func(addr string, err error)
}

// RequestDone describes a request that has ended.
type RequestDone struct {
	Op   string // as in Error.Op
	Path string
	Took time.Duration
	Err  error // nil if it succeeded
}
