package zk

// One request and its reply.

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// The states of a call, which say who owns it.
const (
	callOpen uint32 = iota // the session owns it, and the caller waits
	callDone               // it is answered, and the caller owns it
	callLeft               // the caller has left, and the session owns it
)

// A call is a request and its reply.
//
// The session owns it until its state leaves callOpen: to callDone when the reply has been stored, or to callLeft when
// the caller leaves, after which the session recycles the call. A compare-and-swap decides between the two.
type call struct {
	sess  *Session
	op    wire.Op
	xid   int32
	size  int       // of its frame, in bytes
	sent  time.Time // when its frame was handed to the connection
	made  time.Time // when a future was created; zero without a hook
	path  string    // as given by the caller
	watch *Watch    // to set when the reply allows it
	ops   []Op      // of a multi
	parts int       // how many operations a multi or multiRead has
	quiet bool      // sent by the session itself, without a caller
	waits bool      // queued and not canceled; guarded by the session's mu
	proof *proof    // the proof that a quiet call is part of, or nil
	state atomic.Uint32
	done  chan struct{} // one token, or closed if the call belongs to a future

	// The request's record, so that a call allocates nothing for it.
	req struct {
		path    wire.PathRequest
		watch   wire.PathWatchRequest
		create  wire.CreateTTLRequest
		remove  wire.DeleteRequest
		set     wire.SetDataRequest
		watcher wire.WatcherTypeRequest
	}
	answer
}

// answer is the union of all replies.
type answer struct {
	err     error     // why there is no reply
	outcome Outcome   // goes with err
	code    wire.Code // the server's refusal
	zxid    int64     // the transaction, or the last one that the reply reflects

	path2 string // of create: the path on the server
	stat  wire.Stat
	data  []byte
	names []string
	count int32
	acl   []wire.ACL
	ids   []wire.ID
	multi []wire.MultiResult
}

// newCall returns a call for one caller, who returns it with free.
func (s *Session) newCall(op wire.Op, path string) *call {
	c, ok := s.client.calls.Get().(*call)
	if !ok {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.sess, c.op, c.path = s, op, path
	return c
}

// newFutureCall returns a call whose reply several goroutines may read at any time. It is never recycled.
func (s *Session) newFutureCall(op wire.Op, path string) *call {
	c := &call{sess: s, op: op, path: path, done: make(chan struct{})}
	c.begin()
	return c
}

// free recycles the call. Only its owner may call it. It ends the call of an abandoned future instead.
func (c *call) free() {
	if cap(c.done) == 0 {
		c.report()
		c.err, c.outcome = errAbandoned, Unknown
		close(c.done)
		return
	}
	pool := &c.sess.client.calls
	*c = call{done: c.done}
	pool.Put(c)
}

// finish hands the answered call to the caller, and returns false if the caller has left.
func (c *call) finish() bool {
	if !c.claim() {
		return false
	}
	c.signal()
	return true
}

// claim marks the call as answered, and returns false if the caller has left.
func (c *call) claim() bool { return c.state.CompareAndSwap(callOpen, callDone) }

// signal wakes the caller of a claimed call, who then owns it.
func (c *call) signal() {
	if cap(c.done) == 0 {
		c.report()
		close(c.done)
	} else {
		c.done <- struct{}{}
	}
}

// failure returns the error of the call, or nil if it succeeded.
func (c *call) failure() error {
	switch {
	case c.err != nil:
		return &Error{Op: opName(c.op), Path: c.path, Err: c.err, Outcome: c.outcome}
	case c.code != wire.OK && (c.op != wire.OpExists || c.code != wire.NoNode): // NoNode is a result of exists
		return &Error{Op: opName(c.op), Path: c.path, Err: Code(c.code), Outcome: Refused}
	case c.multi != nil && c.op == wire.OpMulti:
		return c.multiFailure()
	default:
		return nil
	}
}

// decode reads the body of a successful reply.
func (c *call) decode(d *jute.Decoder) {
	switch c.op {
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		c.path2 = d.String()
		c.stat.Decode(d)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		c.stat.Decode(d)
	case wire.OpGetData, wire.OpReconfig:
		c.data = bytes.Clone(d.Buffer())
		c.stat.Decode(d)
	case wire.OpGetChildren2:
		c.names = d.Strings()
		c.stat.Decode(d)
	case wire.OpGetEphemerals:
		c.names = d.Strings()
	case wire.OpGetAllChildren:
		c.count = d.Int()
	case wire.OpGetACL:
		c.acl = wire.DecodeACLs(d)
		c.stat.Decode(d)
	case wire.OpWhoAmI:
		var r wire.WhoAmIResponse
		r.Decode(d)
		c.ids = r.IDs
	case wire.OpMulti, wire.OpMultiRead:
		c.decodeMulti(d)
	case wire.OpAddWatch:
		if d.Len() >= 4 {
			c.code = wire.Code(d.Int())
		}
	default: // delete, sync, removeWatches, closeSession: the body is not needed
	}
}

func (c *call) decodeMulti(d *jute.Decoder) {
	var r wire.MultiResponse
	r.Decode(d)
	c.multi = r.Results
	if d.Err() == nil && len(c.multi) != c.parts { // callers rely on one result per operation
		d.Fail(fmt.Errorf("%d results for %d operations", len(c.multi), c.parts))
	}
	if d.Err() != nil {
		c.multi = nil
	}
	for i := range c.multi {
		c.multi[i].Data = bytes.Clone(c.multi[i].Data)
	}
}
