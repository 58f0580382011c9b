package conformance_test

import "github.com/seed-a3166700/turnstile/internal/wire"

var watchCases = []testCase{
	{"one-shot watches fire once", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/x", "", 0))
		for _, l := range []*link{a, b} {
			l.each(get(r+"/x", true), get(r+"/x", true), exists(r+"/x", true))
		}
		a.each(set(r+"/x", "1", -1), set(r+"/x", "2", -1))
		b.each(ping(), children(r+"/x", true), children2(r+"/x", true))
		a.each(set(r+"/x", "3", -1), create(r+"/x/k", "", 0), create(r+"/x/l", "", 0))
		b.each(ping(), children(r+"/x", true))
		a.each(set(r+"/x/k", "3", -1), setACL(r+"/x", -1, open...), del(r+"/x/k", -1), del(r+"/x/l", -1))
		b.each(ping(), exists(r+"/x", true), children(r+"/x", true), get(r+"/x", true), children(r, true))
		a.each(del(r+"/x", -1))
		b.each(ping(), exists(r+"/x", true))
		a.each(create(r+"/x", "", 0))
		b.each(ping())
		a.each(set(r+"/x", "", -1), del(r+"/x", -1))
		b.each(ping())
	}},
	{"which reads leave a watch", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(createWith(r+"/secret", acl(31, "digest", "x:y")))
		b.each(
			get(r+"/none", true), children(r+"/none", true), children2(r+"/none", true), get(r+"/secret", true),
			children(r+"/secret", true), get("nopath", true),
		)
		a.each(create(r+"/none", "", 0))
		b.each(ping(), exists(r+"/none2", true), exists("nopath", true))
		a.each(create(r+"/none2", "", 0))
		b.each(ping())
	}},
	{"a watch's event comes before the reply that shows the change", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/x", "", 0))
		l.together(
			get(r+"/x", true), children(r, true), set(r+"/x", "1", -1), get(r+"/x", true), create(r+"/y", "",
				0), del(r+"/x", -1),
			exists(r+"/x", true), create(r+"/x", "", 0),
		)
	}},
	{"delete tells data and child watches once, then the parent", func(s *script) {
		a, b, c := s.open("a"), s.open("b"), s.open("c")
		r := s.root
		a.each(create(r+"/x", "", 0))
		b.each(get(r+"/x", true), children(r+"/x", true), children(r, true))
		c.each(children(r+"/x", true))
		a.each(del(r+"/x", -1))
		b.each(ping())
		c.each(ping())
		a.each(create(r+"/x", "", 0), create(r+"/x/y", "", 0), del(r+"/x/y", -1), del(r+"/x", -1))
		b.each(ping())
		c.each(ping())
	}},
	{"persistent watches stay", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		b.each(addWatch(r+"/x", 0), addWatch(r+"/x", 0))
		a.each(
			create(r+"/x", "", 0), set(r+"/x", "1", -1), set(r+"/x", "2", -1), create(r+"/x/k", "", 0), set(r+"/x/k",
				"", -1),
			create(r+"/x/k/deep", "", 0), del(r+"/x/k/deep", -1), del(r+"/x/k", -1), setACL(r+"/x", -1,
				open...), del(r+"/x", -1),
			create(r+"/x", "", 0),
		)
		b.each(ping(), removeWatches(r+"/x", 3))
		a.each(set(r+"/x", "", -1))
		b.each(ping())
	}},
	{"recursive watches see all below", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		b.each(addWatch(r+"/x", 1))
		a.each(
			create(r+"/x", "", 0), set(r+"/x", "1", -1), create(r+"/x/k", "", 0), set(r+"/x/k", "",
				-1), create(r+"/x/k/deep", "", 0),
			set(r+"/x/k/deep", "", -1), create(r+"/xy", "", 0), del(r+"/x/k/deep", -1), del(r+"/x/k", -1), del(r+"/x",
				-1),
		)
		b.each(ping(), addWatch(r, 1), addWatch(r+"/x/k", 1), children(r+"/x", true), exists(r+"/x", true))
		a.each(
			create(r+"/x", "", 0), create(r+"/x/k", "", 0), del(r+"/x/k", -1), del(r+"/x", -1),
			multi(create(r+"/x", "", 0), create(r+"/x/k", "", 1)), closeSession(),
		)
		b.each(ping(), addWatch("/", 1), set(r+"/x", "", -1), removeWatches("/", 3))
	}},
	{"addWatch takes any path and two modes", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, mode := range []int32{-1, 2, 3, 1 << 30} {
			l.each(addWatch(r, mode))
		}
		l.each(addWatch(r+"/none/at/all", 0), addWatch("nopath", 0), addWatch("", 1), addWatch(r+"//x/", 1),
			set(r, "", -1))
		l.each(ping())
	}},
	{"persistent beside recursive", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		b.each(addWatch(r+"/x", 0), addWatch(r, 1))
		a.each(create(r+"/x", "", 0), set(r+"/x", "", -1), create(r+"/x/k", "", 0), del(r+"/x/k", -1), del(r+"/x", -1))
		b.each(ping())
	}},
	{"a one-shot watch beside a persistent one", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/x", "", 0))
		b.each(addWatch(r+"/x", 0), get(r+"/x", true))
		a.each(set(r+"/x", "1", -1))
		b.each(ping())
		a.each(set(r+"/x", "2", -1))
		s.changed("a get watch takes the persistent one with it, against both live", []string{"3.9.0"},
			[]string{"b< ping xid=-2 zxid=+5 ok"},
			[]string{"b! dataChanged $/x state=3 err=0", "b< ping xid=-2 zxid=+5 ok"},
			func() { b.each(ping()) })
		c := s.open("c")
		c.each(get(r+"/x", true), addWatch(r+"/x", 0))
		a.each(set(r+"/x", "3", -1), set(r+"/x", "4", -1))
		c.each(ping())
		d := s.open("d")
		d.each(children(r+"/x", true), addWatch(r+"/x", 1))
		a.each(create(r+"/x/k", "", 0))
		s.changed("a recursive watch takes a child watch with it, against both live", []string{"3.9.0"},
			[]string{
				"d! created $/x/k state=3 err=0",
				"d< ping xid=-2 zxid=+10 ok",
			}, []string{
				"d! created $/x/k state=3 err=0",
				"d! childrenChanged $/x state=3 err=0", "d< ping xid=-2 zxid=+10 ok",
			}, func() {
				d.each(ping())
			})
	}},
	{"a one-shot watch beside a recursive one", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/x", "", 0))
		b.each(addWatch(r+"/x", 1), get(r+"/x", true))
		a.each(set(r+"/x", "1", -1))
		b.each(ping())
		a.each(set(r+"/x", "2", -1))
		s.changed("a get watch takes the recursive one with it, against both live", []string{"3.9.0"},
			[]string{"b< ping xid=-2 zxid=+5 ok"},
			[]string{"b! dataChanged $/x state=3 err=0", "b< ping xid=-2 zxid=+5 ok"},
			func() { b.each(ping()) })
	}},
	{"the event header carries the zxid", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		b.each(get(r, true))
		m := a.each(set(r, "", -1))
		s.quietly(func() { b.each(ping()) })
		event := s.events[len(s.events)-1]
		s.events = nil
		want := m.Zxid
		if !s.target.has("3.9.0") {
			want = -1
		}
		if event.Zxid != want {
			s.Errorf("got zxid %d in the event's header on %s, want %d", event.Zxid, s.target.name, want)
		}
	}},
	{"checkWatches and removeWatches", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, kind := range []int32{0, 1, 2, 3, 6, -1, 100} {
			l.each(checkWatches(r, kind), removeWatches(r, kind))
		}
		l.each(
			get(r, true), checkWatches(r, 1), checkWatches(r, 2), checkWatches(r, 3), removeWatches(r,
				1), removeWatches(r, 2),
			removeWatches(r, 2), set(r, "", -1),
		)
		l.each(
			children(r, true), checkWatches(r, 1), checkWatches(r, 2), checkWatches(r, 3), removeWatches(r,
				2), removeWatches(r, 1),
			create(r+"/a", "", 0),
		)
		l.each(children(r, true), get(r, true), removeWatches(r, 3), checkWatches(r, 3), set(r, "", -1),
			create(r+"/b", "", 0))
		l.each(children(r, true), get(r, true), removeWatches(r, 2), set(r, "", -1), create(r+"/c", "", 0))
		l.each(exists(r+"/none", true), removeWatches(r+"/none", 2), create(r+"/none", "", 0))
		l.each(addWatch(r, 0), checkWatches(r, 3), removeWatches(r, 3), set(r, "", -1), addWatch(r, 1),
			removeWatches(r, 3), set(r, "", -1))
		b := s.open("b")
		b.each(get(r, true))
		l.each(removeWatches(r, 3), set(r, "", -1))
		b.each(ping())
	}},
	{"checkWatches and the watches of others", func(s *script) {
		a, b := s.open("a"), s.open("b")
		b.each(get(s.root, true))
		s.changed("checkWatches counts the watches of all connections, against the caller's", []string{"3.9.0"},
			[]string{"a< checkWatches zxid=+2 ok"}, []string{"a< checkWatches zxid=+2 ERROR -121 no such watch"},
			func() {
				a.each(checkWatches(s.root, wire.WatcherData))
			})
		b.each(checkWatches(s.root, wire.WatcherData))
	}},
	{"watcher types for persistent watches", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(addWatch(r, 0), addWatch(r+"/x", 1))
		for _, q := range []struct {
			sub  wire.SubRequest
			ours string
		}{
			{checkWatches(r, 4), "checkWatches zxid=+1 ok"},
			{checkWatches(r, 5), "checkWatches zxid=+1 ERROR -121 no such watch"},
			{checkWatches(r+"/x", 5), "checkWatches zxid=+1 ok"},
			{removeWatches(r, 5), "removeWatches zxid=+1 ERROR -121 no such watch"},
			{removeWatches(r+"/x", 4), "removeWatches zxid=+1 ERROR -121 no such watch"},
			{removeWatches(r, 4), "removeWatches zxid=+1 ok"},
			{removeWatches(r, 4), "removeWatches zxid=+1 ERROR -121 no such watch"},
			{removeWatches(r+"/x", 5), "removeWatches zxid=+1 ok"},
		} {
			s.changed("watcher types 4 and 5 are unknown, against known", []string{"3.9.0"},
				[]string{"a< " + q.sub.Op.String() + " zxid=+1 ERROR -5 malformed request"},
				[]string{"a< " + q.ours},
				func() { l.each(q.sub) })
		}
	}},
	{"typed removal leaves persistent watches", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(addWatch(r, 0))
		for _, kind := range []int32{wire.WatcherChildren, wire.WatcherData} {
			s.changed("types 1 and 2 remove persistent watches, against one-shot ones only", []string{"3.9.0"},
				[]string{"a< removeWatches zxid=+1 ok"}, []string{"a< removeWatches zxid=+1 ERROR -121 no such watch"},
				func() {
					l.each(removeWatches(r, kind))
				})
		}
		s.changed("and so the watch is gone, against there", []string{"3.9.0"},
			[]string{"a< setData zxid=+2 ok {c-1 m+2 p-1 ctime=before mtime=t v1 cv0 av0 owner=- len0 kids0}"},
			[]string{
				"a! dataChanged $ state=3 err=0",
				"a< setData zxid=+2 ok {c-1 m+2 p-1 ctime=before mtime=t v1 cv0 av0 owner=- len0 kids0}",
			}, func() {
				l.each(set(r, "", -1))
			})
	}},
	{"events are kept from those who may not read", func(s *script) {
		a, b, c := s.open("a"), s.open("b"), s.open("c")
		r := s.root
		a.each(auth("digest", "u:p"), create(r+"/open", "", 0), createWith(r+"/closed", mine...))
		c.each(auth("digest", "u:p"))
		for _, l := range []*link{b, c} {
			l.each(addWatch(r, 1), exists(r+"/closed/k", true))
		}
		a.each(
			set(r+"/closed", "", -1), createWith(r+"/closed/k", mine...), set(r+"/closed/k", "",
				-1), create(r+"/closed/open", "", 0),
			set(r+"/closed/open", "", -1), set(r+"/open", "", -1),
		)
		b.each(ping())
		c.each(ping())
		a.each(del(r+"/closed/open", -1), del(r+"/closed/k", -1), del(r+"/closed", -1), del(r+"/open", -1))
		b.each(ping())
		c.each(ping())
	}},
	{"watches do not outlive their connection", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		b.each(get(r, true), addWatch(r+"/x", 0))
		b2 := s.resume("b2", b)
		b.next()
		a.each(set(r, "", -1), create(r+"/x", "", 0))
		b2.each(ping(), checkWatches(r, 3), checkWatches(r+"/x", 3))
	}},
}

