package tree_test

import (
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func ttlRequest(path string, flags int32, life int64) *wire.CreateTTLRequest {
	return &wire.CreateTTLRequest{CreateRequest: *createRequest(path, "", flags), TTL: life}
}

func TestCreateChecksModeFirst(t *testing.T) {
	t.Parallel()
	const (
		ok, bad, unimplemented = wire.OK, wire.BadArguments, wire.Unimplemented
		maxTTL                 = int64(wire.MaxTTL)
	)
	for _, row := range []struct {
		name    string
		op      wire.Op
		flags   int32
		ttl     int64
		off, on wire.Code // extended types disabled, enabled
	}{
		{"flags below", wire.OpCreate, -1, 0, bad, bad},
		{"flags above", wire.OpCreate, 7, 0, bad, bad},
		{"flags far above", wire.OpCreate2, 1 << 30, 0, bad, bad},
		{"container flag on create", wire.OpCreate, 4, 0, ok, ok},
		{"ttl flag on create", wire.OpCreate, 5, 0, unimplemented, bad},
		{"ttl flag on create2", wire.OpCreate2, 6, 0, unimplemented, bad},
		{"ttl flag on createContainer", wire.OpCreateContainer, 5, 0, unimplemented, bad},
		{"container with flag 0", wire.OpCreateContainer, 0, 0, ok, ok},
		{"container with flag 1", wire.OpCreateContainer, 1, 0, ok, ok},
		{"container with flag 4", wire.OpCreateContainer, 4, 0, ok, ok},
		{"createTTL with flag 0", wire.OpCreateTTL, 0, 1, bad, bad},
		{"createTTL with flag 4", wire.OpCreateTTL, 4, 1, bad, bad},
		{"createTTL with flag 0 and no ttl", wire.OpCreateTTL, 0, -1, bad, bad},
		{"ttl 0", wire.OpCreateTTL, 5, 0, unimplemented, bad},
		{"ttl negative", wire.OpCreateTTL, 5, -1, unimplemented, bad},
		{"ttl 1", wire.OpCreateTTL, 5, 1, unimplemented, ok},
		{"ttl at most", wire.OpCreateTTL, 6, maxTTL, unimplemented, ok},
		{"ttl above", wire.OpCreateTTL, 5, maxTTL + 1, unimplemented, bad},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for extended, want := range map[bool]wire.Code{false: row.off, true: row.on} {
				s := newServer(t, tree.Config{ExtendedTypes: extended})
				c := s.connect(1)
				var req wire.Record = createRequest("/n", "", row.flags)
				if row.op == wire.OpCreateTTL {
					req = ttlRequest("/n", row.flags, row.ttl)
				}
				s.want(c.write(row.op, req).Code, want, row.name)
				s.wantSound()
			}
		})
	}
}

func TestCreateChecksInZooKeepersOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	admin, c := s.connect(1), s.connect(2)
	admin.Super = true
	admin.mk("/closed", 0)
	admin.mk("/closed/there", 0)
	s.wantOK(admin.setACL("/closed", readOnlyACL, -1), "setACL")
	admin.mk("/e", 1)
	s.wantOK(admin.setACL("/e", openACL, -1), "setACL")
	invalid := []wire.ACL{{Perms: 31, ID: wire.ID{Scheme: "nobody", ID: "x"}}}
	for _, row := range []struct {
		name  string
		path  string
		flags int32
		acl   []wire.ACL
		want  wire.Code
	}{
		{"flags before path", "nonsense", 9, invalid, wire.BadArguments},
		{"slash before acl", "nonsense", 0, invalid, wire.BadArguments},
		{"NUL before acl", "/\x00", 0, invalid, wire.BadArguments},
		{"acl before parent", "/none/x", 0, invalid, wire.InvalidACL},
		{"null acl", "/none/x", 0, nil, wire.InvalidACL},
		{"parent before its rights", "/none/x", 0, openACL, wire.NoNode},
		{"rights before the path's rules", "/closed/\x01", 0, openACL, wire.NoAuth},
		{"rights before existence", "/closed/there", 0, openACL, wire.NoAuth},
		{"path's rules before ephemeral parent", "/e/\x01", 0, openACL, wire.BadArguments},
		{"ephemeral parent", "/e/x", 0, openACL, wire.NoChildrenForEphemerals},
		{"existence", "/e", 0, openACL, wire.NodeExists},
	} {
		r := c.write(wire.OpCreate, &wire.CreateRequest{Path: row.path, ACL: row.acl, Flags: row.flags})
		s.want(r.Code, row.want, row.name)
	}
	s.close(2)
	s.want(c.create("nonsense", "", 0).Code, wire.SessionExpired, "session before path")
	s.want(c.create("nonsense", "", 9).Code, wire.BadArguments, "flags before session")
	s.wantSound()
}

