package tree_test

// Requests whose work is the product of two things that a client chooses. Each test takes minutes if it is.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// longList returns an access list that gives everything to many addresses, and at its end to one more identity.
func longList(last wire.ID) []wire.ACL {
	var list []wire.ACL
	for i := range 40_000 {
		id := wire.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.%d/%d", i>>16, i>>8&255, i&255, 24+i%9)}
		list = append(list, entry(wire.PermAll, id))
	}
	return append(list, entry(wire.PermAll, last))
}

// manyIDs gives a caller as many long identities as a connection may have.
func (c *client) manyIDs() {
	for i := range 99 {
		c.IDs = append(c.IDs, wire.ID{Scheme: "digest", ID: strings.Repeat("u", 1000) + strconv.Itoa(i) + ":x"})
	}
	c.Kept.Add(100_000)
}

func TestLongAccessListCostsNothingPerOperation(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	owner, stranger := s.connect(1, alice), s.connect(2)
	owner.manyIDs()
	stranger.manyIDs()
	for _, path := range []string{"/n", "/m"} { // they alternate, so that the last verdict is of no use
		r := owner.write(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: longList(alice)})
		s.wantOK(r, "create")
		s.wantOK(owner.setACL(path, append(longList(alice), entry(wire.PermRead, bob)), -1), "setACL")
		owner.mk("/"+strings.Repeat(path[1:], 3), 0)
	}
	var checks, reads []wire.SubRequest
	for range 10_000 {
		for _, path := range []string{"/n", "/m"} {
			checks = append(checks, sub(wire.OpCheck, &wire.CheckRequest{Path: path, Version: -1}))
			reads = append(reads, sub(wire.OpGetData, &wire.PathWatchRequest{Path: path}))
		}
	}
	if got := results(t, owner.multi(checks...)); got[len(got)-1].Err != wire.OK {
		t.Errorf("checks of the owner: got %v, want OK", got[len(got)-1].Err)
	}
	if got := results(t, stranger.multi(checks...)); got[0].Err != wire.NoAuth {
		t.Errorf("checks of a stranger: got %v, want NoAuth", got[0].Err)
	}
	body, _, _ := stranger.read(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: reads})
	for _, r := range body.(*wire.MultiResponse).Results {
		if r.Err != wire.NoAuth {
			t.Fatalf("multiRead of a stranger: got %v, want NoAuth", r.Err)
		}
	}
	for range 10_000 {
		if _, code := stranger.getACL("/n"); code != wire.NoAuth {
			t.Fatalf("getACL of a stranger: got %v, want NoAuth", code)
		}
	}
}

func TestLongAccessListCostsNothingPerEvent(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1, alice)
	for _, path := range []string{"/n", "/m"} {
		s.wantOK(c.write(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: longList(alice)}), "create")
	}
	for i := range int64(100) {
		w := s.connect(10+i, wire.ID{Scheme: "digest", ID: "u:x"})
		if i%2 == 0 {
			w.IDs = append(w.IDs, alice)
		}
		s.want(w.addWatch("/", wire.WatchPersistentRecursive), wire.OK, "addWatch")
	}
	var ops []wire.SubRequest
	for range 100 {
		ops = append(ops, sub(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Version: -1}),
			sub(wire.OpSetData, &wire.SetDataRequest{Path: "/m", Version: -1}))
	}
	if r := c.multi(ops...); len(r.Events) != 200*50 {
		t.Errorf("got %d events, want one for each operation and each connection that may read", len(r.Events))
	}
}

func TestMultiThatStoresTooManyListsIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{MaxLists: 1 << 20})
	c := s.connect(1)
	c.manyIDs()
	c.mk("/a", 0)
	c.mk("/b", 0)
	create := func(n int) tree.Result { // each list is 100 KB
		var ops []wire.SubRequest
		for i := range n {
			r := &wire.CreateRequest{Path: fmt.Sprintf("/a/%d", i), ACL: creatorACL}
			ops = append(ops, sub(wire.OpCreate, r))
		}
		if c.s.tree.Exceeds(c.Caller, wire.OpMulti, &wire.MultiRequest{Ops: ops}, 1<<20) != (n > 10) {
			t.Errorf("%d creates: got them estimated wrongly", n)
		}
		return c.multi(ops...)
	}
	if r := create(20); r.Code != wire.MarshallingError || s.tree.TakeLimit() != tree.ListLimit {
		t.Errorf("20 lists of 100 KB: got %v, want %v", r.Code, wire.MarshallingError)
	}
	s.wantSound()
	s.wantOK(create(10), "10 lists of 100 KB")
	var ops, same []wire.SubRequest
	for i := range 20 {
		ops = append(ops, sub(wire.OpSetData, &wire.SetDataRequest{Path: fmt.Sprintf("/a/%d", i%10), Version: -1}))
		same = append(same, sub(wire.OpSetData, &wire.SetDataRequest{Path: "/a/1", Version: -1}))
	}
	s.wantOK(c.multi(ops...), "each list once more")
	s.wantOK(c.multi(same...), "the same list, which is stored once")
	for i := range 10 {
		r := &wire.CreateRequest{Path: fmt.Sprintf("/b/%d", i), ACL: creatorACL}
		s.wantOK(c.write(wire.OpCreate, r), "create alone")
		ops = append(ops, sub(wire.OpCreate, createRequest(fmt.Sprintf("/b/%d/kid", i), "", 0)))
	}
	s.want(c.multi(ops...).Code, wire.MarshallingError, "lists of nodes and of parents")
	if !s.tree.Exceeds(c.Caller, wire.OpSetData, &wire.SetDataRequest{Path: "/a/1"}, 64<<10) ||
		!s.tree.Exceeds(c.Caller, wire.OpDelete, &wire.DeleteRequest{Path: "/a/1/x"}, 64<<10) ||
		s.tree.Exceeds(c.Caller, wire.OpSetData, &wire.SetDataRequest{Path: "/a"}, 64<<10) {
		t.Error("writes to nodes with a long list: want them large, and others small")
	}
	s.wantSound()
}

