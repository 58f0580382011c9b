package zktest

import (
	"context"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Fault is what a Link does to one request. The zero Fault is Pass.
type Fault struct {
	kind  faultKind
	delay time.Duration
	until <-chan struct{}
	code  zk.Code
}

type faultKind int

const (
	kindPass faultKind = iota
	kindRefuse
	kindCutBefore
	kindDropReply
	kindCutAfter
	kindMute
	kindAnswer
	kindStale
	kindHoldRequest
	kindHoldReply
	kindForget
)

// The faults without an argument. A fault that ends the connection also drops every request behind this one, so that a
// test knows what the server has applied.
var (
	// Pass lets the request through.
	Pass = Fault{}

	// Refuse drops the request before the server sees it. Earlier requests get their replies; then the connection ends.
	Refuse = Fault{kind: kindRefuse}

	// CutBefore ends the connection at once: the server does not see the request, and earlier requests lose the replies
	// that are still on their way.
	CutBefore = Fault{kind: kindCutBefore}

	// DropReply lets the server apply the request and drops the reply: the connection ends instead.
	DropReply = Fault{kind: kindDropReply}

	// CutAfter delivers the request and its reply, and then ends the connection.
	CutAfter = Fault{kind: kindCutAfter}

	// Stale answers a read with the server's last reply to the same read of any client of this Link, as a server that
	// lags behind would. The server does not see the request. Stale passes other requests, reads that set a watch, and
	// reads that have no earlier reply. In ZooKeeper a client never meets a server that is behind what the client has
	// already seen.
	Stale = Fault{kind: kindStale}

	// Forget turns a handshake that asks for an old session into one for a new session, as ClickHouse Keeper does with
	// each: the old session stays at the server until it expires, and its client gets another id. Forget passes other
	// requests. Keeper also closes the connection at an operation that it does not know, which is Refuse.
	Forget = Fault{kind: kindForget}

	// Mute delivers this request and all later ones of the connection, but drops every reply and event from this
	// request's reply on. The connection stays open until Heal ends it.
	Mute = Fault{kind: kindMute}
)

// Answer replies to the request with an error, in order, and the server does not see the request. A handshake has no
// error reply, so Answer refuses it. Answer panics if code is 0, because only a server knows the body of a success.
func Answer(code zk.Code) Fault {
	if code == 0 {
		panic("zktest: Answer needs an error code, not 0; use Pass to have the server answer")
	}
	return Fault{kind: kindAnswer, code: code}
}

// Delay delivers the request d later. What the client sends after it on the same connection waits behind it.
func Delay(d time.Duration) Fault { return Fault{kind: kindHoldRequest, delay: d} }

// DelayReply delivers the reply d later. What the server sends after it on the same connection waits behind it.
func DelayReply(d time.Duration) Fault { return Fault{kind: kindHoldReply, delay: d} }

// Until delivers the request when ctx ends. What the client sends after it on the same connection waits behind it.
// With it a test stops a client at a chosen step: ctx, proceed := context.WithCancel(t.Context()).
func Until(ctx context.Context) Fault { return Fault{kind: kindHoldRequest, until: ctx.Done()} }

// ReplyUntil delivers the reply when ctx ends. What the server sends after it on the same connection waits behind it.
func ReplyUntil(ctx context.Context) Fault { return Fault{kind: kindHoldReply, until: ctx.Done()} }

// WithoutQuorum returns a function for Link.Control that makes the server look to one session as if it had lost its
// quorum: it answers pings and reads, and refuses writes and syncs with zk.NotReadOnly.
func WithoutQuorum(session int64) func(Request) Fault {
	needed := []Op{OpCreate, OpDelete, OpSetData, OpSetACL, OpMulti, OpReconfig, OpSync}
	return func(r Request) Fault {
		if r.Session == session && slices.Contains(needed, r.Op) {
			return Answer(zk.NotReadOnly)
		}
		return Pass
	}
}