func TestCreateSetsTheStat(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(7)
	for _, row := range []struct {
		name  string
		op    wire.Op
		req   wire.Record
		owner int64
	}{
		{"persistent", wire.OpCreate2, createRequest("/persistent", "abc", 0), 0},
		{"ephemeral", wire.OpCreate2, createRequest("/ephemeral", "abc", 1), 7},
		{"container", wire.OpCreateContainer, createRequest("/container", "abc", 4), 0},
		{"ephemeral flag on container", wire.OpCreateContainer, createRequest("/container2", "abc", 1), 0},
		{"ttl", wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: *createRequest("/ttl", "abc", 5), TTL: 9}, 0},
	} {
		r := c.write(row.op, row.req)
		s.wantOK(r, row.name)
		b, ok := r.Body.(*wire.Create2Response)
		if !ok {
			t.Fatalf("%s: got an answer of type %T", row.name, r.Body)
		}
		want := wire.Stat{
			Czxid: s.zxid, Mzxid: s.zxid, Pzxid: s.zxid, Ctime: s.now, Mtime: s.now,
			EphemeralOwner: row.owner, DataLength: 3,
		}
		if b.Stat != want || s.stat(b.Path) != want {
			t.Errorf("%s: got %+v, want %+v", row.name, b.Stat, want)
		}
	}
	if r := c.write(wire.OpCreate, createRequest("/one", "", 0)); r.Body.(*wire.PathResponse).Path != "/one" {
		t.Errorf("create: got answer %+v", r.Body)
	}
	s.wantSound()
}

func TestContainerWithSequentialFlagIsNumbered(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	r := c.write(wire.OpCreateContainer, createRequest("/box", "", 2))
	s.wantOK(r, "createContainer")
	path := r.Body.(*wire.Create2Response).Path
	if path != "/box0000000000" {
		t.Fatalf("got container %s", path)
	}
	c.mk(path+"/x", 0)
	s.wantOK(c.remove(path+"/x", -1), "delete")
	if got := s.tree.AllContainers(s.now); len(got) != 1 || got[0] != path {
		t.Errorf("got collectable %v", got)
	}
}

func TestCreateChangesOnlyCountersOfTheParent(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	want := s.stat("/p")
	for i, step := range []func(){
		func() { c.mk("/p/a", 0) },
		func() { c.mk("/p/b", 1) },
		func() { s.wantOK(c.remove("/p/a", -1), "delete") },
		func() { s.close(1) },
	} {
		step()
		// Clients see a Cversion that counts every create and every delete of a child.
		want.Cversion = int32(i + 1)
		want.Pzxid = s.zxid
		want.NumChildren = []int32{1, 2, 1, 0}[i]
		if got := s.stat("/p"); got != want {
			t.Errorf("step %d: got %+v, want %+v", i, got, want)
		}
	}
	s.wantSound()
}

func TestOnlyEphemeralNodesRefuseChildren(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	s.wantOK(c.write(wire.OpCreateContainer, createRequest("/box", "", 4)), "createContainer")
	s.wantOK(c.write(wire.OpCreateTTL, ttlRequest("/ttl", 5, 10)), "createTTL")
	c.mk("/e", 1)
	c.mk("/box/x", 1)
	c.mk("/ttl/x", 0)
	s.want(c.create("/e/x", "", 1).Code, wire.NoChildrenForEphemerals, "child of an ephemeral")
	s.wantSound()
}

func TestNullDataIsNotEmptyData(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	frame := []byte("frame")
	for path, data := range map[string][]byte{"/null": nil, "/empty": frame[:0], "/full": frame} {
		s.wantOK(c.write(wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: openACL}), "create")
	}
	copy(frame, "XXXXX")
	check := func(path string, null bool, want string) {
		t.Helper()
		r, code := c.get(path, false)
		if code != wire.OK || (r.Data == nil) != null || string(r.Data) != want || int(r.Stat.DataLength) != len(want) {
			t.Errorf("%s: got %q (null %t) %v", path, r.Data, r.Data == nil, code)
		}
	}
	check("/null", true, "")
	check("/empty", false, "")
	check("/full", false, "frame")
	s.wantSound()
	// setData changes between all of them.
	for _, data := range [][]byte{nil, {}, []byte("x"), {}, nil, []byte("y"), nil} {
		s.wantOK(c.write(wire.OpSetData, &wire.SetDataRequest{Path: "/null", Data: data, Version: -1}), "setData")
		check("/null", data == nil, string(data))
		s.wantSound()
	}
	s.wantOK(c.write(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: nil, Version: -1}), "setData of the root")
	check("/", true, "")
	s.wantSound()
}

func TestVeryDeepPathsWork(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	path := ""
	for range 2000 {
		path += "/d"
		c.mk(path, 0)
	}
	body, code, _ := c.read(wire.OpGetAllChildren, &wire.PathRequest{Path: "/d"})
	if code != wire.OK || body.(*wire.CountResponse).Count != 1999 {
		t.Errorf("descendants: got %v %v", body, code)
	}
	for path != "" {
		s.wantOK(c.remove(path, -1), "delete")
		path = path[:strings.LastIndexByte(path, '/')]
	}
	s.wantSound()
}
