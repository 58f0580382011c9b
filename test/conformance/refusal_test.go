package conformance_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// TestOperationsOfServersAreRefused is for our server only. ZooKeeper 3.8.0 accepts these operations from any client:
// it answers createSession with a second session in a frame without a header, logs deleteContainer of any path, and
// never answers a check.
//
// Promise: 11
func TestOperationsOfServersAreRefused(t *testing.T) {
	t.Parallel()
	tg := ours(t, "main")[0]
	for _, op := range []wire.Op{wire.OpCreateSession, wire.OpDeleteContainer, wire.OpCheck, wire.OpError} {
		s := newScript(t, tg, "/refused-"+op.String())
		l := s.open("a")
		l.each(container(s.root+"/c", 4), create(s.root+"/c/kid", "", 0), del(s.root+"/c/kid", -1))
		if m := l.raw(op.String(), op,
			jute.AppendInt(jute.AppendString(nil, s.root+"/c"), -1)); m.Err != wire.Unimplemented {
			t.Errorf("%v: got %v, want %v", op, m.Err, wire.Unimplemented)
		}
		l.next()
		if !l.closed {
			t.Errorf("%v: got an open connection, want it closed", op)
		}
		b := s.open("b")
		if m := b.each(exists(s.root+"/c", false)); m.Err != wire.OK {
			t.Errorf("%v: got the container deleted: %v", op, m.Err)
		}
		s.finish()
	}
}
