package tree_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func results(t *testing.T, r tree.Result) []wire.MultiResult {
	t.Helper()
	b, ok := r.Body.(*wire.MultiResponse)
	if r.Code != wire.OK || !ok {
		t.Fatalf("multi: got %v %+v", r.Code, r.Body)
	}
	return b.Results
}

func codes(results []wire.MultiResult) []wire.Code {
	var out []wire.Code
	for _, r := range results {
		out = append(out, r.Err)
	}
	return out
}

func TestMultiAnswersByResult(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	got := results(t, c.multi(
		sub(wire.OpCreate, createRequest("/a", "x", 0)),
		sub(wire.OpCreate2, createRequest("/b", "x", 0)),
		sub(wire.OpCreateContainer, createRequest("/c", "x", 4)),
		sub(wire.OpCreateTTL, ttlRequest("/d", 5, 100)),
		sub(wire.OpCreate, createRequest("/e", "x", 4)),
		sub(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("xyz"), Version: 0}),
		sub(wire.OpCheck, &wire.CheckRequest{Path: "/a", Version: 1}),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 1}),
	))
	want := []struct {
		op   wire.Op
		path string
		stat bool
	}{
		{wire.OpCreate, "/a", false},
		{wire.OpCreate2, "/b", true},
		{wire.OpCreate2, "/c", true},
		{wire.OpCreate2, "/d", true},
		{wire.OpCreate2, "/e", true},
		{wire.OpSetData, "", true},
		{wire.OpCheck, "", false},
		{wire.OpDelete, "", false},
	}
	for i, w := range want {
		if g := got[i]; g.Op != w.op || g.Path != w.path || (g.Stat.Czxid == s.zxid) != w.stat || g.Err != wire.OK {
			t.Errorf("result %d: got %+v, want %+v", i, g, w)
		}
	}
	if st := got[5].Stat; st.Version != 1 || st.DataLength != 3 {
		t.Errorf("setData: got stat %+v", st)
	}
	if got := results(t, c.multi()); len(got) != 0 {
		t.Errorf("empty multi: got %+v", got)
	}
	s.wantSound()
}

func TestMultiSeesItsOwnEffects(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	r := c.multi(
		sub(wire.OpCreate, createRequest("/p", "", 0)),
		sub(wire.OpCreate2, createRequest("/p/n", "", 2)),
		sub(wire.OpCreate2, createRequest("/p/n", "", 3)),
		sub(wire.OpSetData, &wire.SetDataRequest{Path: "/p", Data: []byte("1"), Version: 0}),
		sub(wire.OpCheck, &wire.CheckRequest{Path: "/p", Version: 1}),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/p/n0000000000", Version: 0}),
	)
	got := results(t, r)
	if len(got) != 6 || got[1].Path != "/p/n0000000000" || got[2].Path != "/p/n0000000001" {
		t.Errorf("got %+v", got)
	}
	if st := s.stat("/p"); st.NumChildren != 1 || st.Cversion != 3 || st.Pzxid != s.zxid || st.Version != 1 {
		t.Errorf("parent: got %+v", st)
	}
	s.wantSound()
	fails := results(t, c.multi(
		sub(wire.OpCreate, createRequest("/e", "", 1)),
		sub(wire.OpCreate, createRequest("/e/x", "", 0)),
	))
	if want := []wire.Code{wire.OK, wire.NoChildrenForEphemerals}; !slices.Equal(codes(fails), want) {
		t.Errorf("got %v, want %v", codes(fails), want)
	}
	s.wantSound()
}

func TestMultiThatDeletesAndRecreatesLeavesTheNewNode(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	s.wantOK(c.create("/a", "old", 0), "create")
	s.wantOK(c.multi(
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: -1}),
		sub(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL}),
		sub(wire.OpCreate, createRequest("/b", "x", 0)),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/b", Version: -1}),
	), "multi")
	if r, _ := c.get("/a", false); r.Data != nil || r.Stat.Czxid != s.zxid {
		t.Errorf("got %+v", r)
	}
	s.want(c.exists("/b", false), wire.NoNode, "exists /b")
	s.wantSound()
}

func TestFailedMultiNamesTheOperationThatFailed(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	mk := sub(wire.OpCreate, createRequest("/a", "", 0))
	del := sub(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1})
	check := sub(wire.OpCheck, &wire.CheckRequest{Path: "/", Version: 3})
	const rest = wire.RuntimeInconsistency
	for _, row := range []struct {
		ops  []wire.SubRequest
		want []wire.Code
	}{
		{[]wire.SubRequest{del}, []wire.Code{wire.NoNode}},
		{[]wire.SubRequest{mk, del, mk}, []wire.Code{wire.OK, wire.NoNode, rest}},
		{[]wire.SubRequest{check, mk, mk}, []wire.Code{wire.BadVersion, rest, rest}},
		{[]wire.SubRequest{mk, mk}, []wire.Code{wire.OK, wire.NodeExists}},
	} {
		r := c.multi(row.ops...)
		got := results(t, r)
		if !slices.Equal(codes(got), row.want) {
			t.Errorf("got %v, want %v", codes(got), row.want)
		}
		for i, g := range got {
			if want := (wire.MultiResult{Op: wire.OpError, Err: row.want[i]}); g.Op != want.Op || g.Err != want.Err ||
				g.Path != "" || g.Stat != (wire.Stat{}) {
				t.Errorf("entry %d: got %+v, want %+v", i, g, want)
			}
		}
		if len(r.Changes) > 0 || len(r.Events) > 0 {
			t.Errorf("failed multi: got effects %+v, want none", r)
		}
	}
	s.wantSound()
}

