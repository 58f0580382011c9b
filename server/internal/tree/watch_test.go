package tree_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestWatchesFireOnTheirChanges(t *testing.T) {
	t.Parallel()
	// Connection 2 watches in one way; connection 1 writes. The node is /p/n, its parent /p.
	watches := []struct {
		name                                      string
		set                                       func(s *server, w *client)
		create, setData, remove, child, childGone []string
		again                                     bool // still set after it has fired
	}{
		{
			name:   "exists",
			set:    func(_ *server, w *client) { w.exists("/p/n", true) },
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove: []string{"2 Deleted /p/n"},
		},
		{
			name:    "getData",
			set:     func(_ *server, w *client) { w.get("/p/n", true) },
			setData: []string{"2 DataChanged /p/n"}, remove: []string{"2 Deleted /p/n"},
		},
		{
			name:   "getChildren",
			set:    func(_ *server, w *client) { w.children("/p/n", true) },
			remove: []string{"2 Deleted /p/n"}, child: []string{"2 ChildrenChanged /p/n"},
			childGone: []string{"2 ChildrenChanged /p/n"},
		},
		{
			name: "getChildren2 of the parent",
			set: func(_ *server, w *client) {
				w.read(wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/p", Watch: true})
			},
			create: []string{"2 ChildrenChanged /p"}, remove: []string{"2 ChildrenChanged /p"},
		},
		{
			name:   "data and children",
			set:    func(_ *server, w *client) { w.exists("/p/n", true); w.children("/p/n", true) },
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove: []string{"2 Deleted /p/n"},
			child:  []string{"2 ChildrenChanged /p/n"}, childGone: []string{"2 ChildrenChanged /p/n"},
		},
		{
			name: "data, children and children of the parent",
			set: func(_ *server, w *client) {
				w.children("/p", true)
				w.exists("/p/n", true)
				w.children("/p/n", true)
			},
			create:  []string{"2 Created /p/n", "2 ChildrenChanged /p"},
			setData: []string{"2 DataChanged /p/n"}, remove: []string{"2 Deleted /p/n", "2 ChildrenChanged /p"},
			child: []string{"2 ChildrenChanged /p/n"}, childGone: []string{"2 ChildrenChanged /p/n"},
		},
		{
			name:   "persistent",
			set:    func(s *server, w *client) { s.want(w.addWatch("/p/n", 0), wire.OK, "addWatch") },
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove: []string{"2 Deleted /p/n"},
			child:  []string{"2 ChildrenChanged /p/n"}, childGone: []string{"2 ChildrenChanged /p/n"}, again: true,
		},
		{
			name:   "persistent on the parent",
			set:    func(s *server, w *client) { s.want(w.addWatch("/p", 0), wire.OK, "addWatch") },
			create: []string{"2 ChildrenChanged /p"}, remove: []string{"2 ChildrenChanged /p"}, again: true,
		},
		{
			name:   "recursive",
			set:    func(s *server, w *client) { s.want(w.addWatch("/p/n", 1), wire.OK, "addWatch") },
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove: []string{"2 Deleted /p/n"},
			child:  []string{"2 Created /p/n/c"}, childGone: []string{"2 Deleted /p/n/c"}, again: true,
		},
		{
			name:   "recursive on the root",
			set:    func(s *server, w *client) { s.want(w.addWatch("/", 1), wire.OK, "addWatch") },
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove: []string{"2 Deleted /p/n"},
			child:  []string{"2 Created /p/n/c"}, childGone: []string{"2 Deleted /p/n/c"}, again: true,
		},
		{
			name: "recursive above and one-shot",
			set: func(_ *server, w *client) {
				w.addWatch("/", 1)
				w.addWatch("/p", 1)
				w.exists("/p/n", true)
				w.children("/p/n", true)
			},
			create: []string{"2 Created /p/n"}, setData: []string{"2 DataChanged /p/n"},
			remove:    []string{"2 Deleted /p/n"},
			child:     []string{"2 Created /p/n/c", "2 ChildrenChanged /p/n"},
			childGone: []string{"2 Deleted /p/n/c", "2 ChildrenChanged /p/n"}, again: true,
		},
	}
	for _, row := range watches {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			one := func(what string, prepare, write func(s *server, c *client) tree.Result, want []string) {
				t.Helper()
				s := newServer(t, tree.Config{})
				c, w := s.connect(1), s.connect(2)
				c.mk("/p", 0)
				prepare(s, c)
				row.set(s, w)
				r := write(s, c)
				s.wantOK(r, what)
				s.wantEvents(r.Events, want...)
				s.wantEvents(c.setACL("/p", openACL, -1).Events)
				if row.again && s.tree.WatchCount() == 0 {
					t.Errorf("%s: the watch was removed", what)
				}
				s.wantSound()
			}
			nothing := func(*server, *client) tree.Result { return tree.Result{} }
			mk := func(_ *server, c *client) tree.Result { return c.create("/p/n", "", 0) }
			mkChild := func(_ *server, c *client) tree.Result { return c.create("/p/n/c", "", 0) }
			one("create", nothing, mk, row.create)
			one("setData", mk, func(_ *server, c *client) tree.Result { return c.set("/p/n", "x", -1) }, row.setData)
			one("delete", mk, func(_ *server, c *client) tree.Result { return c.remove("/p/n", -1) }, row.remove)
			one("create child", mk, mkChild, row.child)
			one("delete child", func(s *server, c *client) tree.Result { mk(s, c); return mkChild(s, c) },
				func(_ *server, c *client) tree.Result { return c.remove("/p/n/c", -1) }, row.childGone)
			one("setACL", mk, func(_ *server, c *client) tree.Result { return c.setACL("/p/n", openACL, -1) }, nil)
		})
	}
}

