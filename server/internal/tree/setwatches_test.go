package tree_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestSetWatchesSendsMissedEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/same", "/changed", "/children", "/less", "/less/x", "/recreated", "/gone"} {
		c.mk(path, 0)
	}
	rel := s.zxid
	s.wantOK(c.set("/changed", "", -1), "setData")
	s.wantOK(c.create("/children/x", "", 0), "create")
	s.wantOK(c.remove("/less/x", -1), "delete")
	s.wantOK(c.remove("/recreated", -1), "delete")
	s.wantOK(c.create("/recreated", "", 0), "create")
	s.wantOK(c.remove("/gone", -1), "delete")

	all := []string{"/same", "/changed", "/children", "/less", "/recreated", "/gone"}
	for _, two := range []bool{false, true} {
		w := s.attach(1, 20)
		op := wire.OpSetWatches
		req := &wire.SetWatchesRequest{Two: two, RelativeZxid: rel, Data: all, Exist: all, Child: all}
		if two {
			op = wire.OpSetWatches2
			req.Persistent, req.PersistentRecur = []string{"/gone"}, []string{"/less"}
		}
		body, code, events := w.read(op, req)
		if code != wire.OK || body != nil {
			t.Errorf("%v: got %v %v", op, body, code)
		}
		s.wantEvents(
			events,
			"20 DataChanged /changed", "20 DataChanged /recreated", "20 Deleted /gone",
			"20 Created /same", "20 Created /changed", "20 Created /children", "20 Created /less",
			"20 Created /recreated",
			"20 ChildrenChanged /children", "20 ChildrenChanged /less", "20 ChildrenChanged /recreated",
			"20 Deleted /gone",
		)
		for _, e := range events {
			if e.Zxid != -1 {
				t.Errorf("%v: event: got zxid %d, want -1", op, e.Zxid)
			}
		}
		// Where no event was sent, the watch is set.
		s.wantEvents(c.set("/changed", "", -1).Events)
		s.wantEvents(c.set("/same", "", -1).Events, "20 DataChanged /same")
		s.wantEvents(c.create("/same/x", "", 0).Events, "20 ChildrenChanged /same")
		s.wantEvents(c.create("/gone", "", 0).Events, "20 Created /gone")
		want := []string{}
		if two {
			want = []string{"20 DataChanged /gone"}
		}
		s.wantEvents(c.set("/gone", "", -1).Events, want...)
		// The recursive watch and the standard one make one event together.
		s.wantEvents(c.set("/less", "", -1).Events, "20 DataChanged /less")
		want = []string{}
		if two {
			want = []string{"20 Created /less/y"}
		}
		s.wantEvents(c.create("/less/y", "", 0).Events, want...)
		s.wantSound()
		s.tree.RemoveWatcher(20, 1000)
		for _, path := range []string{"/less/y", "/same/x", "/gone"} {
			s.wantOK(c.remove(path, -1), "delete")
		}
		rel = s.zxid
		s.wantOK(c.set("/changed", "", -1), "setData")
		s.wantOK(c.create("/children/"+strconv.FormatBool(two), "", 0), "create")
		s.wantOK(c.create("/less/x", "", 0), "create")
		s.wantOK(c.remove("/less/x", -1), "delete")
		s.wantOK(c.remove("/recreated", -1), "delete")
		s.wantOK(c.create("/recreated", "", 0), "create")
	}
}

// As ZooKeeper from 3.9.6 on.
func TestSetWatchesTellsNothingOfWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	s.wantOK(c.write(wire.OpCreate, &wire.CreateRequest{
		Path: "/a",
		ACL:  []wire.ACL{{Perms: wire.PermAdmin | wire.PermRead, ID: wire.ID{Scheme: "ip", ID: "10.0.0.1"}}},
	}), "create")
	req := &wire.SetWatchesRequest{
		Data: []string{"/a", "nonsense\x00", ""}, Exist: []string{"/a"}, Child: []string{"/a"},
	}
	_, code, events := s.attach(1, 5).read(wire.OpSetWatches, req)
	s.want(code, wire.OK, "setWatches")
	s.wantEvents(events, "5 Deleted nonsense\x00")
	_, code, events = s.attach(1, 6, wire.ID{Scheme: "ip", ID: "10.0.0.1"}).read(wire.OpSetWatches, req)
	s.want(code, wire.OK, "setWatches")
	s.wantEvents(events, "6 DataChanged /a", "6 Deleted nonsense\x00", "6 Created /a", "6 ChildrenChanged /a")
	s.wantSound()
}

