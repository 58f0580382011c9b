package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// The estimate must agree with the answer's real size, unless that is close to the limit.
func TestLargeAnswersAreEstimatedBeforeTheyAreBuilt(t *testing.T) {
	t.Parallel()
	const size = 10_000
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/small", 0)
	s.wantOK(c.create("/large", strings.Repeat("x", 2*size), 0), "create")
	for i := range 2 * size / 60 {
		s.wantOK(c.create(fmt.Sprintf("/large/%s%d", strings.Repeat("n", 60), i), "", wire.FlagEphemeral), "create")
	}
	var long []wire.ACL
	for i := range 2 * size / 20 {
		long = append(long, entry(wire.PermRead, wire.ID{Scheme: "ip", ID: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}))
	}
	c.mk("/guarded", 0)
	s.wantOK(c.setACL("/guarded", append(long, entry(wire.PermAll, world)), -1), "setACL")
	several := func(op wire.Op, path string, n int) *wire.MultiRequest {
		r := &wire.MultiRequest{Read: true}
		for range n {
			r.Ops = append(r.Ops, wire.SubRequest{Op: op, Request: &wire.PathWatchRequest{Path: path}})
		}
		return r
	}
	for name, row := range map[string]struct {
		op  wire.Op
		req wire.Record
	}{
		"exists":                  {wire.OpExists, &wire.PathWatchRequest{Path: "/large"}},
		"small data":              {wire.OpGetData, &wire.PathWatchRequest{Path: "/small"}},
		"large data":              {wire.OpGetData, &wire.PathWatchRequest{Path: "/large"}},
		"no node":                 {wire.OpGetData, &wire.PathWatchRequest{Path: "/none"}},
		"short list":              {wire.OpGetChildren, &wire.PathWatchRequest{Path: "/small"}},
		"long list":               {wire.OpGetChildren, &wire.PathWatchRequest{Path: "/large"}},
		"long list with a stat":   {wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/large"}},
		"few reads":               {wire.OpMultiRead, several(wire.OpGetData, "/small", 2)},
		"many reads":              {wire.OpMultiRead, several(wire.OpGetData, "/small", size)},
		"a read of much":          {wire.OpMultiRead, several(wire.OpGetData, "/large", 1)},
		"a list of much":          {wire.OpMultiRead, several(wire.OpGetChildren, "/large", 1)},
		"many reads of nothing":   {wire.OpMultiRead, several(wire.OpGetData, "/none", size)},
		"ephemeral nodes":         {wire.OpGetEphemerals, &wire.EphemeralsRequest{}},
		"access list":             {wire.OpGetACL, &wire.PathRequest{Path: "/large"}},
		"long access list":        {wire.OpGetACL, &wire.PathRequest{Path: "/guarded"}},
		"access list of no node":  {wire.OpGetACL, &wire.PathRequest{Path: "/none"}},
		"watches that are wanted": {wire.OpSetWatches, &wire.SetWatchesRequest{Exist: []string{"/none"}}},
	} {
		large := false
		if body, code, _ := c.read(row.op, row.req); code == wire.OK && body != nil {
			large = len(body.Append(nil)) > size
		}
		if got := s.tree.Exceeds(c.Caller, row.op, row.req, size); got != large {
			t.Errorf("%s: got large %t, want %t", name, got, large)
		}
	}
}

func TestRemovedWatchesTakeNoMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/a", 0)
	watch := func() {
		t.Helper()
		w.get("/a", true)
		w.children("/a", true)
		w.exists("/none", true)
		s.want(w.addWatch("/a", wire.WatchPersistent), wire.OK, "addWatch")
		s.want(w.addWatch("/b", wire.WatchPersistentRecursive), wire.OK, "addWatch")
		if got := w.Kept.Load(); got < 4*100 {
			t.Errorf("watches: got %d bytes", got)
		}
	}
	watch()
	s.wantOK(c.create("/none", "", 0), "create") // fires a watch
	for _, path := range []string{"/a", "/b"} {
		if _, code, _ := w.read(wire.OpRemoveWatches,
			&wire.WatcherTypeRequest{Path: path, Type: wire.WatcherAny}); code != wire.OK {
			t.Errorf("removeWatches at %s: got %v, want OK", path, code)
		}
	}
	if got := w.Kept.Load(); got != 0 {
		t.Errorf("removed watches: got %d bytes, want 0", got)
	}
	s.wantOK(c.remove("/none", -1), "delete")
	watch()
	s.tree.RemoveWatcher(w.Watcher, 1000)
	if got := w.Kept.Load(); got != 0 {
		t.Errorf("watches of a closed connection: got %d bytes, want 0", got)
	}
}

func TestPathsOfAllWatchesOfAConnectionCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{MaxWatches: 10, WatchPath: 10})
	c := s.connect(1)
	long := func(i int) string { return fmt.Sprintf("/%d%s", i, strings.Repeat("n", 38)) }
	for i := range 2 {
		s.want(c.exists(long(i), true), wire.NoNode, "exists")
	}
	s.want(c.exists(long(2), true), wire.BadArguments, "exists, with 120 bytes of paths for 100")
	s.want(c.addWatch("/"+strings.Repeat("n", 19), wire.WatchPersistentRecursive), wire.OK, "addWatch, up to the limit")
	s.want(c.exists("/", true), wire.BadArguments, "exists, a byte above it")
	s.wantOK(c.create(long(0), "", 0), "create") // fires a watch
	s.want(c.exists(long(2), true), wire.NoNode, "exists, in place of what has fired")
}
