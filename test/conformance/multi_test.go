package conformance_test

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

var multiCases = []testCase{
	{"multi answers each operation in its form", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(multi(), syncPath(r))
		l.each(multi(create(r+"/a", "1", 0), set(r+"/a", "2", 0), check(r+"/a", 1), create(r+"/a/b", "", 1),
			del(r+"/a/b", -1), create(r+"/a/s-", "", 2), create(r+"/a/s-", "", 3), set(r+"/a", "3", -1)))
		l.each(get(r+"/a", false), children2(r+"/a", false), exists(r, false))
		l.each(multi(create(r+"/x", "", 0), del(r+"/x", 0)), exists(r+"/x", false), exists(r, false))
		l.each(multi(del(r+"/a/s-0000000001", -1), create(r+"/a/s-0000000001", "", 0)), get(r+"/a/s-0000000001", false))
		l.each(multi(check(r, -1), check(r+"/a", 2)))
	}},
	{"a failing multi names the culprit and does nothing", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/a", "", 0), create(r+"/e", "", 1))
		b := s.open("b")
		b.each(children(r, true), exists(r+"/x", true), get(r+"/a", true))
		l.each(
			multi(check(r+"/none", -1)),
			multi(create(r+"/x", "", 0), check(r+"/a", 7), set(r+"/a", "2", -1), create(r+"/y", "", 0)),
			multi(set(r+"/a", "2", -1), create(r+"/a", "", 0)),
			multi(create(r+"/x", "", 0), create(r+"/x", "", 0)),
			multi(create(r+"/x", "", 1), create(r+"/x/y", "", 0)),
			multi(create(r+"/e/y", "", 0), create(r+"/x", "", 0)),
			multi(create(r+"/x", "", 0), del(r, -1)),
			multi(del(r+"/a", -1), set(r+"/a", "", -1)),
			multi(del(r+"/a", -1), check(r+"/a", -1)),
			multi(create(r+"/none/x", "", 0)),
			multi(create("nopath", "", 0)),
			multi(create(r+"/a/.", "", 0), create(r+"/a/b", "", 0)),
			multi(set(r+"/a/", "", -1)),
			multi(del("/", -1)),
			multi(create(r+"/x", "", 0), createWith(r+"/y")),
			multi(create(r+"/x", "", 0), createWith(r+"/y", acl(31, "auth", ""))),
			multi(create(r+"/x", "", 0), ttl(r+"/y", 5, 0)),
		)
		b.each(ping())
		l.each(children2(r, false), get(r+"/a", false), syncPath(r))
	}},
	{"create2, container and ttl in a multi", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, q := range []struct {
			what        string
			sub         wire.SubRequest
			old, recent string
		}{
			{
				"create2", create2(r+"/two", "abc", 0), "[1 $/two]",
				"[15 $/two {c+2 m+2 p+2 ctime=t mtime=t v0 cv0 av0 owner=- len3 kids0}]",
			},
			{
				"ephemeral create2", create2(r+"/eph", "", 1), "[1 $/eph]",
				"[15 $/eph {c+3 m+3 p+3 ctime=t mtime=t v0 cv0 av0 owner=s1 len0 kids0}]",
			},
		} {
			zxid := map[string]string{"create2": "+2", "ephemeral create2": "+3"}[q.what]
			s.changed(q.what+" in a multi is answered as create, against create2", []string{"3.8.4", "3.9.0"},
				[]string{"a< multi zxid=" + zxid + " ok " + q.old},
				[]string{"a< multi zxid=" + zxid + " ok " + q.recent}, func() {
					l.each(multi(q.sub))
				})
		}
		l.each(multi(create(r+"/four", "", 4)))
		l.each(multi(container(r+"/con", 4), ttl(r+"/ttl", 5, 100000), ttl(r+"/ttls-", 6, 100000)))
		l.each(exists(r+"/con", false), exists(r+"/ttl", false), children2(r, false))
		s.differs("createTTL with a mode without ttl is taken in a multi, against refused as outside one",
			[]string{"a< multi zxid=+6 ok [1 $/odd]"}, []string{"a< multi zxid=+6 ok [error -8]"}, func() {
				l.each(multi(ttl(r+"/odd", 0, 10)))
			})
	}},
	{"an operation that no multi may hold spoils it", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/a", "", 0))
		for _, bad := range []wire.SubRequest{
			exists(r, false), get(r, false), children(r, false), children2(r, false),
			getACL(r), setACL(r, -1, open...), syncPath(r), ping(), whoAmI(), closeSession(),
			{
				Op:      77,
				Request: &wire.Empty{},
			},
		} {
			l.each(multi(set(r+"/a", "x", -1), bad), multi(bad, set(r+"/a", "x", -1)))
		}
		for _, bad := range []wire.SubRequest{
			create(r+"/x", "", 0), set(r, "", -1), del(r+"/a", -1), check(r, -1),
			exists(r, false), children2(r, false), getACL(r),
		} {
			l.each(multiRead(get(r+"/a", false), bad), multiRead(bad, get(r+"/a", false)))
		}
		l.each(get(r+"/a", false), children2(r, false))
	}},
	{"a bad create flag in a multi", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, q := range []struct {
			sub  wire.SubRequest
			zxid string
		}{{create(r+"/x", "", 7), "+2"}, {create2(r+"/x", "", -1), "+3"}} {
			zxid := q.zxid
			s.changed("an unknown create flag in a multi fails one operation, against all of them",
				[]string{"3.8.4", "3.9.0"},
				[]string{"a< multi zxid=" + zxid + " ok [error 0] [error -8] [error -2]"},
				[]string{"a< multi zxid=" + zxid + " ERROR -5 malformed request"}, func() {
					l.each(multi(check(r, -1), q.sub, check(r, -1)))
				})
		}
	}},
	{"create flags 5 and 6 without a ttl in a multi", func(s *script) {
		l := s.open("a")
		r := s.root
		for i, q := range []wire.SubRequest{create(r+"/x", "", 5), create2(r+"/x", "", 6)} {
			s.differs("create with a TTL node's flags spoils the multi, against refused as outside one",
				[]string{fmt.Sprintf("a< multi zxid=+%d ERROR -5 malformed request", i+2)},
				[]string{fmt.Sprintf("a< multi zxid=+%d ok [error 0] [error -8] [error -2]", i+2)}, func() {
					l.each(multi(check(r, -1), q, check(r, -1)))
				})
		}
	}},
	{"multi without an end is taken as far as it goes", func(s *script) {
		l := s.open("a")
		r := s.root
		one := jute.AppendInt(jute.AppendBool(jute.AppendInt(nil, int32(wire.OpCreate)), false), -1)
		one = create(r+"/x", "", 0).Request.Append(one)
		l.raw("multi of one create, no end", wire.OpMulti, one)
		end := jute.AppendInt(jute.AppendBool(jute.AppendInt(nil, -1), true), -1)
		l.raw("multi of an end", wire.OpMulti, end)
		l.raw("multi with an end of type 5", wire.OpMulti,
			jute.AppendInt(jute.AppendBool(jute.AppendInt(nil, 5), true), 3))
		l.raw("multi and something after its end", wire.OpMulti, append(append([]byte{}, end...), one...))
		l.each(children(r, false))
	}},
	{"multi fires watches op by op", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/x", "", 0), create(r+"/y", "", 0))
		for _, l := range []*link{a, b} {
			l.each(get(r+"/x", true), get(r+"/y", true), children(r, true), exists(r+"/z", true),
				children(r+"/y", true))
		}
		a.each(multi(set(r+"/x", "1", -1), set(r+"/x", "2", -1), create(r+"/z", "", 0), del(r+"/y", -1),
			create(r+"/y", "", 0), set(r+"/z", "", -1)))
		b.each(ping())
		a.each(get(r+"/x", true), multi(set(r+"/x", "", -1), check(r+"/x", 0)), multi(check(r+"/x", 2), del(r+"/x", 2)))
	}},
	{"multiRead answers each read for itself", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/a", "one", 0), create(r+"/a/k1", "", 0), create(r+"/a/k2", "", 0),
			createWith(r+"/secret", acl(31, "digest", "x:y")))
		l.each(
			multiRead(),
			multiRead(get(r+"/a", true), children(r+"/a", true), get(r+"/none", true), get(r+"/secret", false),
				children(r+"/secret", false), get(r, false), children(r+"/none", false)),
		)
		l.each(set(r+"/a", "two", -1), create(r+"/a/k3", "", 0), syncPath(r))
		l.each(multiRead(get("nopath", false), get(r+"/a", false)))
	}},
}