func TestConnectionsWithTooManyEventsOfOneWriteAreCut(t *testing.T) {
	t.Parallel()
	const limit = 1000
	s := newServer(t, tree.Config{MaxEvents: limit})
	c := s.connect(1)
	c.mk("/n", 0)
	for i := range int64(50) {
		w := s.connect(10+i, wire.ID{Scheme: "digest", ID: "u:x"})
		mode := wire.WatchPersistentRecursive
		if i%2 == 0 {
			mode = wire.WatchPersistent
		}
		s.want(w.addWatch("/n", mode), wire.OK, "addWatch")
	}
	var ops []wire.SubRequest
	for range 5000 {
		ops = append(ops, sub(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Version: -1}))
	}
	s.wantEventCount(c.multi(ops[:20]...), limit, 0)
	if r := c.multi(ops...); r.Code != wire.MarshallingError || s.tree.TakeLimit() != tree.EventLimit {
		t.Errorf("5,000 changes: got %v, want %v", r.Code, wire.MarshallingError)
	}
	s.wantEventCount(c.multi(ops[:1000]...), limit, 50)
	s.wantEventCount(c.set("/n", "x", -1), 0, 0)
	s.wantOK(c.multi(ops...), "5,000 changes when the watches have gone")
	s.wantSound()
	for i := range tree.WatcherID(50) {
		s.tree.RemoveWatcher(10+i, 10)
	}
	if s.tree.WatchCount() != 0 {
		t.Errorf("got %d watches, want none", s.tree.WatchCount())
	}
	s.wantSound()
}

// So are those whose watches fire once.
func TestConnectionsWithTooManyEventsOfOneShotWatchesAreCut(t *testing.T) {
	t.Parallel()
	const limit, nodes = 1000, 50
	s := newServer(t, tree.Config{MaxEvents: limit})
	c := s.connect(1)
	c.mk("/p", 0)
	var ops []wire.SubRequest
	for n := range nodes {
		path := fmt.Sprintf("/p/%d", n)
		c.mk(path, 0)
		ops = append(ops, sub(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}))
	}
	const clients = 30
	for i := range int64(clients) {
		w := s.connect(10 + i)
		for n := range nodes {
			w.read(wire.OpGetData, &wire.PathWatchRequest{Path: fmt.Sprintf("/p/%d", n), Watch: true})
		}
		w.read(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/p", Watch: true})
	}
	r := c.multi(ops...)
	s.wantOK(r, "delete")
	if len(r.Events) > limit || len(r.Cut) == 0 {
		t.Errorf("got %d events and %d connections cut", len(r.Events), len(r.Cut))
	}
	s.wantSound()
	for i := range tree.WatcherID(clients) {
		s.tree.RemoveWatcher(10+i, 2*nodes)
	}
	if s.tree.WatchCount() != 0 {
		t.Errorf("got %d watches, want none", s.tree.WatchCount())
	}
}

func (s *server) wantEventCount(r tree.Result, events, cut int) {
	s.t.Helper()
	slices.Sort(r.Cut)
	if len(r.Events) != events || len(slices.Compact(r.Cut)) != cut || len(r.Cut) != cut {
		s.t.Errorf("got %d events and %d connections cut, want %d and %d", len(r.Events), len(r.Cut), events, cut)
	}
}

func TestDeepPathsCostTheirLengthAndNoMore(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c, w := s.connect(1), s.connect(2)
	c.mk("/zookeeper/quota/a", 0)
	s.wantOK(c.create("/zookeeper/quota/a/zookeeper_limits", "=;countHardLimit=1000000", 0), "create limits")
	s.want(w.addWatch("/a", wire.WatchPersistentRecursive), wire.OK, "addWatch")
	var path strings.Builder
	const depth = 5000
	for range depth {
		path.WriteString("/a")
		c.mk(path.String(), 0)
	}
	var ops []wire.SubRequest
	for range 500 {
		ops = append(ops, sub(wire.OpSetData, &wire.SetDataRequest{Path: path.String(), Version: -1}))
	}
	if r := c.multi(ops...); len(r.Events) != len(ops) {
		t.Errorf("got %d events, want %d", len(r.Events), len(ops))
	}
	got, code, _ := w.read(wire.OpGetAllChildren, &wire.PathRequest{Path: "/a"})
	if code != wire.OK || got.(*wire.CountResponse).Count != depth-1 {
		t.Errorf("got %v %v, want %d", got, code, depth-1)
	}
}

func TestCountOfDescendantsIsTakenInPieces(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/n", 0)
	for i := range 10 {
		c.mk(fmt.Sprintf("/n/%d", i), 0)
		for k := range 10 {
			c.mk(fmt.Sprintf("/n/%d/%d", i, k), 0)
		}
	}
	walk, code := s.tree.Walk(c.Caller, &wire.PathRequest{Path: "/n"})
	s.want(code, wire.OK, "walk")
	steps := 1
	for ; !walk.Step(10); steps++ {
		s.wantOK(c.set("/n/1/1", "x", -1), "set")
	}
	if got := walk.Answer().(*wire.CountResponse).Count; got != 110 || steps < 10 {
		t.Errorf("got %d in %d steps, want 110 in more than ten", got, steps)
	}
}
