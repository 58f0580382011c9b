package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

var handshakeCases = []testCase{
	{"connect answers with the form of the request", func(s *script) {
		zeros := make([]byte, wire.PasswordLen)
		s.dial("a").hello(wire.ConnectRequest{Timeout: sessionTimeout, Password: zeros, HasReadOnly: true})
		s.dial("b").hello(wire.ConnectRequest{Timeout: sessionTimeout, Password: zeros})
		s.dial("c").hello(wire.ConnectRequest{
			Timeout: sessionTimeout, Password: nil, HasReadOnly: true,
			ReadOnly: true,
		})
		s.dial("d").hello(wire.ConnectRequest{Timeout: sessionTimeout, Password: []byte{}, HasReadOnly: true})
		s.dial("e").hello(wire.ConnectRequest{Timeout: sessionTimeout, Password: []byte("short"), ProtocolVersion: 7})
	}},
	{"connect negotiates the timeout", func(s *script) {
		for _, timeout := range []int32{0, -1, 1, 399, 400, 401, 5000, 60000, 60001, 1 << 30} {
			l := s.dial("a")
			l.hello(wire.ConnectRequest{Timeout: timeout, HasReadOnly: true})
			s.quietly(func() { l.each(closeSession()) })
		}
	}},
	{"connect from the future is dropped", func(s *script) {
		l := s.dial("a")
		l.hello(wire.ConnectRequest{Timeout: sessionTimeout, LastZxidSeen: 1 << 62})
		b := s.open("b")
		m := b.each(syncPath("/"))
		s.dial("c").hello(wire.ConnectRequest{Timeout: sessionTimeout, LastZxidSeen: m.Zxid})
	}},
	{"connect with an unknown session or a wrong password is answered with zeros", func(s *script) {
		l := s.dial("unknown")
		l.hello(wire.ConnectRequest{
			Timeout: sessionTimeout, SessionID: 0x1234567890,
			Password: make([]byte, wire.PasswordLen), HasReadOnly: true,
		})
		l.next()
		a := s.open("a")
		b := s.dial("old form")
		b.hello(wire.ConnectRequest{
			Timeout: sessionTimeout, SessionID: 0x1234567890,
			Password: make([]byte, wire.PasswordLen),
		})
		b.next()
		a.each(closeSession())
		a.next()
		c := s.dial("closed")
		c.hello(wire.ConnectRequest{
			Timeout: sessionTimeout, SessionID: a.session, Password: a.password,
			HasReadOnly: true,
		})
		c.next()
	}},
	{"requests sent with the connect are answered after it", func(s *script) {
		l := s.dial("a")
		r := wire.ConnectRequest{Timeout: sessionTimeout, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
		b := wire.EndFrame(r.Append(wire.BeginFrame(nil)), 0)
		for _, q := range []wire.SubRequest{create(s.root+"/early", "1", 1), get(s.root+"/early", false), ping()} {
			b = append(b, l.request(q.Op, q.Request)...)
		}
		l.bytes("connect, create, getData and ping at once", b)
		l.welcome()
		l.answers(3)
	}},
	{"connect in single bytes", func(s *script) {
		l := s.dial("a")
		r := wire.ConnectRequest{Timeout: sessionTimeout, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
		b := wire.EndFrame(r.Append(wire.BeginFrame(nil)), 0)
		b = append(b, l.request(wire.OpSync, &wire.PathRequest{Path: s.root})...)
		s.logf("a> connect and sync, byte by byte")
		for i := range b {
			l.write(b[i : i+1])
		}
		l.welcome()
		l.answer()
	}},
	{"a first frame that is no connect is dropped", func(s *script) {
		for _, bad := range []struct {
			what string
			b    []byte
		}{
			{"length -1", jute.AppendInt(nil, -1)},
			{"length over the limit", jute.AppendInt(nil, 1<<20)},
			{"an unknown word", []byte("zzzz")},
			{"length 0", jute.AppendInt(nil, 0)},
			{"half a ConnectRequest", append(jute.AppendInt(nil, 12), make([]byte, 12)...)},
		} {
			l := s.dial("a")
			l.bytes(bad.what, bad.b)
			l.next()
		}
	}},
}

var frameCases = []testCase{
	{"a frame of a bad length ends the connection", func(s *script) {
		for _, bad := range []struct {
			what string
			b    []byte
		}{
			{"length -1", jute.AppendInt(nil, -1)},
			{"length over the limit", jute.AppendInt(nil, 0xfffff+1)},
			{"length 0", jute.AppendInt(nil, 0)},
			{"a header of 4 bytes", jute.AppendInt(jute.AppendInt(nil, 4), 1)},
			{"a four-letter word", []byte("ruok")},
		} {
			l := s.open("a")
			l.bytes(bad.what, bad.b)
			l.next()
		}
	}},
	{"the largest frame is taken", func(s *script) {
		const overhead = 8 + 4 + 4 + 4 // header, path length, data length, version
		l := s.open("a")
		path := s.root + "/big"
		l.each(create(path, "", 0))
		fits := 0xfffff - overhead - len(path)
		l.each(set(path, string(make([]byte, fits)), -1), get(path, false), set(path, "small", -1))
		l.each(set(path, string(make([]byte, fits+1)), -1))
		b := s.open("b")
		b.each(get(path, false))
	}},
	{"an answer may be larger than any request", func(s *script) {
		l := s.open("a")
		const parts, each = 6, 2000
		name := strings.Repeat("n", 100)
		s.quietly(func() {
			for i := range parts {
				var ops []wire.SubRequest
				for j := range each {
					ops = append(ops, create(fmt.Sprintf("%s/%s-%d-%d", s.root, name, i, j), "", 0))
				}
				l.each(multi(ops...))
			}
			m := l.each(children2(s.root, false))
			if got := len(m.body.(*wire.Children2Response).Children); got != parts*each {
				s.Errorf("got %d children, want %d", got, parts*each)
			}
		})
		l.each(count(s.root), exists(s.root, false))
	}},
	{"a body that cannot be decoded is refused and the connection stays", func(s *script) {
		l := s.open("a")
		l.raw("getData without the watch flag", wire.OpGetData, jute.AppendString(nil, s.root))
		l.raw("getData with a null path", wire.OpGetData, jute.AppendBool(jute.AppendNull(nil), false))
		l.raw("exists with a null path", wire.OpExists, jute.AppendBool(jute.AppendNull(nil), false))
		l.raw("getChildren with a null path", wire.OpGetChildren, jute.AppendBool(jute.AppendNull(nil), false))
		l.raw("getChildren2 with a null path", wire.OpGetChildren2, jute.AppendBool(jute.AppendNull(nil), false))
		l.raw("getACL with a null path", wire.OpGetACL, jute.AppendNull(nil))
		l.raw("setData with a null path", wire.OpSetData, jute.AppendInt(jute.AppendNull(jute.AppendNull(nil)), -1))
		l.raw("setACL with a null path", wire.OpSetACL, jute.AppendInt(wire.AppendACLs(jute.AppendNull(nil), open), -1))
		l.raw("a string of length -2", wire.OpGetACL, jute.AppendInt(nil, -2))
		l.raw("a string longer than the frame", wire.OpGetACL, jute.AppendInt(nil, 1000))
		l.raw("a string of 2 GB", wire.OpGetACL, jute.AppendInt(nil, 1<<31-1))
		l.raw("a null ACL vector", wire.OpSetACL, jute.AppendInt(jute.AppendNull(jute.AppendString(nil, s.root)), -1))
		l.raw("setWatches with null vectors", wire.OpSetWatches,
			jute.AppendNull(jute.AppendNull(jute.AppendNull(jute.AppendLong(nil, 0)))))
		l.raw("setWatches cut short", wire.OpSetWatches, jute.AppendLong(nil, 0))
		l.raw("setWatches2 with three vectors", wire.OpSetWatches2,
			jute.AppendInt(jute.AppendInt(jute.AppendInt(jute.AppendLong(nil, 0), 0), 0), 0))
		l.raw("addWatch without a mode", wire.OpAddWatch, jute.AppendString(nil, s.root))
		l.raw("removeWatches without a type", wire.OpRemoveWatches, jute.AppendString(nil, s.root))
		l.raw("multi cut short", wire.OpMulti, jute.AppendInt(nil, 1))
		l.raw("multiRead cut short", wire.OpMultiRead, jute.AppendInt(nil, 4))
		l.raw("multi without its end", wire.OpMulti, nil)
		l.raw("getAllChildrenNumber without a path", wire.OpGetAllChildren, nil)
		l.raw("sync without a path", wire.OpSync, nil)
		l.each(children(s.root, false), ping())
	}},
	{"a write that cannot be decoded is refused", func(s *script) {
		l := s.open("a")
		path := jute.AppendString(nil, s.root)
		for i, q := range []struct {
			what string
			op   wire.Op
			body []byte
		}{
			{"create with an empty body", wire.OpCreate, nil},
			{"create2 cut short", wire.OpCreate2, path},
			{"createContainer cut short", wire.OpCreateContainer, path},
			{
				"createTTL without a ttl", wire.OpCreateTTL,
				(&wire.CreateRequest{Path: s.root + "/t", ACL: open, Flags: 5}).Append(nil),
			},
			{"delete cut short", wire.OpDelete, path},
			{"setData cut short", wire.OpSetData, path},
			{"an ACL vector of 2^31-1", wire.OpSetACL, jute.AppendInt(slices.Clip(path), 1<<31-1)},
		} {
			refused := func(zxid int) []string {
				return []string{fmt.Sprintf("a< %v zxid=+%d ERROR -5 malformed request", q.op, zxid)}
			}
			s.changed(q.what+" uses a zxid, against none", []string{"3.9.0"}, refused(i+2), refused(1), func() {
				l.raw(q.what, q.op, q.body)
			})
		}
	}},
	{"a write with a null path is refused", func(s *script) {
		l := s.open("a")
		for i, q := range []struct {
			op   wire.Op
			body []byte
		}{
			{wire.OpCreate, jute.AppendInt(jute.AppendInt(jute.AppendNull(jute.AppendNull(nil)), 0), 0)},
			{wire.OpDelete, jute.AppendInt(jute.AppendNull(nil), -1)},
		} {
			refused := func(zxid int) []string {
				return []string{fmt.Sprintf("a< %v zxid=+%d ERROR -5 malformed request", q.op, zxid)}
			}
			why := q.op.String() + " with a null path uses a zxid, against none"
			s.differs(why, refused(i+2), refused(1), func() { l.raw("with a null path", q.op, q.body) })
		}
	}},
	{"bytes after a request are ignored", func(s *script) {
		l := s.open("a")
		l.raw("sync and 3 bytes more", wire.OpSync, append(jute.AppendString(nil, s.root), 1, 2, 3))
		l.raw("getChildren and 3 bytes more", wire.OpGetChildren,
			append(jute.AppendBool(jute.AppendString(nil, s.root), false), 1, 2, 3))
		l.raw("a boolean of 7", wire.OpGetData, append(jute.AppendString(nil, s.root), 7))
		l.each(set(s.root, "1", -1))
	}},
	{"an unknown operation is refused and the connection closed", func(s *script) {
		for _, op := range []wire.Op{-2, 0, 10, 23, 42, 99, 108, 500, 1 << 30} {
			l := s.open("a")
			l.raw(op.String(), op, nil)
			l.next()
		}
	}},
	{"xids are echoed", func(s *script) {
		l := s.open("a")
		for _, xid := range []int32{5, 5, 3, 0, 1<<31 - 1, -7, -1 << 31} {
			l.pending = append(l.pending, wire.RequestHeader{Xid: xid, Op: wire.OpSync})
			s.logf("a> sync xid=%d", xid)
			l.write(wire.AppendRequest(nil, xid, wire.OpSync, &wire.PathRequest{Path: s.root}))
			s.logf("xid %d", l.answer().Xid)
		}
		l.pending = append(l.pending, wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
		s.logf("a> ping xid=77")
		l.write(wire.AppendRequest(nil, 77, wire.OpPing, nil))
		s.logf("xid %d", l.answer().Xid)
	}},
	{"pipelined requests are answered in order", func(s *script) {
		l := s.open("a")
		r := s.root
		l.together(create(r+"/a", "1", 0), ping(), get(r+"/a", true), set(r+"/a", "2", 0), set(r+"/a", "3", 0),
			get(r+"/a", false), exists(r+"/none", false),
			create2(r+"/q-", "", 3), create2(r+"/q-", "", 3), children(r, true), del(r+"/a",
				-1), syncPath(r), multi(check(r, -1), create(r+"/b", "", 0)), whoAmI(), count(r))
		l.together(create(r+"/c", "", 1), closeSession())
		b := s.open("b")
		b.each(children(r, false))
	}},
}
