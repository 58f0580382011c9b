package zk

// Errors, and what became of a request that failed.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Why a session ended: the cause of its context, and of every request that it took along.
var (
	// ErrExpired: the server says that the session is gone.
	ErrExpired = errors.New("zk: session expired at the server")
	// ErrLost: the local deadline has passed without an answer. The server may keep the session a little longer. What the session owned may
	// have ended before, with ErrUncertain.
	ErrLost = errors.New("zk: session lost: no answer from a server within the session's deadline")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("zk: client closed")
	// ErrAuthFailed: a server refused the client's credentials, or wants some (then SessionClosedRequireAuth is in
	// it, too). The client does not try again.
	ErrAuthFailed = errors.New("zk: authentication failed")
)

// What else can go wrong on this side of the wire.
var (
	// ErrConnectionLost: the connection went after the request was sent and before the answer came.
	ErrConnectionLost = errors.New("zk: connection lost before the answer")
	// ErrNotConnected: there is no connection to a server right now.
	ErrNotConnected = errors.New("zk: not connected to a server")
	// ErrWatchDone: the watch has given all its events, or was closed.
	ErrWatchDone = errors.New("zk: watch is done")
	// ErrProtocol: a server sent what the protocol does not allow. The connection was dropped.
	ErrProtocol = errors.New("zk: protocol violation by the server")
	// ErrAnswerTooLarge: the answer was larger than Config.MaxFrame, and its connection was dropped. It is an ErrProtocol, but no
	// ErrConnectionLost: whoever asks again gets the same answer.
	ErrAnswerTooLarge = fmt.Errorf("%w: the answer is larger than Config.MaxFrame", ErrProtocol)
)

// Error is what every request returns on failure.
type Error struct {
	Op   string // the operation, as ZooKeeper's documentation names it
	Path string // as the caller gave it; "" if the operation has none
	Err  error  // a Code, the session's cause, ErrConnectionLost, ErrAnswerTooLarge, or the context's error

	Outcome Outcome
}

// Error returns operation, path and reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("zk: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("zk: %s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Outcome says what became of a request that failed.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // it left this process and no answer came: it may have been executed, or still may be
	NotSent                // it never left this process
	Refused                // the server said no; it has changed nothing
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case NotSent:
		return "not sent"
	case Refused:
		return "refused"
	case Unknown:
		return "unknown"
	default:
		return fmt.Sprintf("outcome(%d)", int(o))
	}
}

// OutcomeOf returns what became of the request that failed with err: Unknown for errors that are not of this package.
func OutcomeOf(err error) Outcome {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	if _, ok := errors.AsType[Code](err); ok {
		return Refused
	}
	return Unknown
}

// contextError returns why ctx ended, so that errors.Is finds both the cause and context.Canceled or DeadlineExceeded.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// opName names an operation for errors: what the caller asked for, not which variant of it travelled.
func opName(op wire.Op) string {
	switch op {
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return wire.OpCreate.String()
	case wire.OpGetChildren2:
		return wire.OpGetChildren.String()
	default:
		return op.String()
	}
}
