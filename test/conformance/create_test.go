package conformance_test

import (
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

var createCases = []testCase{
	{"create in every mode", func(s *script) {
		l := s.open("a")
		r := s.root
		for flags := range int32(5) {
			l.each(create(r+"/one-", "d", flags), create2(r+"/two-", "d", flags))
			if flags != 2 && flags != 3 {
				l.each(del(r+"/one-", 0), del(r+"/two-", 0))
			}
		}
		l.each(children2(r, false), ephemerals(r))
		for _, flags := range []int32{-1, 5, 6, 7, 8, 1 << 20} {
			l.each(create(r+"/bad", "", flags), create2(r+"/bad", "", flags))
		}
	}},
	{"containers", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, flags := range []int32{4, 0, 1} {
			l.each(
				container(r+"/c", flags), exists(r+"/c", false), create2(r+"/c/kid", "", 1), exists(r+"/c",
					false), del(r+"/c/kid", -1),
				del(r+"/c", -1),
			)
		}
		for _, flags := range []int32{2, 3, 5, 6, 9} {
			l.each(container(r+"/c", flags))
		}
		l.each(create2(r+"/plain", "", 4), create2(r+"/plain/kid", "", 0), exists(r+"/plain", false),
			children(r, false))
	}},
	{"nodes with a time to live", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(
			ttl(r+"/t", 5, 100000), get(r+"/t", false), create2(r+"/t/kid", "", 1), exists(r+"/t", false), ttl(r+"/s-",
				6, 100000),
			ttl(r+"/s-", 6, 1<<40-1),
		)
		for _, ms := range []int64{0, -1, -100, 1 << 40, 1<<63 - 1} {
			l.each(ttl(r+"/bad", 5, ms))
		}
		for _, flags := range []int32{0, 1, 2, 3, 4, 7, -1} {
			l.each(ttl(r+"/bad", flags, 1000))
		}
		l.each(children(r, false))
	}},
	{"create checks in order", func(s *script) {
		l := s.open("a")
		r := s.root
		none := func(path string, flags int32) wire.SubRequest {
			return wire.SubRequest{Op: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Flags: flags}}
		}
		l.each(createWith(r+"/closed", reading...), create(r+"/eph", "", 1), create(r+"/here", "", 0))
		l.each(
			none("nopath", 9), // flags before path
			none("nopath", 0), // path before ACL
			none(r+"/x\x00y", 0),
			none(r+"/none/x", 0),        // ACL before parent
			create(r+"/none/x", "", 0),  // parent
			create(r+"/none/x/", "", 0), // parent before path
			create(r+"/closed/x", "", 0),
			create(r+"/closed/.", "", 0), // permission before path
			create(r+"/here", "", 0),
			create(r+"/eph/x", "", 0),
			create(r+"/eph/x", "", 1),
			create(r+"/eph/.", "", 0), // path before ephemeral parent
			create("/", "", 0),
			create("", "", 0),
			create(r, "", 0),
		)
		l.each(children2(r, false))
	}},
	{"path rules of create", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/a", "", 0))
		for _, p := range []string{
			"//x", "/a//b", "/a/", "/a/b/", "/a/./b", "/a/../b", "/a/.", "/a/..", "/.", "/..", "/...", "/..a", "/a.b",
			"/a..", "/ ", "/a b", "/\x01", "/\x1f", "/\x20", "/\x7e",
			"/\x7f", "/\u0080", "/\u009f", "/\u00a0", "/ä", "/日本", "/\ue000", "/\uf8ff", "/\uf900", "/\uffef",
			"/\ufff0", "/\uffff", "/😀", "/\xff", "/a\xc3", "/a\x00b", "/\xed\xa0\x80", "/\ufffd", "/%2f", "/a\\b",
			"/*",
		} {
			l.each(create(r+p, "", 0))
		}
		l.each(create(r+"/"+strings.Repeat("long", 5000), "", 0), create("a", "", 0), create("a/b", "", 0),
			create(r+"/s/", "", 2), create(r+"/a/", "", 2), create(r+"/a/", "", 3), create(r+"/a/.", "",
				2), create(r+"/a/..", "", 2), create(r+"/a/\x01", "", 2), create(r+"//", "", 2))
		l.each(children(r, false), children(r+"/a", false))
	}},
	{"path rules of the other operations", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/a", "", 0))
		for _, p := range []string{
			"", "a", "//", r + "/", r + "//a", r + "/a/", r + "/./a", r + "/a/.", r + "/..",
			r + "/x\x00", r + "/\x01", r + "/😀", r + "/\ue000",
		} {
			l.each(del(p, -1), set(p, "", -1), setACL(p, -1, open...), multi(check(p, -1)), ephemerals(p))
			if p != "" { // in a multi the empty path is the root, where other cases have left nodes
				l.each(exists(p, false), get(p, false), children(p, false), getACL(p), count(p))
			}
		}
		s.logf("reads of the empty path")
		s.quietly(func() {
			for _, q := range []wire.SubRequest{
				exists("", false), get("", false), children("", false),
				children2("", false),
			} {
				if m := l.each(q); m.Err != wire.OK {
					s.Errorf("%v of the empty path: got %v, want the root", q.Op, m.Err)
				}
			}
		})
	}},
	{"sequence numbers count creates", func(s *script) {
		l := s.open("a")
		r := s.root + "/q"
		l.each(create(r, "", 0), create(r+"/s-", "", 2), create(r+"/s-", "", 3), create(r+"/plain", "", 0),
			create(r+"/s-", "", 2))
		l.each(
			del(r+"/plain", -1), del(r+"/s-0000000000", -1), set(r, "x", -1), create(r+"/s-", "", 2), create(r+"/plain",
				"", 0),
			create(r+"/plain", "", 0), create(r+"/s-", "", 2),
		)
		l.each(multi(create(r+"/m-", "", 2), create(r+"/m-", "", 3), create(r+"/other", "", 0), create(r+"/m-", "", 2)))
		l.each(multi(create(r+"/m-", "", 2), check(r+"/none", -1)))
		l.each(create(r+"/", "", 2), create(r+"/ä", "", 2), create(r+"/s-", "", 2), children2(r, false))
		b := s.open("b")
		b.each(create(r+"/s-", "", 3), closeSession())
		l.each(create(r+"/s-", "", 3), children2(r, false))
		l.each(create(r+"/0000000011", "", 0), create(r+"/0000000012", "", 0), create(r+"/", "", 2))
	}},
	{"null and empty data differ", func(s *script) {
		l := s.open("a")
		r := s.root
		null := func(path string) wire.SubRequest {
			return wire.SubRequest{Op: wire.OpCreate2, Request: &wire.CreateRequest{Path: path, ACL: open}}
		}
		l.each(
			null(r+"/null"), get(r+"/null", false), create2(r+"/empty", "", 0), get(r+"/empty", false), set(r+"/null",
				"", -1),
			get(r+"/null", false),
		)
		l.each(wire.SubRequest{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: r + "/empty", Version: -1}},
			get(r+"/empty", false))
		l.each(
			multi(wire.SubRequest{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: r + "/null", Version: -1}},
				wire.SubRequest{Op: wire.OpCreate, Request: &wire.CreateRequest{Path: r + "/n2", ACL: open}}),
			get(r+"/null", false), get(r+"/n2", false),
		)
		l.each(multiRead(get(r+"/null", false), get(r+"/empty", false)))
	}},
}