func TestRemoveWatchesRemovesTheGivenType(t *testing.T) {
	t.Parallel()
	type set = func(w *client)
	data := func(w *client) { w.get("/a", true) }
	children := func(w *client) { w.children("/a", true) }
	staying := func(w *client) { w.addWatch("/a", 0) }
	recursive := func(w *client) { w.addWatch("/a", 1) }
	exist := func(w *client) { w.exists("/a", true) }
	all := func(w *client) { data(w); children(w); staying(w); recursive(w) }
	const ok, none, bad = wire.OK, wire.NoWatcher, wire.MarshallingError
	for _, row := range []struct {
		name string
		set  set
		want [8]wire.Code // by type
		left [8]int       // watches after the removal, by type
	}{
		{"nothing", func(*client) {}, [8]wire.Code{bad, none, none, none, none, none, bad, bad}, [8]int{}},
		{"data", data, [8]wire.Code{bad, none, ok, ok, none, none, bad, bad}, [8]int{1, 1, 0, 0, 1, 1, 1, 1}},
		{"exists", exist, [8]wire.Code{bad, none, ok, ok, none, none, bad, bad}, [8]int{1, 1, 0, 0, 1, 1, 1, 1}},
		{"children", children, [8]wire.Code{bad, ok, none, ok, none, none, bad, bad}, [8]int{1, 0, 1, 0, 1, 1, 1, 1}},
		{"persistent", staying, [8]wire.Code{bad, none, none, ok, ok, none, bad, bad}, [8]int{2, 2, 2, 0, 0, 2, 2, 2}},
		{"recursive", recursive, [8]wire.Code{bad, none, none, ok, none, ok, bad, bad}, [8]int{1, 1, 1, 0, 1, 0, 1, 1}},
		{"all", all, [8]wire.Code{bad, ok, ok, ok, ok, ok, bad, bad}, [8]int{2, 2, 2, 0, 2, 2, 2, 2}},
	} {
		for typ, want := range row.want {
			s := newServer(t, tree.Config{})
			c, w := s.connect(1), s.connect(2)
			c.mk("/a", 0)
			row.set(w)
			req := &wire.WatcherTypeRequest{Path: "/a", Type: int32(typ)}
			what := fmt.Sprintf("%s, type %d", row.name, typ)
			before := s.tree.WatchCount()
			body, code, events := w.read(wire.OpCheckWatches, req)
			s.want(code, want, "checkWatches "+what)
			if s.tree.WatchCount() != before || body != nil || events != nil {
				t.Errorf("checkWatches %s changed the watches", what)
			}
			_, code, _ = c.read(wire.OpRemoveWatches, req)
			if want == wire.OK {
				s.want(code, none, "removeWatches of another connection, "+what)
			}
			body, code, events = w.read(wire.OpRemoveWatches, req)
			s.want(code, want, "removeWatches "+what)
			if n := s.tree.WatchCount(); n != row.left[typ] || body != nil || events != nil {
				t.Errorf("%s: got %d watches, want %d", what, n, row.left[typ])
			}
			if row.name == "all" && typ > 0 && typ < 6 && typ != 3 {
				_, code, _ = w.read(wire.OpCheckWatches, req)
				s.want(code, none, "checkWatches after "+what)
			}
			s.wantSound()
		}
	}
}

func TestRemovedWatchesDoNotFireAndOthersDo(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/a", 0)
	w.addWatch("/a", 0)
	w.addWatch("/a", 1)
	w.get("/a", true)
	remove := func(typ int32) {
		_, code, _ := w.read(wire.OpRemoveWatches, &wire.WatcherTypeRequest{Path: "/a", Type: typ})
		s.want(code, wire.OK, "removeWatches")
	}
	remove(wire.WatcherPersistent)
	s.wantEvents(c.create("/a/x", "", 0).Events, "2 Created /a/x")
	remove(wire.WatcherPersistentRecursive)
	s.wantEvents(c.create("/a/y", "", 0).Events)
	s.wantEvents(c.set("/a", "", -1).Events, "2 DataChanged /a")
	s.wantSound()
}
