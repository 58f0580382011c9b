package tree_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestCloseDeletesTheSessionsNodesInOneTransaction(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	a, b := s.connect(1), s.connect(2)
	a.mk("/p", 0)
	for _, path := range []string{"/p/x", "/p/y", "/z"} {
		a.mk(path, 1)
	}
	b.mk("/p/b", 1)
	b.exists("/p/y", true)
	b.children("/p", true)
	b.children("/", true)
	r := a.write(wire.OpCloseSession, &wire.Empty{})
	s.wantOK(r, "closeSession")
	if r.Body != nil {
		t.Errorf("closeSession: got answer %+v, want none", r.Body)
	}
	if names, _ := b.children("/p", false); !slices.Equal(names, []string{"b"}) {
		t.Errorf("got nodes %v below /p", names)
	}
	s.want(b.exists("/z", false), wire.NoNode, "exists")
	if st := s.stat("/p"); st.Pzxid != s.zxid || st.NumChildren != 1 {
		t.Errorf("got parent %+v", st)
	}
	count := map[wire.EventType]int{}
	for _, e := range r.Events {
		count[e.Event.Type]++
		if e.Zxid != s.zxid || e.Watcher != 2 {
			t.Errorf("got event %+v", e)
		}
	}
	if count[wire.EventDeleted] != 1 || count[wire.EventChildrenChanged] != 2 || len(r.Events) != 3 {
		t.Errorf("got events %+v", r.Events)
	}
	if _, ok := s.tree.SessionTimeout(1); ok || s.tree.SessionCount() != 1 {
		t.Error("the session still exists")
	}
	s.want(s.close(1).Code, wire.SessionExpired, "second close")
	s.wantSound()
}

func TestRecreatedEphemeralBelongsToItsNewOwner(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	a, b := s.connect(1), s.connect(2)
	a.mk("/e", 1)
	s.wantOK(b.remove("/e", -1), "delete")
	b.mk("/e", 1)
	s.wantOK(s.close(1), "close of the old owner")
	if got := s.stat("/e").EphemeralOwner; got != 2 {
		t.Errorf("got owner %d, want 2", got)
	}
	s.wantSound()
	s.wantOK(s.close(2), "close of the new owner")
	if _, ok := s.tree.Stat("/e"); ok {
		t.Error("the node still exists after its session")
	}
	s.wantSound()
}

func TestClosedSessionCannotWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, other := s.connect(1), s.connect(2)
	other.mk("/n", 0)
	s.close(1)
	s.want(c.create("/x", "", 1).Code, wire.SessionExpired, "create")
	s.want(c.remove("/n", -1).Code, wire.SessionExpired, "delete")
	s.want(c.set("/n", "", -1).Code, wire.SessionExpired, "setData")
	s.want(c.setACL("/n", openACL, -1).Code, wire.SessionExpired, "setACL")
	s.want(c.write(wire.OpCloseSession, &wire.Empty{}).Code, wire.SessionExpired, "closeSession")
	got := results(t, c.multi(sub(wire.OpCheck, &wire.CheckRequest{Path: "/n", Version: -1})))
	if !slices.Equal(codes(got), []wire.Code{wire.SessionExpired}) {
		t.Errorf("multi: got %+v", got)
	}
	s.wantSound()
}

func TestSessionsAreListedWithTheirTimeouts(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	for id, timeout := range map[int64]int32{5: 100, -3: 200, 1 << 60: 300} {
		s.zxid++
		s.done(s.tree.CreateSession(s.zxid, id, timeout))
	}
	s.zxid++
	s.done(s.tree.CreateSession(s.zxid, 5, 400))
	var got []int64
	for id, timeout := range s.tree.Sessions() {
		got = append(got, id, int64(timeout))
	}
	if want := []int64{-3, 200, 5, 400, 1 << 60, 300}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if timeout, ok := s.tree.SessionTimeout(5); !ok || timeout != 400 {
		t.Errorf("got timeout %d %t", timeout, ok)
	}
	for range s.tree.Sessions() {
		break
	}
	s.wantSound()
}

func TestNewTimeoutKeepsTheNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/e", 1)
	s.connect(1)
	s.wantSound()
	s.close(1)
	s.want(c.exists("/e", false), wire.NoNode, "exists")
}

func TestSessionWithVeryManyNodesEnds(t *testing.T) {
	t.Parallel()
	const flood = 10000
	s := newServer(t, tree.Config{})
	c, other := s.connect(1), s.connect(2)
	other.mk("/q", 0)
	empty := s.tree.DataSize()
	for range flood {
		c.mk("/q/n", 3)
	}
	other.mk("/q/last", 1)
	if got := s.tree.EphemeralCount(); got != flood+1 {
		t.Errorf("got %d ephemeral nodes, want %d", got, flood+1)
	}
	r := s.close(1)
	// One change for every node, their parent and the session.
	if len(r.Changes) != flood+2 {
		t.Errorf("got %d changes, want %d", len(r.Changes), flood+2)
	}
	if names, _ := other.children("/q", false); !slices.Equal(names, []string{"last"}) {
		t.Errorf("got remaining nodes %v", names)
	}
	if got := s.tree.DataSize() - int64(len("/q/last")); got != empty {
		t.Errorf("got size %d, want %d", got, empty)
	}
	s.wantSound()
}

func TestSessionWithManyNodesEndsInPieces(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, other := s.connect(1), s.connect(2)
	c.mk("/p", 0)
	for i := range 25 {
		c.mk(fmt.Sprintf("/p/%d", i), wire.FlagEphemeral)
	}
	s.zxid++
	r, more := s.tree.EndSession(s.zxid, s.now, 1, 10)
	if s.done(r); r.Code != wire.OK || !more || s.tree.EphemeralCount() != 15 {
		t.Fatalf("first piece: got %v, more %t, %d nodes left, want 15", r.Code, more, s.tree.EphemeralCount())
	}
	s.want(c.create("/p/x", "", 0).Code, wire.SessionExpired, "create by a session that has ended")
	loaded, _, err := s.store.load(s.cfg, s.zxid)
	if err != nil || loaded.EphemeralCount() != 0 {
		t.Errorf("loaded in between: got %d nodes %v, want none", loaded.EphemeralCount(), err)
	}
	names, _ := other.children("/p", false)
	s.wantOK(other.remove("/p/"+names[0], -1), "delete of a node of the session by another")
	for pieces := 1; more; pieces++ {
		s.zxid++
		r, more = s.tree.EndSession(s.zxid, s.now, 1, 10)
		s.done(r)
		if err := s.tree.Check(); err != nil || pieces > 2 {
			t.Fatalf("piece %d: %v", pieces, err)
		}
	}
	if s.tree.EphemeralCount() != 0 || s.close(1).Code != wire.SessionExpired {
		t.Errorf("got %d nodes left, want none", s.tree.EphemeralCount())
	}
	s.wantSound()
}