func TestOneShotWatchFiresOnceAndSettingItTwiceIsOne(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/a", 0)
	w.get("/a", true)
	w.get("/a", true)
	w.exists("/a", true)
	s.wantEvents(c.set("/a", "1", -1).Events, "2 DataChanged /a")
	s.wantEvents(c.set("/a", "2", -1).Events)
	w.get("/a", true)
	s.wantEvents(c.remove("/a", -1).Events, "2 Deleted /a")
	s.wantSound()
}

func TestWriterGetsTheEventsOfItsWrites(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.children("/", true)
	s.wantEvents(c.create("/a", "", 0).Events, "1 ChildrenChanged /")
}

func TestOnlyExistsWatchesAbsentNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.get("/a", true)
	c.children("/a", true)
	if n := s.tree.WatchCount(); n != 0 {
		t.Errorf("got %d watches on an absent node, want 0", n)
	}
	s.want(c.exists("/a", true), wire.NoNode, "exists")
	s.wantEvents(c.create("/a", "", 0).Events, "1 Created /a")
	c.mk("/closed", 0)
	s.wantOK(c.setACL("/closed", []wire.ACL{{Perms: wire.PermWrite, ID: wire.ID{Scheme: "world", ID: "anyone"}}}, -1),
		"setACL")
	c.get("/closed", true)
	c.children("/closed", true)
	s.want(c.exists("/closed", true), wire.NoAuth, "exists")
	if n := s.tree.WatchCount(); n != 0 {
		t.Errorf("got %d watches without permission to read, want 0", n)
	}
}

func TestPersistentWatchSurvivesOneShotOnTheSamePath(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/a", 0)
	for range 2 {
		s.want(w.addWatch("/a", 0), wire.OK, "addWatch")
		w.get("/a", true)
		w.children("/a", true)
		s.wantEvents(c.set("/a", "1", -1).Events, "2 DataChanged /a")
		s.wantEvents(c.create("/a/x", "", 0).Events, "2 ChildrenChanged /a")
		s.wantEvents(c.set("/a", "1", -1).Events, "2 DataChanged /a")
		s.wantEvents(c.remove("/a/x", -1).Events, "2 ChildrenChanged /a")
		s.wantEvents(c.remove("/a", -1).Events, "2 Deleted /a")
		s.wantEvents(c.create("/a", "", 0).Events, "2 Created /a")
	}
	if n := s.tree.WatchCount(); n != 2 {
		t.Errorf("got %d watches, want 2", n)
	}
	s.wantSound()
}

func TestEventsComeInTheOrderInWhichWatchesWereSet(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/a", 0)
	var want []string
	for id := int64(9); id > 1; id-- {
		s.connect(id).get("/a", true)
	}
	s.tree.RemoveWatcher(5, 1000)
	s.tree.RemoveWatcher(9, 1000)
	s.attach(5, 5).get("/a", true)
	for _, id := range []string{"8", "7", "6", "4", "3", "2", "5"} {
		want = append(want, id+" DataChanged /a")
	}
	s.wantEvents(c.set("/a", "", -1).Events, want...)
	s.wantSound()
}

