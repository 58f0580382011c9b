package zk

import (
	"bufio"
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// FuzzReader gives the client's reader the input of a broken or hostile server, with requests of all kinds pending. The
// reader must return an error, every request must end, and no claimed length may allocate memory.
//
// Promise: 9
func FuzzReader(f *testing.F) {
	answer := func(xid int32, body wire.Record) []byte {
		return wire.AppendReply(nil, wire.ReplyHeader{Xid: xid, Zxid: 5}, body)
	}
	f.Add(answer(1, &wire.Create2Response{Path: "/app/a"}))
	f.Add(append(answer(1, &wire.Create2Response{Path: "/app/a"}), answer(2, &wire.DataResponse{Data: []byte("x")})...))
	f.Add(answer(wire.XidNotification, &wire.Event{Type: wire.EventDeleted, Path: "/app/w"}))
	f.Add(answer(wire.XidPing, nil))
	f.Add(answer(wire.XidAuth, nil))
	f.Add(answer(wire.XidSetWatches, nil))
	var all []byte
	for i, body := range []wire.Record{
		&wire.Create2Response{Path: "/app/a"},
		&wire.DataResponse{Data: []byte("x")},
		&wire.Children2Response{Children: []string{"a", "b"}},
		&wire.StatResponse{}, &wire.ACLResponse{ACL: openACL}, &wire.WhoAmIResponse{IDs: []wire.ID{{Scheme: "ip"}}},
		&wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpError, Err: wire.NoNode}}},
		&wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpGetData, Data: []byte("x")}, {Op: wire.OpGetChildren},
		}},
		&wire.CountResponse{Count: 1}, &wire.ChildrenResponse{}, &wire.ErrorResponse{}, &wire.PathResponse{}, nil,
	} {
		all = append(all, answer(int32(i+1), body)...)
	}
	f.Add(all)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	ops := []wire.Op{
		wire.OpCreate2, wire.OpGetData, wire.OpGetChildren2, wire.OpExists, wire.OpGetACL, wire.OpWhoAmI, wire.OpMulti,
		wire.OpMultiRead,
		wire.OpGetAllChildren, wire.OpGetEphemerals, wire.OpAddWatch, wire.OpSync, wire.OpRemoveWatches,
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		set, err := Config{Servers: "a/app", MaxFrame: 1 << 16}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{cfg: set, clock: newClock(nil), log: set.Logger}
		s := newSession(c)
		near, far := net.Pipe()
		defer far.Close()
		n := newConn(s, server{}, near, near)
		n.br = bufio.NewReader(bytes.NewReader(stream))
		n.writing, n.setWatches = true, 1
		n.pings = append(n.pings, time.Now())
		s.conn, s.timeout, s.heard = n, time.Hour, time.Now()
		s.expiry = time.AfterFunc(time.Hour, s.checkDeadline)
		var waiting []*call
		s.mu.Lock()
		for i, op := range ops {
			waiting = append(waiting, s.newFutureCall(op, "/a"))
			if kind := watchKind(i); op == wire.OpGetData || op == wire.OpExists || op == wire.OpAddWatch {
				waiting[i].watch = s.newWatch("/w", kind%watchKinds)
			}
			s.enqueue(waiting[i], nil)
		}
		s.unsent, s.out = 0, nil
		n.setWatches = len(stream) % 2
		s.mu.Unlock()
		s.detach(n, n.read())
		s.end(ErrClosed)
		for _, call := range waiting {
			<-call.done
			if call.failure() == nil {
				switch call.op {
				case wire.OpCreate2:
					call.created()
				case wire.OpMulti:
					call.results()
				}
			}
		}
	})
}
