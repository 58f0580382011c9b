package conformance_test

import "github.com/seed-a3166700/turnstile/internal/wire"

var nodeCases = []testCase{
	{"stat fields of a node and its parent", func(s *script) {
		l := s.open("a")
		r := s.root + "/p"
		l.each(create2(r, "dad", 0), create2(r+"/a", "hello", 0), exists(r, false), create2(r+"/e", "", 1),
			exists(r, false))
		l.each(set(r+"/a", "hello", 0), set(r+"/a", "longer text", -1), exists(r, false), get(r+"/a", false))
		l.each(setACL(r+"/a", 0, open...), exists(r+"/a", false), setACL(r+"/a", -1, open...), exists(r, false))
		l.each(create2(r+"/a/b", "", 0), exists(r+"/a", false), exists(r, false), del(r+"/a/b", 0),
			exists(r+"/a", false), exists(r, false))
		l.each(del(r+"/a", -1), exists(r, false), create2(r+"/a", "again", 0), get(r+"/a", false), children2(r, false),
			getACL(r))
		l.each(set(r, "x", 7), exists(r, false), syncPath(r))
	}},
	{"refused writes change nothing but spend a zxid", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create2(r+"/a", "1", 0), syncPath(r))
		for _, q := range []wire.SubRequest{
			set(r+"/none", "", -1), syncPath(r), del(r+"/none", -1),
			create(r+"/a", "", 0), create(r+"/b", "", 9), set(r+"/a", "", 5), setACL(r+"/a", -1), setACL(r+"/a", 9,
				open...), del(r, -1), multi(check(r+"/a",
				4)), multi(), ping(), get(r+"/none", false), removeWatches(r, 3), auth("digest", "a:b"),
		} {
			l.each(q, syncPath(r))
		}
		l.each(get(r+"/a", false), children2(r, false))
	}},
	{"delete checks in order", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(
			create(r+"/p", "", 0), create(r+"/p/a", "", 0), create(r+"/closed", "", 0), create(r+"/closed/a", "", 0),
			setACL(r+"/closed", -1, reading...),
		)
		l.each(
			del("nopath", -1), del(r+"/none/x", -1), del(r+"/closed/none", -1), del(r+"/closed/a", 5), del(r+"/p/none",
				-1), del(r+"/p", 5),
			del(r+"/p", 0), del(r+"/p", -2), del(r+"/p/a", -2), del(r+"/p/a", 1), del(r+"/p/a", 0), del(r+"/p", -1),
		)
		l.each(del("/", -1), del("/zookeeper", -1), del("/zookeeper/config", -1), del("/zookeeper/quota", -1),
			del("/zookeeper/quota", 5))
	}},
	{"versions", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(
			create(r+"/a", "", 0), set(r+"/a", "1", 0), set(r+"/a", "2", 0), set(r+"/a", "2", 1), set(r+"/a", "3", -1),
			set(r+"/a", "3", -2), set(r+"/a", "3", 1<<31-1), set(r+"/a", "3", -1<<31),
		)
		l.each(setACL(r+"/a", 0, open...), setACL(r+"/a", 0, open...), setACL(r+"/a", 1, open...),
			setACL(r+"/a", -2, open...), get(r+"/a", false))
		l.each(multi(check(r+"/a", 3)), multi(check(r+"/a", -1)), multi(check(r+"/a", -2)), multi(check(r+"/a", 0)),
			multi(check(r+"/none", -1)))
		l.each(del(r+"/a", 0), del(r+"/a", 3), del(r+"/a", 3))
	}},
	{"reads of nodes that are not there", func(s *script) {
		l := s.open("a")
		p := s.root + "/none"
		l.each(exists(p, false), get(p, false), children(p, false), children2(p, false), getACL(p), count(p),
			syncPath(p), ephemerals(p))
	}},
	{"counts and ephemerals", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(
			create(r+"/a", "", 1), create(r+"/ab", "", 1), create(r+"/d", "", 0), create(r+"/d/a", "",
				1), create(r+"/d/e", "", 0),
			create(r+"/d/e/f", "", 0),
		)
		b.each(create(r+"/b", "", 1))
		a.each(count(r), count(r+"/d"), count(r+"/a"), count(r+"/none"))
		a.each(
			ephemerals(""), ephemerals(
				"/"), ephemerals(r), ephemerals(r+"/a"), ephemerals(r+"/d"), ephemerals(r+"/none"), ephemerals("  "),
			ephemerals("nopath"),
		)
		a.raw("getEphemerals with null", wire.OpGetEphemerals, []byte{0xff, 0xff, 0xff, 0xff})
		b.each(ephemerals(r), ephemerals(r+"/a"))
	}},
	{"sync echoes its path", func(s *script) {
		l := s.open("a")
		l.each(syncPath("/"), syncPath(s.root), syncPath("nopath"), syncPath(""), syncPath("/none/at/all"),
			syncPath("/a//b/"))
	}},
	{"reconfig is not for a single server", func(s *script) {
		l := s.open("a")
		// Kazoo 2.8.0 cannot handle the former.
		s.differs("reconfig on a single server: the switch's error against never implemented",
			[]string{"a< reconfig zxid=+2 ERROR -123 reconfiguration is disabled"},
			[]string{"a< reconfig zxid=+1 ERROR -6 not implemented by this server"}, func() {
				l.do(wire.OpReconfig, &wire.ReconfigRequest{Joining: "server.5=localhost:1:2", FromConfig: -1})
			})
	}},
}
