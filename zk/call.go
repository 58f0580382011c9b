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

// States of a call: who may touch it.
const (
	callOpen uint32 = iota // the session has it; the caller waits
	callDone               // it has its answer and is the caller's
	callLeft               // the caller has left; it is the session's
)

// A call is a request on its way and its answer on the way back.
//
// Until it is done it belongs to the session. Whoever moves its state from callOpen decides its fate: to callDone with the answer
// written before, or to callLeft by a caller that goes away, after which the session recycles it.
type call struct {
	sess  *Session
	op    wire.Op
	xid   int32
	size  int       // of its frame, in bytes
	sent  time.Time // when its frame was handed to the connection
	made  time.Time // of a future, when it was asked for; zero unless a hook wants to know
	path  string    // as the caller gave it
	watch *Watch    // to register when the answer allows it
	ops   []Op      // of a multi
	parts int       // how many operations a multi or multiRead has
	quiet bool      // nobody waits: the session's own housekeeping
	waits bool      // to be sent, and was not withdrawn; guarded by the session's mu
	proof *proof    // that a quiet call is; nil for others
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

// answer is the union of all answers.
type answer struct {
	err     error     // why there is no answer
	outcome Outcome   // goes with err
	code    wire.Code // the server's refusal
	zxid    int64     // the transaction, or the last one that the answer reflects

	path2 string // of create: the path on the server
	stat  wire.Stat
	data  []byte
	names []string
	count int32
	acl   []wire.ACL
	ids   []wire.ID
	multi []wire.MultiResult
}

// newCall returns a call for one waiting caller, who gives it back with free.
func (s *Session) newCall(op wire.Op, path string) *call {
	c, ok := s.client.calls.Get().(*call)
	if !ok {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.sess, c.op, c.path = s, op, path
	return c
}

// newFutureCall returns a call whose answer many may read at any time. It is never recycled.
func (s *Session) newFutureCall(op wire.Op, path string) *call {
	return &call{sess: s, op: op, path: path, done: make(chan struct{})}
}

// free recycles the call. Only its owner may. The call of a future comes here only if that was abandoned.
func (c *call) free() {
	if cap(c.done) == 0 {
		c.err, c.outcome = errAbandoned, Unknown
		close(c.done)
		return
	}
	pool := &c.sess.client.calls
	*c = call{done: c.done}
	pool.Put(c)
}

// finish hands the call with its answer to the caller, or reports that the caller has left.
func (c *call) finish() bool {
	if !c.claim() {
		return false
	}
	c.signal()
	return true
}

// claim decides that the call ends with the answer it has, unless the caller has left.
func (c *call) claim() bool { return c.state.CompareAndSwap(callOpen, callDone) }

// signal wakes the caller of a claimed call. The call is the caller's from then on.
func (c *call) signal() {
	if cap(c.done) == 0 {
		close(c.done)
	} else {
		c.done <- struct{}{}
	}
}

// failure returns what the caller gets if the call did not succeed.
func (c *call) failure() error {
	switch {
	case c.err != nil:
		return &Error{Op: opName(c.op), Path: c.path, Err: c.err, Outcome: c.outcome}
	case c.code != wire.OK && (c.op != wire.OpExists || c.code != wire.NoNode): // that is an answer
		return &Error{Op: opName(c.op), Path: c.path, Err: Code(c.code), Outcome: Refused}
	case c.multi != nil && c.op == wire.OpMulti:
		return c.multiFailure()
	default:
		return nil
	}
}

// decode reads the body of a successful answer.
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
	default: // delete, sync, removeWatches, closeSession: nothing that anybody needs
	}
}

func (c *call) decodeMulti(d *jute.Decoder) {
	var r wire.MultiResponse
	r.Decode(d)
	c.multi = r.Results
	if d.Err() == nil && len(c.multi) != c.parts { // callers rely on a result for each operation
		d.Fail(fmt.Errorf("%d results of %d operations", len(c.multi), c.parts))
	}
	for i := range c.multi {
		c.multi[i].Data = bytes.Clone(c.multi[i].Data)
	}
}
