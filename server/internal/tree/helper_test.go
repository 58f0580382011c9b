package tree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// server drives a tree as a server does: it counts zxids, keeps the time and applies changes to a store.
type server struct {
	t     testing.TB
	tree  *tree.Tree
	cfg   tree.Config
	zxid  int64
	now   int64
	store store
}

func newServer(tb testing.TB, cfg tree.Config) *server {
	tb.Helper()
	return &server{t: tb, tree: tree.New(cfg), cfg: cfg, now: 1000, store: newStore()}
}

// store applies changes to maps.
type store struct {
	meta, data map[string][]byte
	sessions   map[int64]int32
}

func newStore() store {
	return store{meta: map[string][]byte{}, data: map[string][]byte{}, sessions: map[int64]int32{}}
}

func (s *store) apply(changes []tree.Change) {
	for _, c := range changes {
		switch c.Kind {
		case tree.PutNode:
			s.meta[c.Path] = c.Value
		case tree.PutData:
			s.data[c.Path] = c.Value
		case tree.RemoveData:
			delete(s.data, c.Path)
		case tree.RemoveNode:
			delete(s.meta, c.Path)
			delete(s.data, c.Path)
		case tree.PutSession:
			s.sessions[c.Session] = c.Timeout
		case tree.RemoveSession:
			delete(s.sessions, c.Session)
		}
	}
}

func (s *store) load(cfg tree.Config, zxid int64) (*tree.Tree, []tree.Change, error) {
	l := tree.NewLoader(cfg)
	for id, timeout := range s.sessions {
		l.Session(id, timeout)
	}
	for _, path := range slices.Sorted(maps.Keys(s.meta)) {
		if err := l.Node(path, s.meta[path]); err != nil {
			return nil, nil, err
		}
	}
	for path, data := range s.data {
		if err := l.Data(path, data); err != nil {
			return nil, nil, err
		}
	}
	return l.Tree(zxid)
}

// client is one connection with a session.
type client struct {
	*tree.Caller
	s *server
}

// connect opens a session on a connection of its own. Both have the given number.
func (s *server) connect(id int64, ids ...wire.ID) *client {
	s.t.Helper()
	s.zxid++
	s.done(s.tree.CreateSession(s.zxid, id, 4000))
	return s.attach(id, tree.WatcherID(id), ids...)
}

// attach returns another connection of a session.
func (s *server) attach(id int64, w tree.WatcherID, ids ...wire.ID) *client {
	return &client{s: s, Caller: &tree.Caller{
		Session: id, Watcher: w,
		IDs: append([]wire.ID{{Scheme: "ip", ID: "127.0.0.1"}}, ids...),
	}}
}

func (s *server) done(r tree.Result) tree.Result {
	s.t.Helper()
	s.store.apply(r.Changes)
	if r.Code != wire.OK && (len(r.Changes) > 0 || len(r.Events) > 0 || r.Body != nil) {
		s.t.Fatalf("refused write %v: got effects %+v, want none", r.Code, r)
	}
	return r
}

func (s *server) close(id int64) tree.Result {
	s.t.Helper()
	s.zxid++
	return s.done(s.tree.CloseSession(s.zxid, s.now, id))
}

// collect deletes a node as the collector does.
func (s *server) collect(path string) tree.Result {
	s.t.Helper()
	s.zxid++
	return s.done(s.tree.Write(s.zxid, s.now, nil, wire.OpDeleteContainer, &wire.PathRequest{Path: path}))
}

func (c *client) write(op wire.Op, req wire.Record) tree.Result {
	c.s.t.Helper()
	c.s.zxid++
	c.s.now += 10
	return c.s.done(c.s.tree.Write(c.s.zxid, c.s.now, c.Caller, op, req))
}

func (c *client) read(op wire.Op, req wire.Record) (wire.Record, wire.Code, []tree.Fired) {
	return c.s.tree.Read(c.Caller, op, req)
}

var (
	openACL     = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
	readOnlyACL = []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
	creatorACL  = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth"}}}
)

func createRequest(path, data string, flags int32) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL, Flags: flags}
}

