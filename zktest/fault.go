package zktest

import (
	"context"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Fault is what happens to one request. The zero Fault is Pass.
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
)

// The faults that need no argument. Those that end the connection deliver nothing that the client has sent behind the request,
// so that what the server has done is certain.
var (
	// Pass lets the request through.
	Pass = Fault{}

	// Refuse loses the request before the server sees it. What the client sent before it is answered; then the connection ends.
	Refuse = Fault{kind: kindRefuse}

	// CutBefore ends the connection at once: the server does not see the request, and the answers that are still under way to
	// earlier ones are lost as well.
	CutBefore = Fault{kind: kindCutBefore}

	// DropReply lets the server apply the request and loses the reply: the connection ends in its place.
	DropReply = Fault{kind: kindDropReply}

	// CutAfter delivers the request and its reply, and then ends the connection.
	CutAfter = Fault{kind: kindCutAfter}

	// Stale answers a read as the server answered the same read last, whoever made it over this Link: as a server does that
	// lags behind. It passes what nobody has read yet or is no read, and reads that leave a watch. The server does not see
	// what is answered so. A client that has seen something newer already never meets such a server in ZooKeeper.
	Stale = Fault{kind: kindStale}

	// Mute delivers the request and all that the client sends from then on, but the client hears nothing any more, neither the
	// reply nor anything behind it, while the connection stays open. Heal ends the connection.
	Mute = Fault{kind: kindMute}
)

// Answer answers the request with an error in the server's place, in its turn; the server does not see it. A handshake, which cannot
// be answered so, is refused. Answer panics if code is 0, because a success has a body that only a server knows.
func Answer(code zk.Code) Fault {
	if code == 0 {
		panic("zktest: Answer(0): only the server knows what a successful request is answered with; use Pass")
	}
	return Fault{kind: kindAnswer, code: code}
}

// Delay delivers the request d later, and behind it all that the client sends later on the same connection.
func Delay(d time.Duration) Fault { return Fault{kind: kindHoldRequest, delay: d} }

// DelayReply delivers the request at once and its reply d later, and behind it all that the server sends later on the same connection.
func DelayReply(d time.Duration) Fault { return Fault{kind: kindHoldReply, delay: d} }

// Until delivers the request when ctx ends, and behind it all that the client sends later on the same connection.
// It is how a test stops a client at a chosen step: ctx, proceed := context.WithCancel(t.Context()).
func Until(ctx context.Context) Fault { return Fault{kind: kindHoldRequest, until: ctx.Done()} }

// ReplyUntil delivers the request at once and its reply when ctx ends, and behind it all that the server sends later on the same
// connection.
func ReplyUntil(ctx context.Context) Fault { return Fault{kind: kindHoldReply, until: ctx.Done()} }

// WithoutQuorum returns a function for Link.Control that makes the server one that has lost its quorum, as far as a session can see: pings and
// reads are answered, writes and syncs refused with zk.NotReadOnly.
func WithoutQuorum(session int64) func(Request) Fault {
	needed := []Op{OpCreate, OpDelete, OpSetData, OpSetACL, OpMulti, OpReconfig, OpSync}
	return func(r Request) Fault {
		if r.Session == session && slices.Contains(needed, r.Op) {
			return Answer(zk.NotReadOnly)
		}
		return Pass
	}
}