var setWatchesCases = []testCase{
	{"setWatches tells what was missed and watches the rest", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(
			create(r+"/same", "", 0), create(r+"/changed", "", 0), create(r+"/gone", "", 0), create(r+"/again", "", 0),
			create(r+"/kids", "", 0), create(r+"/kids/a", "", 0), create(r+"/fewer", "", 0), create(r+"/fewer/a", "",
				0),
		)
		rel := a.each(syncPath(r)).Zxid
		a.each(
			set(r+"/changed", "", -1), del(r+"/gone", -1), del(r+"/again", -1), create(r+"/again", "",
				0), create(r+"/kids/b", "", 0),
			del(r+"/fewer/a", -1), create(r+"/new", "", 0), setACL(r+"/same", -1, open...),
		)
		b.each(setWatches(rel, []string{r + "/same", r + "/changed", r + "/gone", r + "/again", r + "/kids"},
			[]string{r + "/none", r + "/new", r + "/same"}, []string{
				r + "/same", r + "/kids", r + "/fewer",
				r + "/gone", r + "/again",
			}))
		a.each(
			set(r+"/same", "", -1), set(r+"/kids", "", -1), create(r+"/none", "", 0), create(r+"/same/k", "", 0),
			create(r+"/kids/c", "", 0), set(r+"/changed", "", -1),
		)
		b.each(ping())
	}},
	{"setWatches at the edges of its zxid", func(s *script) {
		a := s.open("a")
		r := s.root
		m := a.each(create(r+"/x", "", 0))
		for i, rel := range []int64{m.Zxid - 1, m.Zxid, m.Zxid + 1, 0, -1, 1 << 62} {
			l := s.open(string(rune('b' + i)))
			l.each(setWatches(rel, []string{r + "/x"}, nil, []string{r + "/x", r}))
			l.each(ping())
		}
		a.each(set(r+"/x", "", -1), create(r+"/x/y", "", 0))
		for _, c := range s.conns {
			if c.name >= "b" && c.name <= "z" && len(c.name) == 1 {
				(&link{conn: c, s: s}).each(ping())
			}
		}
	}},
	{"setWatches2 brings persistent watches back", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(create(r+"/p", "", 0), create(r+"/q", "", 0))
		rel := a.each(syncPath(r)).Zxid
		a.each(set(r+"/p", "", -1), set(r+"/q", "", -1), create(r+"/q/k", "", 0))
		b.do(wire.OpSetWatches2,
			&wire.SetWatchesRequest{
				Two: true, RelativeZxid: rel, Data: []string{r + "/p"},
				Persistent: []string{r + "/p", r + "/none"}, PersistentRecur: []string{r + "/q"},
			})
		a.each(
			set(r+"/p", "", -1), create(r+"/p/k", "", 0), set(r+"/q", "", -1), set(r+"/q/k", "", -1), create(r+"/q/l",
				"", 0),
			create(r+"/none", "", 0),
		)
		b.each(ping())
	}},
	{"setWatches several times and with odd paths", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(create(r+"/x", "", 0))
		rel := l.each(syncPath(r)).Zxid
		l.together(
			setWatches(rel, []string{r + "/x"}, nil, nil), setWatches(rel, nil, []string{r + "/none"}, nil),
			setWatches(rel, nil, nil, []string{r}), setWatches(rel, nil, nil, nil),
		)
		l.each(create(r+"/none", "", 0), set(r+"/x", "", -1))
		l.each(setWatches(rel, []string{"", "nopath", "//", r + "/x/"}, []string{"nopath"}, []string{"nopath", ""}))
		l.each(setWatches(rel, []string{r + "/x", r + "/x"}, nil, nil))
		l.each(createWith(r+"/secret", acl(31, "digest", "x:y")))
		secret := []string{r + "/secret"}
		reply := "a< setWatches xid=-8 zxid=+5 ok"
		s.changed("setWatches tells of what the caller may not read, against not", []string{"3.9.6"},
			[]string{
				"a! dataChanged $/secret state=3 err=0", "a! created $/secret state=3 err=0",
				"a! childrenChanged $/secret state=3 err=0", reply,
			}, []string{reply}, func() {
				l.each(setWatches(rel, secret, secret, secret))
			})
	}},
	{"a watch set again is one watch", func(s *script) {
		l := s.open("a")
		r := s.root
		rel := l.each(get(r, true)).Zxid
		l.each(setWatches(rel, []string{r}, nil, nil), get(r, true), set(r, "", -1), set(r, "", -1))
	}},
}
