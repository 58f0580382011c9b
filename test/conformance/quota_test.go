package conformance_test

import "github.com/seed-a3166700/turnstile/internal/wire"

var quotaCases = []testCase{
	{"quota nodes keep count", func(s *script) {
		l := s.open("a")
		r := s.root
		q := "/zookeeper/quota" + r
		l.each(create(r+"/a", "12345", 0))
		l.each(create(q, "", 0), create(q+"/zookeeper_limits", "count=5,bytes=100", 0),
			create(q+"/zookeeper_stats", "count=0,bytes=0", 0))
		l.each(get(q+"/zookeeper_limits", false), get(q+"/zookeeper_stats", true))
		l.each(
			create(r+"/b", "123", 0), get(q+"/zookeeper_stats", false), set(r+"/b", "12345678",
				-1), get(q+"/zookeeper_stats", false),
			create(r+"/b/c", "1", 1), get(q+"/zookeeper_stats", false),
		)
		l.each(del(r+"/a", -1), get(q+"/zookeeper_stats", false), multi(create(r+"/m", "22", 0), set(r, "22", -1)),
			get(q+"/zookeeper_stats", false))
		l.each(create(r+"/x1", string(make([]byte, 200)), 0), create(r+"/x2", "", 0), create(r+"/x3", "", 0),
			get(q+"/zookeeper_stats", false))
		l.each(set(q+"/zookeeper_limits", "count=2,bytes=-1", -1), create(r+"/x4", "", 0),
			get(q+"/zookeeper_stats", false))
		l.each(del(q+"/zookeeper_stats", -1), del(q+"/zookeeper_limits", -1), create(r+"/x5", "", 0),
			children2(r, false), del(q, -1))
	}},
	{"quota in the shape of later tools", func(s *script) {
		l := s.open("a")
		r := s.root
		q := "/zookeeper/quota" + r
		l.each(
			create(q, "", 0),
			multi(create(q+"/zookeeper_limits", "count=-1,bytes=10=;byteHardLimit=20;countHardLimit=3", 0),
				create(q+"/zookeeper_stats", "count=1,bytes=0", 0)),
		)
		l.each(
			get(q+"/zookeeper_stats", false), create(r+"/a", string(make([]byte, 30)), 0), create(r+"/b", "",
				0), create(r+"/c", "", 0),
			create(r+"/d", "", 0), get(q+"/zookeeper_stats", false), children(r, false),
		)
	}},
	{"quota on an ancestor", func(s *script) {
		l := s.open("a")
		r := s.root
		q := "/zookeeper/quota" + r
		l.each(create(r+"/in", "", 0), create(r+"/in/deep", "x", 0), create(r+"/inside", "", 0))
		l.each(
			create(q, "", 0), create(q+"/in", "", 0), create(q+"/in/zookeeper_limits", "count=1,bytes=1", 0),
			create(q+"/in/zookeeper_stats", "", 0), get(q+"/in/zookeeper_stats", false),
		)
		l.each(
			create(r+"/in/deep/er", "yy", 0), create(r+"/inside/no", "zzz", 0), get(q+"/in/zookeeper_stats", false),
			del(r+"/in/deep/er", -1), get(q+"/in/zookeeper_stats", false),
		)
	}},
}