func TestMultiWithADisallowedOperationIsMalformed(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	good := sub(wire.OpCreate, createRequest("/a", "", 0))
	for _, bad := range []wire.SubRequest{
		sub(wire.OpExists, &wire.PathWatchRequest{Path: "/"}),
		sub(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}),
		sub(wire.OpSetACL, &wire.SetACLRequest{Path: "/", ACL: openACL, Version: -1}),
		sub(wire.OpSync, &wire.PathRequest{Path: "/"}),
		sub(wire.OpMulti, &wire.MultiRequest{}),
		sub(wire.OpCloseSession, &wire.Empty{}),
		sub(42, &wire.Empty{}),
		sub(wire.OpCreate, createRequest("/b", "", 7)),
		sub(wire.OpCreateTTL, ttlRequest("/b", -1, 5)),
		sub(wire.OpDelete, &wire.CheckRequest{Path: "/"}),
		sub(wire.OpCreate, nil),
	} {
		r := c.multi(good, bad)
		s.want(r.Code, wire.MarshallingError, bad.Op.String())
		s.want(c.exists("/a", false), wire.NoNode, "exists")
	}
	s.want(c.write(wire.OpMulti, &wire.MultiRequest{Read: true}).Code, wire.MarshallingError, "reads in a multi")
	s.wantSound()
}

func TestOnlySuccessfulMultiFiresWatches(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/a", 0)
	w.get("/a", true)
	w.exists("/b", true)
	w.children("/", true)
	before := s.tree.Dump()
	r := c.multi(
		sub(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}),
		sub(wire.OpCreate, createRequest("/b", "", 0)),
		sub(wire.OpCheck, &wire.CheckRequest{Path: "/none"}),
	)
	s.wantEvents(r.Events)
	if after := s.tree.DumpWatches(); before[len(before)-len(after):] != after {
		t.Errorf("failed multi: got changed watches\n%s", after)
	}
	r = c.multi(
		sub(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}),
		sub(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}),
		sub(wire.OpCreate, createRequest("/b", "", 0)),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: -1}),
	)
	s.wantEvents(r.Events, "2 DataChanged /a", "2 Created /b", "2 ChildrenChanged /")
	for _, e := range r.Events {
		if e.Zxid != s.zxid {
			t.Errorf("event: got zxid %d, want %d", e.Zxid, s.zxid)
		}
	}
	s.wantSound()
}

func TestMultiReadAnswersEachOnItsOwn(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	c.mk("/p/x", 0)
	s.wantOK(c.set("/p", "data", -1), "setData")
	c.mk("/closed", 0)
	s.wantOK(c.setACL("/closed", []wire.ACL{{Perms: wire.PermAdmin, ID: wire.ID{Scheme: "world", ID: "anyone"}}}, -1),
		"setACL")
	read := func(op wire.Op, path string) wire.SubRequest {
		return sub(op, &wire.PathWatchRequest{Path: path, Watch: true})
	}
	body, code, events := c.read(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: []wire.SubRequest{
		read(wire.OpGetData, "/p"), read(wire.OpGetChildren, "/none"), read(wire.OpGetChildren, "/p"),
		read(wire.OpGetData, "/closed"),
	}})
	s.want(code, wire.OK, "multiRead")
	got := body.(*wire.MultiResponse).Results
	switch {
	case len(got) != 4 || len(events) != 0:
		t.Errorf("got %+v", got)
	case got[0].Op != wire.OpGetData || string(got[0].Data) != "data" || got[0].Stat != s.stat("/p"):
		t.Errorf("getData: got %+v", got[0])
	case got[1].Op != wire.OpError || got[1].Err != wire.NoNode:
		t.Errorf("getChildren of an absent node: got %+v", got[1])
	case got[2].Op != wire.OpGetChildren || !slices.Equal(got[2].Children, []string{"x"}):
		t.Errorf("getChildren: got %+v", got[2])
	case got[3].Op != wire.OpError || got[3].Err != wire.NoAuth:
		t.Errorf("getData without permission: got %+v", got[3])
	}
	if n := s.tree.WatchCount(); n != 0 {
		t.Errorf("multiRead: got %d watches, want 0", n)
	}
	for _, ops := range [][]wire.SubRequest{
		{sub(wire.OpDelete, &wire.DeleteRequest{Path: "/p/x", Version: -1})},
		{read(wire.OpGetData, "/p"), sub(wire.OpCreate, createRequest("/b", "", 0))},
		{read(wire.OpExists, "/p")},
		{sub(wire.OpGetData, nil)},
	} {
		_, code, _ := c.read(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: ops})
		s.want(code, wire.MarshallingError, "multiRead with a foreign operation")
	}
	s.wantSound()
}
