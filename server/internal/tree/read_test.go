package tree_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestEmptyPathIsTheRootForReads(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	names, code := c.children("", false)
	if code != wire.OK || !slices.Equal(names, []string{"zookeeper"}) {
		t.Errorf("got %v %v", names, code)
	}
	s.want(c.exists("", false), wire.OK, "exists")
	acl, code := c.getACL("")
	if code != wire.OK || !slices.Equal(acl, openACL) {
		t.Errorf("got %v %v", acl, code)
	}
}

func TestGetEphemeralsListsTheCallersByPrefix(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	a, b := s.connect(1), s.connect(2)
	a.mk("/plain", 0)
	for _, path := range []string{"/a", "/ab", "/plain/x"} {
		a.mk(path, 1)
	}
	b.mk("/b", 1)
	for prefix, want := range map[string][]string{
		"": {"/a", "/ab", "/plain/x"}, "/": {"/a", "/ab", "/plain/x"}, "  ": {"/a", "/ab", "/plain/x"},
		"/a": {"/a", "/ab"}, "/plain/": {"/plain/x"}, "/b": {}, "nonsense": {}, "/none/deep": {},
	} {
		body, code, _ := a.read(wire.OpGetEphemerals, &wire.EphemeralsRequest{Prefix: prefix})
		got := body.(*wire.ChildrenResponse).Children
		slices.Sort(got)
		if code != wire.OK || got == nil || !slices.Equal(got, want) {
			t.Errorf("prefix %q: got %v %v, want %v", prefix, got, code, want)
		}
	}
	if got := s.tree.EphemeralsOf(1); !slices.Equal(got, []string{"/a", "/ab", "/plain/x"}) ||
		s.tree.EphemeralCount() != 4 {
		t.Errorf("got ephemerals %v", got)
	}
	first, more := s.tree.Ephemerals(nil, 1, 0, 2)
	rest, end := s.tree.Ephemerals(nil, 1, 2, 2)
	if len(first) != 2 || !more || len(rest) != 1 || end || !s.tree.HasEphemerals(1) || s.tree.HasEphemerals(99) {
		t.Errorf("in pieces: got %q %t and %q %t, want two with more and then one", first, more, rest, end)
	}
	s.wantSound()
}

func TestGetAllChildrenNumberCountsDescendants(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/a", "/a/b", "/a/b/c", "/a/b/d", "/ab"} {
		c.mk(path, 0)
	}
	for path, want := range map[string]int32{
		"/": 8, "": 8, "/a": 3, "/a/b": 2, "/a/b/c": 0, "/ab": 0,
		"/zookeeper": 2,
	} {
		body, code, _ := c.read(wire.OpGetAllChildren, &wire.PathRequest{Path: path})
		if r, ok := body.(*wire.CountResponse); !ok || r.Count != want {
			t.Errorf("%q: got %+v %v, want %d", path, body, code, want)
		}
	}
	_, code, _ := c.read(wire.OpGetAllChildren, &wire.PathRequest{Path: "/none"})
	s.want(code, wire.NoNode, "getAllChildrenNumber of an absent node")
}

func TestWhoAmIHidesHashes(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1, alice, wire.ID{Scheme: "sasl", ID: "carol:x"})
	c.Super = true
	body, code, _ := c.read(wire.OpWhoAmI, &wire.Empty{})
	want := []wire.ID{
		{Scheme: "ip", ID: "127.0.0.1"},
		{Scheme: "digest", ID: "alice"},
		{Scheme: "sasl", ID: "carol:x"},
		{Scheme: "super"},
	}
	if got := body.(*wire.WhoAmIResponse).IDs; code != wire.OK || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSyncEchoesAnyPath(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/", "", "/none", "nonsense\x00"} {
		body, code, _ := c.read(wire.OpSync, &wire.PathRequest{Path: path})
		if r, ok := body.(*wire.PathResponse); !ok || code != wire.OK || r.Path != path {
			t.Errorf("sync %q: got %+v %v", path, body, code)
		}
	}
}

func TestServerReadsEverythingAndWatchesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/n", 0)
	s.wantOK(c.setACL("/n", []wire.ACL{entry(0, alice)}, -1), "setACL")
	_, code, _ := s.tree.Read(nil, wire.OpGetData, &wire.PathWatchRequest{Path: "/n", Watch: true})
	s.want(code, wire.OK, "getData")
	_, code, _ = s.tree.Read(nil, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/n"})
	s.want(code, wire.OK, "addWatch")
	if n := s.tree.WatchCount(); n != 0 {
		t.Errorf("got %d watches, want 0", n)
	}
}

// Promise: 10
func TestDependsOnFindsReadsThatAWriteAffects(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	r := c.create("/p/n", "x", 0)
	touched := slices.Sorted(r.Touched())
	touched = slices.Compact(touched)
	if !slices.Equal(touched, []string{"/p", "/p/n"}) {
		t.Errorf("create: got touched paths %v", touched)
	}
	if got := slices.Compact(slices.Sorted(r.Touched())); !slices.Equal(got, touched) {
		t.Errorf("second call: got touched paths %v", got)
	}
	dirty := func(path string) bool { return slices.Contains(touched, path) }
	path := func(p string) wire.Record { return &wire.PathWatchRequest{Path: p} }
	for _, row := range []struct {
		op   wire.Op
		req  wire.Record
		want bool
	}{
		{wire.OpGetData, path("/p"), true},
		{wire.OpExists, path("/p/n"), true},
		{wire.OpGetChildren2, path("/p/n"), true},
		{wire.OpGetData, path("/other"), false},
		{wire.OpGetData, path("/"), false},
		{wire.OpGetACL, &wire.PathRequest{Path: "/p"}, true},
		{wire.OpGetACL, &wire.PathRequest{Path: "/x"}, false},
		{wire.OpSync, &wire.PathRequest{Path: "/x"}, true},
		{wire.OpGetEphemerals, &wire.EphemeralsRequest{}, true},
		{wire.OpGetAllChildren, &wire.PathRequest{Path: "/x"}, true},
		{wire.OpWhoAmI, &wire.Empty{}, false},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p"}, false},
		{wire.OpCheckWatches, &wire.WatcherTypeRequest{Path: "/p"}, true},
		{wire.OpRemoveWatches, &wire.WatcherTypeRequest{Path: "/p"}, true},
		{wire.OpRemoveWatches, &wire.WatcherTypeRequest{Path: "/q"}, false},
		{
			wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: []wire.SubRequest{sub(wire.OpGetData, path("/x"))}},
			false,
		},
		{wire.OpMultiRead, &wire.MultiRequest{
			Read: true,
			Ops:  []wire.SubRequest{sub(wire.OpGetData, path("/x")), sub(wire.OpGetData, path("/p"))},
		}, true},
		{wire.OpSetWatches, &wire.SetWatchesRequest{Data: []string{"/x"}}, false},
		{wire.OpSetWatches, &wire.SetWatchesRequest{Exist: []string{"/x", "/p"}}, true},
		{wire.OpSetWatches2, &wire.SetWatchesRequest{Two: true, Child: []string{"/p"}}, true},
		{wire.OpSetWatches2, &wire.SetWatchesRequest{Two: true, Persistent: []string{"/p"}}, false},
	} {
		if got := tree.DependsOn(row.op, row.req, dirty); got != row.want {
			t.Errorf("%v %+v: got %t, want %t", row.op, row.req, got, row.want)
		}
	}
	root := func(path string) bool { return path == "/" }
	if !tree.DependsOn(wire.OpGetChildren, path(""), root) {
		t.Error("the empty path: got false, want true for the root")
	}
}
