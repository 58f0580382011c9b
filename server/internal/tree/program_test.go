package tree_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// program makes random requests on few paths, so that requests affect each other.
type program struct {
	*rand.Rand
}

func pick[T any](p program, from ...T) T { return from[p.IntN(len(from))] }

func (p program) path() string {
	switch p.IntN(40) {
	case 0:
		return pick(p, "", "a", "/a/", "//", "/a//b", "/\x01", "/a/..", "/a\x00", "/zookeeper", "/zookeeper/config",
			"/zookeeper/q")
	case 1:
		return "/"
	case 2, 3:
		return pick(p, "/a", "/b") + fmt.Sprintf("/s%010d", p.IntN(4))
	}
	parts := []string{"", pick(p, "a", "b", "c")}
	for p.IntN(3) == 0 {
		parts = append(parts, pick(p, "a", "b", "s"))
	}
	return strings.Join(parts, "/")
}

func (p program) data() []byte { return pick(p, nil, []byte{}, []byte("x"), []byte("yy")) }

func (p program) version() int32 { return pick[int32](p, -1, -1, -1, 0, 1, 2, -2) }

func (p program) acl() []wire.ACL {
	return pick(p, openACL, openACL, openACL, openACL, openACL, readOnlyACL, creatorACL, nil,
		[]wire.ACL{entry(31, alice)}, []wire.ACL{entry(31, alice), entry(1, bob), entry(31, alice)},
		[]wire.ACL{entry(wire.PermAll&^wire.PermRead, world)}, []wire.ACL{entry(1, wire.ID{Scheme: "none"})})
}

// one makes an operation that is allowed in a multi.
func (p program) one() (wire.Op, wire.Record) {
	switch p.IntN(10) {
	case 0, 1, 2, 3:
		r := wire.CreateRequest{
			Path: p.path(), Data: p.data(), ACL: p.acl(),
			Flags: pick[int32](p, 0, 0, 0, 1, 2, 3, 4),
		}
		if p.IntN(2) == 0 && r.Flags&2 != 0 {
			r.Path = pick(p, "/a/s", "/b/s")
		}
		op := pick(p, wire.OpCreate, wire.OpCreate2, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL)
		if op == wire.OpCreateTTL {
			r.Flags = pick[int32](p, 5, 6, 5, 0)
			return op, &wire.CreateTTLRequest{CreateRequest: r, TTL: pick[int64](p, 1, 100, 1000, 0, -1, 1<<40)}
		}
		return op, &r
	case 4, 5:
		return wire.OpDelete, &wire.DeleteRequest{Path: p.path(), Version: p.version()}
	case 6, 7:
		return wire.OpSetData, &wire.SetDataRequest{Path: p.path(), Data: p.data(), Version: p.version()}
	default:
		return wire.OpCheck, &wire.CheckRequest{Path: p.path(), Version: p.version()}
	}
}

func (p program) write() (wire.Op, wire.Record) {
	switch n := p.IntN(20); {
	case n < 4:
		r := &wire.MultiRequest{}
		for range p.IntN(5) {
			op, req := p.one()
			r.Ops = append(r.Ops, sub(op, req))
		}
		return wire.OpMulti, r
	case n < 6:
		return wire.OpSetACL, &wire.SetACLRequest{Path: p.path(), ACL: p.acl(), Version: p.version()}
	}
	for {
		if op, req := p.one(); op != wire.OpCheck {
			return op, req
		}
	}
}

