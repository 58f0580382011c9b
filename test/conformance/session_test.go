package conformance_test

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

var sessionCases = []testCase{
	{"opening and closing a session spend a zxid each", func(s *script) {
		a := s.open("a")
		a.each(syncPath("/"))
		b := s.open("b")
		a.each(syncPath("/"))
		b.each(closeSession())
		b.next()
		a.each(syncPath("/"))
	}},
	{"closing deletes the ephemerals and then closes the connection", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/e", "", 1), create(r+"/p", "", 0), create(r+"/p/e", "", 1))
		b.each(exists(r+"/e", true), exists(r+"/p/e", true))
		a.each(closeSession())
		a.next()
		s.quietly(func() { b.each(ping()) })
		b.each(ping(), exists(r+"/e", false), exists(r+"/p/e", false), children2(r, false), children2(r+"/p", false))
	}},
	{"the closing session hears of its own ephemerals", func(s *script) {
		a := s.open("a")
		r := s.root
		a.each(create(r+"/e", "", 1), exists(r+"/e", true), children(r, true), closeSession())
		a.next()
	}},
	{"a session is taken up again with its password", func(s *script) {
		a := s.open("a")
		r := s.root
		a.each(create(r+"/e", "", 1))
		a.cut()
		b := s.resume("b", a)
		b.each(exists(r+"/e", false), create(r+"/f", "", 1), ephemerals(r), syncPath(r))
	}},
	{"a second connection takes the session over", func(s *script) {
		a := s.open("a")
		r := s.root
		a.each(create(r+"/e", "", 1), get(r, true))
		b := s.resume("b", a)
		a.next()
		b.each(set(r, "", -1), exists(r+"/e", false))
		c := s.resume("c", b)
		b.next()
		c.each(closeSession())
		c.next()
		d := s.open("d")
		d.each(exists(r+"/e", false))
	}},
	{"taking up a session negotiates the timeout anew", func(s *script) {
		a := s.open("a")
		for _, timeout := range []int32{1, 5000, 1 << 20, 0} {
			b := s.dial("b")
			b.hello(wire.ConnectRequest{
				Timeout: timeout, SessionID: a.session, Password: a.password,
				HasReadOnly: true,
			})
		}
	}},
	{"a wrong password is answered with zeros", func(s *script) {
		a := s.open("a")
		for _, password := range [][]byte{make([]byte, 16), []byte("x"), nil, {}} {
			b := s.dial("b")
			b.hello(wire.ConnectRequest{
				Timeout: sessionTimeout, SessionID: a.session, Password: password,
				HasReadOnly: true,
			})
			b.next()
		}
		// It differs on purpose whether this ends the owner's connection. The owner's session lives in either case.
		a.cut()
		c := s.resume("c", a)
		c.each(ping())
	}},
	{"a wrong password does not disturb the owner", func(s *script) {
		a := s.open("a")
		b := s.dial("b")
		s.quietly(func() {
			b.hello(wire.ConnectRequest{
				Timeout: sessionTimeout, SessionID: a.session, Password: make([]byte, 16),
				HasReadOnly: true,
			})
			b.next()
		})
		s.differs("a wrong password cuts the owner off, against no effect (ours: the password is checked first)",
			[]string{"a< closed"},
			[]string{"a< ping xid=-2 zxid=+1 ok"},
			func() { a.each(ping()) })
	}},
	{"a silent session expires with its ephemerals", func(s *script) {
		a := s.open("a")
		r := s.root
		b := s.dial("b")
		b.hello(wire.ConnectRequest{Timeout: 4000, HasReadOnly: true})
		b.each(create(r+"/e", "", 1))
		a.each(exists(r+"/e", true))
		a.next()
		b.next()
		a.each(exists(r+"/e", false), children2(r, false))
		c := s.dial("c")
		c.hello(wire.ConnectRequest{Timeout: 4000, SessionID: b.session, Password: b.password, HasReadOnly: true})
		c.next()
	}},
	{"a session without a connection expires as well", func(s *script) {
		a := s.open("a")
		r := s.root
		b := s.dial("b")
		b.hello(wire.ConnectRequest{Timeout: 4000, HasReadOnly: true})
		b.each(create(r+"/e", "", 1), create(r+"/f", "", 1))
		a.each(children(r, true))
		b.cut()
		a.next()
		a.each(children2(r, false), syncPath(r))
	}},
	{"pings keep a session", func(s *script) {
		a := s.open("a")
		r := s.root
		b := s.dial("b")
		b.hello(wire.ConnectRequest{Timeout: 8000, HasReadOnly: true}) // a loaded machine stalls for seconds
		b.each(create(r+"/e", "", 1))
		s.quietly(func() {
			for range 50 {
				s.wait(200 * time.Millisecond)
				b.each(ping())
			}
		})
		a.each(exists(r+"/e", false))
	}},
	{"an ephemeral made anew belongs to its new owner", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/e", "", 1))
		b.each(del(r+"/e", -1), create(r+"/e", "", 1))
		a.each(closeSession())
		b.each(exists(r+"/e", false), set(r+"/e", "x", -1))
	}},
	{"an ephemeral set by another session stays its owner's", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/e", "", 1))
		b.each(set(r+"/e", "x", -1), multi(check(r+"/e", 1), set(r+"/e", "y", 1)), get(r+"/e", false))
		a.each(closeSession())
		b.each(exists(r+"/e", false))
	}},
	{"sasl where none is configured", func(s *script) {
		l := s.open("a")
		l.raw("sasl with an empty token", wire.OpSASL, []byte{0, 0, 0, 0})
		if !l.closed {
			l.each(ping())
		}
	}},
}
