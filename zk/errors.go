package zk

// Errors, and what became of a request that failed.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// The causes of a session's end, and of the failure of every request pending at that time.
var (
	// ErrExpired: the server has ended the session.
	ErrExpired = errors.New("the session expired at the server")
	// ErrLost: the session has ended here, not at the servers. Its deadline has passed without a reply, or a server has
	// resumed it with a shorter timeout than it was created with, so that it may end there sooner than this client
	// counts on, or a server has given a new session instead, as ClickHouse Keeper does. The error then says which
	// server. The client closes the session once its margin is over, if the servers resume it. What the session owned
	// may have ended before, with ErrUncertain.
	ErrLost = errors.New("the session is lost")

	errSilent = fmt.Errorf("%w: no reply from a server within the session's deadline", ErrLost)
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrAuthFailed: a server refused the client's credentials, or requires some (the error then wraps
	// SessionClosedRequireAuth, too). The client does not try again.
	ErrAuthFailed = errors.New("authentication failed")
	// ErrUnsupported: the servers resume no session, and close one connection after the other at the same operation. So
	// they are not ZooKeeper's, and do not know it. The error says which, and the client does not try again.
	ErrUnsupported = errors.New("the servers lack an operation")
)

// Other errors that arise in the client.
var (
	// ErrConnectionLost: the connection broke after the request was sent and before the reply came.
	ErrConnectionLost = errors.New("the connection was lost before the reply")
	// ErrNotConnected: there is no connection to a server.
	ErrNotConnected = errors.New("not connected to a server")
	// ErrWatchDone: the watch has yielded all its events, or was closed.
	ErrWatchDone = errors.New("the watch is done")
	// ErrProtocol: a server violated the protocol, and the connection was closed.
	ErrProtocol = errors.New("protocol violation by the server")
	// ErrReplyTooLarge: the reply was larger than Config.MaxFrame, and its connection was closed. It is not an
	// ErrConnectionLost, because the same request would get the same reply again.
	ErrReplyTooLarge = errors.New("the reply is larger than Config.MaxFrame")

	// ErrNoReply ends a connection whose server, or the quorum behind it, has not answered for too long.
	ErrNoReply = errors.New("no reply in time")
	// ErrMoved ends a connection that the client has left for another server: the list of servers has changed, or the
	// server had lost its ensemble and another one has not.
	ErrMoved = errors.New("left the server")

	// errFrame ends a connection on which a reply came that is too large. Requests behind that one are not asked again
	// by themselves: the large one may be, too, and would break each connection.
	errFrame = errors.New("frame larger than Config.MaxFrame")
)

// Error is the error of every request that failed.
type Error struct {
	Op   string // the operation, as ZooKeeper's documentation names it
	Path string // as given by the caller; "" if the operation has none
	Err  error  // a Code, the cause of the session's end, ErrConnectionLost, ErrReplyTooLarge, or the context's error

	Outcome Outcome
}

// Error returns operation, path and reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("zk: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("zk: %s %s: %v", e.Op, printable(e.Path), e.Err)
}

// printable returns a path for an error: quoted if a terminal cannot print it as it is. Other clients chose its names.
func printable(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.QuoteToGraphic(path)
	}
	return path
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Outcome says whether a request that failed may have been executed.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota // sent, without a reply: it may have been executed, or may still be
	NotSent                // never left this process
	Refused                // the server returned an error and changed nothing, or it was a read with ErrReplyTooLarge
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

// OutcomeOf returns the outcome of a request that failed with err. It is Unknown for errors that are not from this
// package.
func OutcomeOf(err error) Outcome {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	if _, ok := errors.AsType[Code](err); ok {
		return Refused
	}
	return Unknown
}

// temporary are the refusals that say nothing about the request itself: the server is overloaded, is cut off from the
// others, waited for them for too long, or got the request over a connection that its session had given up.
var temporary = []Code{ThrottledOp, OperationTimeout, SessionMoved, NotReadOnly}

// Temporary reports whether err is a failure after which the same request may succeed under the same session: a lost
// connection, or a refusal that passes. It says nothing about the outcome of a request whose connection was lost: see
// OutcomeOf. It is false for the end of a session or of a context, and for a request that no server takes because of
// its size.
func Temporary(err error) bool {
	return passes(err) || errors.Is(err, ErrConnectionLost) && !errors.Is(err, errTooLarge)
}

// passes reports whether err is a refusal that says nothing about the request itself.
func passes(err error) bool {
	return slices.ContainsFunc(temporary, func(code Code) bool { return errors.Is(err, code) })
}

// contextError returns an error that wraps both the error and the cause of ctx.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// opName returns an operation's name for errors. All variants of create and getChildren have the same name.
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