// answer formats a body as the model does.
func answer(body wire.Record) string {
	switch b := body.(type) {
	case *wire.PathResponse:
		return b.Path
	case *wire.Create2Response:
		return b.Path + " " + fmt.Sprint(b.Stat)
	case *wire.StatResponse:
		return fmt.Sprint(b.Stat)
	case *wire.MultiResponse:
		var lines []string
		for _, r := range b.Results {
			line := fmt.Sprintf("%d ", r.Err)
			switch r.Op {
			case wire.OpCreate:
				line += r.Path
			case wire.OpCreate2:
				line += r.Path + " " + fmt.Sprint(r.Stat)
			case wire.OpSetData:
				line += fmt.Sprint(r.Stat)
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "|")
	}
	return ""
}

// comparison runs one program on a tree and on the model, and compares every answer.
type comparison struct {
	*server
	program
	m       *model
	clients map[int64]*client
	log     []string
}

const comparedSessions = 4

func newComparison(t *testing.T, seed uint64) *comparison {
	t.Helper()
	w := &comparison{
		server: newServer(t, tree.Config{ExtendedTypes: true}), program: program{rand.New(rand.NewPCG(seed, 1))},
		m:       newModel(),
		clients: map[int64]*client{},
	}
	for id := range int64(comparedSessions) {
		w.open(id + 1)
	}
	return w
}

func (w *comparison) open(id int64) {
	c := w.connect(id)
	switch id {
	case 1, 2:
		c.IDs = append(c.IDs, alice)
	case 3:
		c.IDs = append(c.IDs, bob)
	default:
		c.Super = true
	}
	w.clients[id], w.m.sessions[id] = c, true
	w.m.zxid = w.zxid
}

func (w *comparison) fatal(what string, got, want any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s:\ngot  %v\nwant %v", strings.Join(w.log[max(0, len(w.log)-12):], "\n"), what, got, want)
}

func (w *comparison) write(c *client, op wire.Op, req wire.Record) {
	w.t.Helper()
	w.log = append(w.log, fmt.Sprintf("%d: session %d %v %+v", w.zxid+1, c.Session, op, req))
	before, order := w.tree.Dump(), w.tree.DumpOrder()
	r := c.write(op, req)
	w.m.zxid, w.m.at, w.m.fired = w.zxid, w.now, nil
	body, code := w.m.write(c, op, req, w.clients)
	if r.Code != code {
		w.fatal("code", r.Code, code)
	}
	if got := answer(r.Body); got != body {
		w.fatal("answer", got, body)
	}
	w.compareEvents(op, r.Events)
	failed := code != wire.OK || strings.Contains(body, "-") && op == wire.OpMulti && len(r.Changes) == 0
	if failed {
		// Nothing but the zxid may have changed.
		after := strings.TrimPrefix(w.tree.Dump(), fmt.Sprintf("zxid %d", w.zxid))
		if before = strings.TrimPrefix(before, fmt.Sprintf("zxid %d", w.zxid-1)); after != before {
			w.fatal("tree after a refused write", after, before)
		}
		if got := w.tree.DumpOrder(); got != order {
			w.fatal("order after a refused write", got, order)
		}
	}
}

// compareEvents compares each connection's events in order. A session's nodes are deleted in no particular order.
func (w *comparison) compareEvents(op wire.Op, events []tree.Fired) {
	w.t.Helper()
	got, want := map[int64][]string{}, map[int64][]string{}
	for _, e := range events {
		got[int64(e.Watcher)] = append(got[int64(e.Watcher)], fmt.Sprint(e.Event.Type, e.Event.Path, e.Zxid))
	}
	for _, e := range w.m.fired {
		want[e.to] = append(want[e.to], fmt.Sprint(e.typ, e.path, e.zxid))
	}
	if op == wire.OpCloseSession {
		for _, lines := range []map[int64][]string{got, want} {
			for _, l := range lines {
				slices.Sort(l)
			}
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		w.fatal("events", got, want)
	}
}

func (w *comparison) read(c *client) {
	w.t.Helper()
	path, watch := w.path(), w.IntN(2) == 0
	w.log = append(w.log, fmt.Sprintf("session %d reads and watches (%t) %q", c.Session, watch, path))
	n, ok := w.m.nodes[path]
	if path == "" {
		n, ok = w.m.nodes["/"], true
	}
	code := wire.OK
	switch {
	case !ok:
		code = wire.NoNode
	case !modelMay(c, n.acl, wire.PermRead):
		code = wire.NoAuth
	}
	key := path
	if key == "" {
		key = "/"
	}
	switch w.IntN(8) {
	case 0, 1:
		if strings.Contains(path, "\x00") {
			return
		}
		if got := c.exists(path, watch); got != code {
			w.fatal("exists", got, code)
		}
		if watch && code != wire.NoAuth {
			w.m.watch(modelWatch{path, c.Session, false, "standard"})
		}
	case 2, 3:
		r, got := c.get(path, watch)
		if got != code || code == wire.OK && (r.Stat != w.m.stat(key) || string(r.Data) != string(n.data) ||
			(r.Data == nil) != (n.data == nil)) {
			w.fatal("getData", fmt.Sprint(r, got), fmt.Sprint(n, code))
		}
		if watch && code == wire.OK {
			w.m.watch(modelWatch{path, c.Session, false, "standard"})
		}
	case 4, 5:
		names, got := c.children(path, watch)
		if got != code || code == wire.OK && !slices.Equal(names, w.m.children(key)) {
			w.fatal("getChildren", fmt.Sprint(names, got), fmt.Sprint(w.m.children(key), code))
		}
		if watch && code == wire.OK {
			w.m.watch(modelWatch{path, c.Session, true, "standard"})
		}
	case 6:
		if w.IntN(4) > 0 {
			return
		}
		c.addWatch(path, 0)
		w.m.watch(modelWatch{path, c.Session, false, "persistent"})
		w.m.watch(modelWatch{path, c.Session, true, "persistent"})
	default:
		if w.IntN(4) > 0 {
			return
		}
		c.addWatch(path, 1)
		w.m.watch(modelWatch{path, c.Session, false, "recursive"})
	}
}

func (w *comparison) step() {
	w.t.Helper()
	c := w.clients[int64(w.IntN(comparedSessions))+1]
	switch n := w.IntN(100); {
	case n < 50:
		op, req := w.program.write()
		w.write(c, op, req)
	case n < 95:
		w.read(c)
	case n < 97:
		// The session ends but its connection goes on. Its writes are refused until the session is opened again.
		w.write(c, wire.OpCloseSession, &wire.Empty{})
	case n < 98:
		w.log = append(w.log, fmt.Sprintf("connection %d goes", c.Session))
		w.tree.RemoveWatcher(c.Watcher, 1000)
		w.m.watches = slices.DeleteFunc(w.m.watches, func(x modelWatch) bool { return x.watcher == c.Session })
	case n < 99:
		w.collect()
	default:
		if !w.m.sessions[c.Session] {
			w.log = append(w.log, fmt.Sprintf("session %d opens", c.Session))
			ids, super := c.IDs, c.Super
			w.connect(c.Session)
			c.IDs, c.Super = ids, super
			w.m.sessions[c.Session] = true
		}
	}
}

func (w *comparison) collect() {
	w.t.Helper()
	var want []string
	for path, n := range w.m.nodes {
		if len(w.m.children(path)) == 0 && (n.kind == "container" && n.creates > 0 || n.kind == "ttl" &&
			w.now-n.stat.Mtime > n.lifetime) {
			want = append(want, path)
		}
	}
	slices.Sort(want)
	got := w.tree.AllContainers(w.now)
	if !slices.Equal(got, want) {
		w.fatal("collectable", got, want)
	}
	for _, path := range got {
		w.log = append(w.log, "collect "+path)
		r := w.server.collect(path)
		w.wantOK(r, "collect "+path)
		w.m.zxid, w.m.fired = w.zxid, nil
		w.m.remove(path, w.clients)
		w.compareEvents(wire.OpDeleteContainer, r.Events)
	}
}

func (w *comparison) compareTrees() {
	w.t.Helper()
	if w.tree.NodeCount() != len(w.m.nodes) {
		w.fatal("nodes", w.tree.NodeCount(), len(w.m.nodes))
	}
	for path := range w.m.nodes {
		if got := w.stat(path); got != w.m.stat(path) {
			w.fatal("stat of "+path, got, w.m.stat(path))
		}
	}
	w.wantSound()
}

func TestRandomProgramsAnswerAsTheModelDoes(t *testing.T) {
	t.Parallel()
	programs, steps := 60, 400
	if testing.Short() {
		programs = 10
	}
	for seed := range programs {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			w := newComparison(t, uint64(seed))
			for i := range steps {
				w.step()
				if i%50 == 0 {
					w.compareTrees()
				}
			}
			w.compareTrees()
		})
	}
}