var strictCases = []testCase{
	{"nodes with a time to live where they are off", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(
			ttl(r+"/t", 5, 1000), ttl(r+"/t", 6, 1000), ttl(r+"/t", 5, 0), ttl(r+"/t", 0, 1000), ttl(r+"/t", 9, 1000),
			create(r+"/t", "", 5), create2(r+"/t", "", 6), ttl("nopath", 5, 1000),
		)
		l.each(
			multi(ttl(r+"/t", 5, 1000)), multi(create(r+"/x", "", 0), ttl(r+"/t", 5, 1000),
				create(r+"/y", "", 0)), container(r+"/c", 4),
			children2(r, false),
		)
	}},
	{"hard quotas where they are enforced", func(s *script) {
		l := s.open("a")
		r := s.root
		q := "/zookeeper/quota" + r
		l.each(
			create(q, "", 0), create(q+"/zookeeper_limits", "count=2,bytes=5=;byteHardLimit=20;countHardLimit=4", 0),
			create(q+"/zookeeper_stats", "count=0,bytes=0", 0),
		)
		l.each(
			create(r+"/a", "1234567890", 0), create(r+"/b", "123456789", 0), create(r+"/c", "12", 0), create(r+"/c",
				"1", 0),
			create(r+"/d", "", 0), create(r+"/a", "", 0), set(r+"/a", "12345678901", -1), set(r+"/a", "12345678901", 9),
			set(r+"/a", "1", -1), set(r+"/b", "1234567890123", -1),
		)
		l.each(
			multi(set(r+"/a", "1", -1), create(r+"/e", "", 0)), multi(del(r+"/b", -1), create(r+"/e", "", 0)),
			get(q+"/zookeeper_stats", false), children2(r, false),
		)
	}},
	{"smaller data above a hard quota", func(s *script) {
		l := s.open("a")
		r := s.root
		q := "/zookeeper/quota" + r
		l.each(
			create(r+"/a", "123456789012345", 0), create(r+"/b", "12345", 0),
			create(q, "", 0), create(q+"/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2",
				0), create(q+"/zookeeper_stats", "count=0,bytes=0", 0),
			get(q+"/zookeeper_stats", false),
		)
		l.each(
			set(r+"/a", "12345678901234", -1), set(r+"/a", "x23456789012345", -1), set(r+"/b", "",
				-1), multi(set(r+"/b", "1", -1)),
			set(r+"/a", "12345", -1), set(r+"/b", "1234", -1), del(r+"/b", -1), create(r+"/c", "",
				0), get(q+"/zookeeper_stats", false),
		)
	}},
	{"a smaller frame limit", func(s *script) {
		l := s.open("a")
		path := s.root + "/big"
		fits := 4096 - 20 - len(path)
		l.each(create(path, "", 0), set(path, string(make([]byte, fits)), -1), get(path, false),
			set(path, string(make([]byte, fits+1)), -1))
	}},
	{"too many connections of one address are dropped", func(s *script) {
		a := s.open("a")
		var extra []*link
		for _, name := range []string{"b", "c", "d", "e"} {
			extra = append(extra, s.admitted(name))
		}
		if f, err := dial(s.Context(), "f", s.target.addr); err == nil { // otherwise it was dropped even sooner
			if _, err := f.readAll(); err != nil {
				s.Fatal(err)
			}
		}
		s.quietly(func() {
			extra[0].each(closeSession())
			extra[0].next()
		})
		a.each(ping())
		g := s.admitted("g")
		g.each(ping())
	}},
	{"four-letter words that are not allowed", func(s *script) {
		for _, word := range []string{
			"ruok", "gtmk", "stmk", "hash", "stat", "mntr", "cons", "dump", "wchc", "conf",
			"isro", "srst",
		} {
			s.word(word)
		}
		s.logf("srvr %t", len(s.ask("srvr")) > 100)
	}},
	{"reconfig where it is on", func(s *script) {
		l := s.open("a")
		s.differs("reconfig on a single server spends a zxid, against none",
			[]string{"a< reconfig zxid=+2 ERROR -6 not implemented by this server"},
			[]string{"a< reconfig zxid=+1 ERROR -6 not implemented by this server"}, func() {
				l.do(wire.OpReconfig, &wire.ReconfigRequest{Joining: "server.5=localhost:1:2", FromConfig: -1})
			})
	}},
}

var reaperCases = []testCase{
	{"the system nodes of a fresh server", func(s *script) {
		l := s.open("a")
		l.each(
			exists("/", false), children("/", false), count("/zookeeper"), count("/"), get("/zookeeper/config", false),
			getACL("/zookeeper/config"), getACL(
				"/zookeeper"), getACL("/zookeeper/quota"), getACL("/"), children("/zookeeper", false),
			set("/zookeeper/config", "x", -1), exists("/zookeeper/config", false),
		)
		l.each(set("/zookeeper/quota", "x", -1), set("/zookeeper/quota", "", -1), create("/zookeeper/mine", "", 0),
			del("/zookeeper/mine", -1))
	}},
	{"containers go once they are empty again", func(s *script) {
		s.norm.anyZxid = true
		l := s.open("a")
		r := s.root
		l.each(
			container(r+"/c", 4), container(r+"/unused", 4), create(r+"/c/kid", "", 0), exists(r+"/c",
				true), children(r, true),
			del(r+"/c/kid", -1),
		)
		s.until(l, "deleted "+r+"/c")
		l.each(ping(), children2(r, false), syncPath(r))
	}},
	{"the flag makes a container only in a multi", func(s *script) {
		s.norm.anyZxid = true
		l := s.open("a")
		r := s.root
		l.each(create(r+"/plain", "", 4), create(r+"/plain/kid", "", 0), del(r+"/plain/kid", -1))
		for i, q := range []wire.SubRequest{create(r+"/c", "", 4), create2(r+"/c", "", 4)} {
			l.each(multi(q), create(r+"/c/kid", "", 0), exists(r+"/c", true), del(r+"/c/kid", -1))
			s.until(l, "deleted "+r+"/c")
			l.each(ping())
			s.logf("%d", i)
		}
		l.each(exists(r+"/plain", false))
	}},
	{"nodes go when their time is over", func(s *script) {
		s.norm.anyZxid = true
		l := s.open("a")
		r := s.root
		l.each(ttl(r+"/t", 5, 300), create(r+"/t/kid", "", 0), ttl(r+"/u", 5, 300), exists(r+"/u", true))
		s.until(l, "deleted "+r+"/u")
		l.each(children2(r, false), exists(r+"/t", true), del(r+"/t/kid", -1))
		s.until(l, "deleted "+r+"/t")
		l.each(children2(r, false), syncPath(r))
	}},
	{"a change prolongs a node's time", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(
			ttl(r+"/t", 5, 60000), set(r+"/t", "x", -1), get(r+"/t", true), create2(r+"/plain", "",
				4), create(r+"/plain/kid", "", 0),
			del(r+"/plain/kid", -1),
		)
		s.wait(200e6)
		l.each(children2(r, false))
	}},
}