func TestAddWatchChecksNothingButTheMode(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/none", "nonsense", "", "/zookeeper"} {
		for _, mode := range []int32{0, 1} {
			body, code, _ := c.read(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode})
			if r, ok := body.(*wire.ErrorResponse); code != wire.OK || !ok || r.Err != wire.OK {
				t.Errorf("addWatch %q %d: got %v %v", path, mode, body, code)
			}
		}
	}
	for _, mode := range []int32{-1, 2, 1 << 30} {
		s.want(c.addWatch("/a", mode), wire.MarshallingError, "addWatch with an unknown mode")
	}
	s.wantSound()
}

func TestWatchesEndWithTheConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/a", 0)
	old, other := s.attach(1, 10), s.attach(1, 11)
	for _, w := range []*client{old, other} {
		w.get("/a", true)
		w.children("/a", true)
		w.addWatch("/", 1)
		w.addWatch("/a", 0)
	}
	s.tree.RemoveWatcher(10, 1000)
	s.tree.RemoveWatcher(99, 1000)
	s.wantEvents(c.set("/a", "", -1).Events, "11 DataChanged /a")
	s.tree.RemoveWatcher(11, 1000)
	s.wantEvents(c.set("/a", "", -1).Events)
	if n := s.tree.WatchCount(); n != 0 {
		t.Errorf("got %d watches, want 0", n)
	}
	s.wantSound()
}

func TestEventsGoOnlyToConnectionsThatMayRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	alice := wire.ID{Scheme: "digest", ID: "alice:hash"}
	c, w, blind := s.connect(1, alice), s.connect(2, alice), s.connect(3)
	secret := []wire.ACL{{Perms: wire.PermAll, ID: alice}}
	c.mk("/p", 0)
	c.mk("/p/n", 0)
	for _, v := range []*client{w, blind} {
		v.get("/p/n", true)
		v.children("/p", true)
		v.addWatch("/p", 1)
	}
	s.wantOK(c.setACL("/p/n", secret, -1), "setACL")
	s.wantEvents(c.set("/p/n", "", -1).Events, "2 DataChanged /p/n")
	// A standard watch is removed even if its event is not sent. For children, the parent's access list decides.
	s.wantOK(c.setACL("/p/n", openACL, -1), "setACL")
	s.wantEvents(c.set("/p/n", "", -1).Events, "2 DataChanged /p/n", "3 DataChanged /p/n")
	s.wantOK(c.setACL("/p/n", secret, -1), "setACL")
	s.wantEvents(c.remove("/p/n", -1).Events, "2 Deleted /p/n", "2 ChildrenChanged /p", "3 ChildrenChanged /p")
	// An identity that is added later counts.
	blind.IDs = append(blind.IDs, alice)
	r := c.write(wire.OpCreate, &wire.CreateRequest{Path: "/p/n", ACL: secret})
	s.wantEvents(r.Events, "2 Created /p/n", "3 Created /p/n")
	s.wantSound()
}

func TestWatchCountsAndListings(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	a, b := s.connect(1), s.connect(2)
	a.get("/", true)
	b.get("/", true)
	b.exists("/x", true)
	b.children("/", true)
	a.addWatch("/zookeeper", 0)
	connections, paths, total := s.tree.WatchSummary()
	if connections != 2 || paths != 3 || total != 4 || s.tree.WatchCount() != 6 {
		t.Errorf("got %d %d %d, %d in all", connections, paths, total, s.tree.WatchCount())
	}
	ids := slices.Sorted(slices.Values(s.tree.Watchers()))
	if !slices.Equal(ids, []tree.WatcherID{1, 2}) {
		t.Errorf("got watchers %v, want 1 and 2", ids)
	}
	byPath := map[string][]tree.WatcherID{}
	for _, id := range ids {
		for _, path := range s.tree.WatchedBy(id) {
			byPath[path] = s.tree.WatchersOf(byPath[path], path, id)
		}
	}
	if len(byPath) != 3 || !slices.Equal(byPath["/"], ids) || len(byPath["/x"]) != 1 || len(byPath["/zookeeper"]) != 1 {
		t.Errorf("by path: got %v", byPath)
	}
	if got := slices.Sorted(slices.Values(s.tree.WatchedBy(2))); !slices.Equal(got, []string{"/", "/x"}) {
		t.Errorf("by watcher: got %v", got)
	}
	s.wantSound()
}
