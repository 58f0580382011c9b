package tree_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestDeleteChecksInZooKeepersOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	c.mk("/p/full", 0)
	c.mk("/p/full/x", 0)
	c.mk("/closed", 0)
	c.mk("/closed/x", 0)
	s.wantOK(c.setACL("/closed", readOnlyACL, -1), "setACL")
	for _, row := range []struct {
		path    string
		version int32
		want    wire.Code
	}{
		{"/none/x", -1, wire.NoNode},
		{"/closed/none", -1, wire.NoAuth},
		{"/closed/x", 5, wire.NoAuth},
		{"/p/none", 5, wire.NoNode},
		{"/p/full", 5, wire.BadVersion},
		{"/p/full", -2, wire.BadVersion},
		{"/p/full", 0, wire.NotEmpty},
		{"/p/full", -1, wire.NotEmpty},
		{"/p/full/x", 1, wire.BadVersion},
		{"/p/full/x", 0, wire.OK},
		{"/p/full", -1, wire.OK},
	} {
		s.want(c.remove(row.path, row.version).Code, row.want, fmt.Sprint("delete ", row.path, " ", row.version))
	}
	s.wantSound()
}

func TestSetDataChangesOnlyVersionMzxidAndMtime(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	c.mk("/p/n", 0)
	parent, want := s.stat("/p"), s.stat("/p/n")
	for i, data := range []string{"ab", "ab", ""} {
		r := c.set("/p/n", data, int32(i))
		s.wantOK(r, "setData")
		want.Version, want.Mzxid, want.Mtime, want.DataLength = int32(i+1), s.zxid, s.now, int32(len(data))
		if got := r.Body.(*wire.StatResponse).Stat; got != want || s.stat("/p/n") != want {
			t.Errorf("step %d: got %+v, want %+v", i, got, want)
		}
	}
	if got := s.stat("/p"); got != parent {
		t.Errorf("parent: got %+v, want %+v", got, parent)
	}
	s.wantOK(c.set("/", "root", -1), "setData of the root")
	s.wantSound()
}

func TestSetDataChecksInZooKeepersOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/n", 0)
	c.mk("/closed", 0)
	s.wantOK(c.setACL("/closed", readOnlyACL, -1), "setACL")
	for _, row := range []struct {
		path    string
		version int32
		want    wire.Code
	}{
		{"/n/", 0, wire.BadArguments},
		{"/none", 7, wire.NoNode},
		{"/closed", 7, wire.NoAuth},
		{"/zookeeper/config", -1, wire.NoAuth},
		{"/n", 7, wire.BadVersion},
		{"/n", -2, wire.BadVersion},
		{"/n", math.MinInt32, wire.BadVersion},
		{"/n", 0, wire.OK},
		{"/n", 0, wire.BadVersion},
		{"/n", -1, wire.OK},
		{"/n", 2, wire.OK},
	} {
		s.want(c.set(row.path, "x", row.version).Code, row.want, fmt.Sprint("setData ", row.path, " ", row.version))
	}
	s.wantSound()
}

func TestSetACLChangesOnlyAversion(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/n", 0)
	want := s.stat("/n")
	c.get("/n", true)
	c.children("/n", true)
	r := c.setACL("/n", []wire.ACL{{Perms: 31, ID: wire.ID{Scheme: "ip", ID: "127.0.0.1"}}}, 0)
	s.wantOK(r, "setACL")
	s.wantEvents(r.Events)
	want.Aversion = 1
	if got := r.Body.(*wire.StatResponse).Stat; got != want || s.stat("/n") != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.want(c.setACL("/n", openACL, 0).Code, wire.BadVersion, "old version of the list")
	s.wantOK(c.setACL("/n", openACL, -1), "any version of the list")
	s.wantSound()
}

func TestSetACLChecksInZooKeepersOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/closed", 0)
	s.wantOK(c.setACL("/closed", readOnlyACL, -1), "setACL")
	invalid := []wire.ACL{{Perms: 31, ID: wire.ID{Scheme: "world", ID: "somebody"}}}
	for _, row := range []struct {
		path string
		acl  []wire.ACL
		want wire.Code
	}{
		{"/none/", invalid, wire.BadArguments},
		{"/none", invalid, wire.InvalidACL},
		{"/none", nil, wire.InvalidACL},
		{"/none", openACL, wire.NoNode},
		{"/closed", openACL, wire.NoAuth},
	} {
		s.want(c.setACL(row.path, row.acl, 99).Code, row.want, "setACL "+row.path)
	}
	s.wantSound()
}