// create creates a node and returns the result of create2.
func (c *client) create(path, data string, flags int32) tree.Result {
	c.s.t.Helper()
	return c.write(wire.OpCreate2, createRequest(path, data, flags))
}

// mk creates a node, which must succeed, and returns its path.
func (c *client) mk(path string, flags int32) string {
	c.s.t.Helper()
	r := c.create(path, "", flags)
	c.s.want(r.Code, wire.OK, "create "+path)
	return r.Body.(*wire.Create2Response).Path
}

func (c *client) remove(path string, version int32) tree.Result {
	c.s.t.Helper()
	return c.write(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: version})
}

func (c *client) set(path, data string, version int32) tree.Result {
	c.s.t.Helper()
	return c.write(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version})
}

func (c *client) setACL(path string, acl []wire.ACL, version int32) tree.Result {
	c.s.t.Helper()
	return c.write(wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: version})
}

func (c *client) multi(ops ...wire.SubRequest) tree.Result {
	c.s.t.Helper()
	return c.write(wire.OpMulti, &wire.MultiRequest{Ops: ops})
}

func (c *client) get(path string, watch bool) (*wire.DataResponse, wire.Code) {
	body, code, _ := c.read(wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: watch})
	r, _ := body.(*wire.DataResponse)
	return r, code
}

func (c *client) exists(path string, watch bool) wire.Code {
	_, code, _ := c.read(wire.OpExists, &wire.PathWatchRequest{Path: path, Watch: watch})
	return code
}

func (c *client) children(path string, watch bool) ([]string, wire.Code) {
	body, code, _ := c.read(wire.OpGetChildren, &wire.PathWatchRequest{Path: path, Watch: watch})
	r, ok := body.(*wire.ChildrenResponse)
	if !ok {
		return nil, code
	}
	slices.Sort(r.Children)
	return r.Children, code
}

func (c *client) addWatch(path string, mode int32) wire.Code {
	_, code, _ := c.read(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode})
	return code
}

func (s *server) stat(path string) wire.Stat {
	s.t.Helper()
	st, ok := s.tree.Stat(path)
	if !ok {
		s.t.Fatalf("node %s is missing", path)
	}
	return st
}

func (s *server) want(got, want wire.Code, what string) {
	s.t.Helper()
	if got != want {
		s.t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (s *server) wantOK(r tree.Result, what string) {
	s.t.Helper()
	s.want(r.Code, wire.OK, what)
}

// wantEvents compares events with lines like "1 Created /a": connection, type and path.
func (s *server) wantEvents(got []tree.Fired, want ...string) {
	s.t.Helper()
	var lines []string
	for _, e := range got {
		if e.Event.State != wire.StateSyncConnected {
			s.t.Errorf("state of an event: got %d, want %d", e.Event.State, wire.StateSyncConnected)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s", e.Watcher, eventNames[e.Event.Type], e.Event.Path))
	}
	if !slices.Equal(lines, want) {
		s.t.Errorf("events:\ngot  %s\nwant %s", strings.Join(lines, ", "), strings.Join(want, ", "))
	}
}

var eventNames = map[wire.EventType]string{
	wire.EventCreated: "Created", wire.EventDeleted: "Deleted",
	wire.EventDataChanged: "DataChanged", wire.EventChildrenChanged: "ChildrenChanged",
}

func sub(op wire.Op, r wire.Record) wire.SubRequest { return wire.SubRequest{Op: op, Request: r} }

// wantSound checks that the tree is consistent and that the store matches it.
func (s *server) wantSound() {
	s.t.Helper()
	if err := s.tree.Check(); err != nil {
		s.t.Fatal(err)
	}
	loaded, dropped, err := s.store.load(s.cfg, s.zxid)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(dropped) > 0 {
		s.t.Fatalf("got dropped nodes %+v when loading, want none", dropped)
	}
	if err := loaded.Check(); err != nil {
		s.t.Fatal(err)
	}
	loaded.SkipWatchesOf(s.tree)
	if got, want := loaded.Dump(), s.tree.Dump(); got != want {
		s.t.Fatalf("loaded tree differs:\ngot  %s\nwant %s", got, want)
	}
}