func TestEveryWriteUsesAZxid(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, write := range []func() tree.Result{
		func() tree.Result { return c.set("/none", "", -1) },
		func() tree.Result { return c.multi(sub(wire.OpDelete, &wire.DeleteRequest{Path: "/none"})) },
		func() tree.Result { return c.multi() },
		func() tree.Result { return c.create("/a", "", 0) },
		func() tree.Result { return s.close(99) },
	} {
		write()
		if s.tree.Zxid() != s.zxid {
			t.Errorf("got zxid %d, want %d", s.tree.Zxid(), s.zxid)
		}
	}
	c.get("/a", false)
	if s.tree.Zxid() != s.zxid {
		t.Error("a read changed the zxid")
	}
}

func TestVersionsWrap(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	record := tree.AppendNode(nil, &tree.Node{
		Version: math.MaxInt32, Aversion: math.MaxInt32, Creates: math.MinInt32,
		ACL: openACL,
	})
	s.store.meta["/n"] = record
	var err error
	if s.tree, _, err = s.store.load(s.cfg, s.zxid); err != nil {
		t.Fatal(err)
	}
	s.wantOK(c.set("/n", "", math.MaxInt32), "setData")
	s.wantOK(c.setACL("/n", openACL, math.MaxInt32), "setACL")
	st := s.stat("/n")
	if st.Version != math.MinInt32 || st.Aversion != math.MinInt32 || st.Cversion != 0 {
		t.Errorf("got %+v", st)
	}
	s.wantSound()
}

func TestWriteRefusesOtherOperations(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for op := wire.Op(-12); op < 120; op++ {
		req := wire.NewRequest(op)
		if !tree.IsWrite(op) {
			s.want(c.write(op, req).Code, wire.Unimplemented, op.String())
		}
		if !tree.IsRead(op) {
			_, code, _ := c.read(op, req)
			s.want(code, wire.Unimplemented, op.String())
		}
		if tree.IsRead(op) && tree.IsWrite(op) {
			t.Errorf("%v is both a read and a write", op)
		}
	}
}

func TestWrongRecordsAreMalformedAndDoNotPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	records := []wire.Record{
		nil, (*wire.CreateRequest)(nil), (*wire.CreateTTLRequest)(nil), (*wire.DeleteRequest)(nil),
		(*wire.SetDataRequest)(nil),
		(*wire.SetACLRequest)(nil), (*wire.MultiRequest)(nil), (*wire.PathRequest)(nil), (*wire.PathWatchRequest)(nil),
		(*wire.SetWatchesRequest)(nil), (*wire.AddWatchRequest)(nil), (*wire.WatcherTypeRequest)(nil),
		(*wire.EphemeralsRequest)(nil),
		(*wire.CheckRequest)(nil), &wire.Stat{},
	}
	for op := wire.Op(-12); op < 120; op++ {
		for _, r := range records {
			for _, caller := range []*tree.Caller{c.Caller, nil} {
				s.zxid++
				res := s.done(s.tree.Write(s.zxid, s.now, caller, op, r))
				if res.Code == wire.OK && op != wire.OpCloseSession {
					t.Errorf("write %v with %T: got success, want an error", op, r)
				}
				if _, code, _ := s.tree.Read(caller, op, r); code == wire.OK && op != wire.OpWhoAmI {
					t.Errorf("read %v with %T: got success, want an error", op, r)
				}
				tree.DependsOn(op, r, func(string) bool { return true })
			}
			// In a multi it makes the whole multi malformed.
			if op != wire.OpCloseSession {
				res := c.multi(sub(op, r))
				s.want(res.Code, wire.MarshallingError, fmt.Sprintf("multi with %v and %T", op, r))
			}
		}
		if op == wire.OpCloseSession {
			s.connect(1)
		}
	}
	s.wantSound()
}
