package tree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// model is a second implementation of the tree, as plain as possible and slow: a map of values, undo by copying, no
// indexes. It covers everything but quotas and access lists that name other schemes than world and digest.
type model struct {
	nodes    map[string]modelNode
	sessions map[int64]bool
	watches  []modelWatch
	zxid, at int64
	fired    []modelEvent // by the current operation
}

type modelNode struct {
	data     []byte
	acl      []wire.ACL
	stat     wire.Stat // without the counts
	creates  int32
	kind     string
	lifetime int64
}

type modelWatch struct {
	path    string
	watcher int64
	child   bool // in the table of children
	mode    string
}

type modelEvent struct {
	to   int64
	typ  wire.EventType
	path string
	zxid int64
}

func newModel() *model {
	m := &model{nodes: map[string]modelNode{}, sessions: map[int64]bool{}}
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		m.nodes[path] = modelNode{data: []byte{}, acl: openACL}
	}
	m.nodes["/zookeeper/config"] = modelNode{data: []byte{}, acl: readOnlyACL, stat: wire.Stat{Aversion: -1}}
	return m
}

func modelParent(path string) string {
	if i := strings.LastIndex(path, "/"); i > 0 {
		return path[:i]
	}
	return "/"
}

func (m *model) children(path string) []string {
	names := []string{}
	for p := range m.nodes {
		if p != "/" && modelParent(p) == path {
			names = append(names, p[strings.LastIndex(p, "/")+1:])
		}
	}
	slices.Sort(names)
	return names
}

func (m *model) stat(path string) wire.Stat {
	n := m.nodes[path]
	st := n.stat
	st.NumChildren = int32(len(m.children(path)))
	st.Cversion = 2*n.creates - st.NumChildren
	st.DataLength = int32(len(n.data))
	return st
}

func modelValid(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\x00\x01\uffff") {
			return false
		}
	}
	return true
}

func modelMay(c *client, acl []wire.ACL, want wire.Perms) bool {
	for _, e := range acl {
		if e.Perms&want != 0 && (e.ID == world || slices.Contains(c.IDs, e.ID)) {
			return true
		}
	}
	return c.Super
}

func modelACL(c *client, list []wire.ACL) ([]wire.ACL, bool) {
	var out []wire.ACL
	for i, e := range list {
		switch {
		case slices.Contains(list[:i], e):
		case e.ID.Scheme == "auth":
			found := false
			for _, id := range c.IDs {
				if id.Scheme == "digest" {
					out, found = append(out, wire.ACL{Perms: e.Perms, ID: id}), true
				}
			}
			if !found {
				return nil, false
			}
		case e.ID == world || e.ID.Scheme == "digest":
			out = append(out, e)
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

// fire notifies watchers of a path in one table, except those in done.
func (m *model) fire(typ wire.EventType, path string, child bool, done map[int64]bool, acl []wire.ACL,
	who map[int64]*client,
) {
	var keep []modelWatch
	tell := func(to int64) {
		if !done[to] {
			done[to] = true
			if modelMay(who[to], acl, wire.PermRead) {
				m.fired = append(m.fired, modelEvent{to: to, typ: typ, path: path, zxid: m.zxid})
			}
		}
	}
	for _, w := range m.watches {
		at := w.child == child && w.path == path
		below := w.mode == "recursive" && !child &&
			(strings.HasPrefix(path, w.path+"/") && w.path != "" || w.path == "/")
		if at || below {
			tell(w.watcher)
		}
		if !at || w.mode != "standard" {
			keep = append(keep, w)
		}
	}
	m.watches = keep
}

func (m *model) changed(typ wire.EventType, path string, n modelNode, who map[int64]*client) {
	done := map[int64]bool{}
	m.fire(typ, path, false, done, n.acl, who)
	if typ == wire.EventDeleted {
		m.fire(typ, path, true, done, n.acl, who)
	}
	if typ != wire.EventDataChanged {
		parent := modelParent(path)
		m.fire(wire.EventChildrenChanged, parent, true, map[int64]bool{}, m.nodes[parent].acl, who)
	}
}

func (m *model) watch(w modelWatch) {
	if !slices.Contains(m.watches, w) {
		m.watches = append(m.watches, w)
	}
}

// write formats its answer as "code path stat", without missing parts.
func (m *model) write(c *client, op wire.Op, req wire.Record, who map[int64]*client) (string, wire.Code) {
	alive := m.sessions[c.Session]
	switch r := req.(type) {
	case *wire.CreateRequest:
		return m.create(c, op, r, -1, who)
	case *wire.CreateTTLRequest:
		return m.create(c, op, &r.CreateRequest, r.TTL, who)
	case *wire.DeleteRequest:
		parent, there := m.nodes[modelParent(r.Path)]
		n, ok := m.nodes[r.Path]
		switch {
		case !alive:
			return "", wire.SessionExpired
		case !strings.Contains(r.Path, "/") || strings.Contains(r.Path, "\x00") || r.Path == "/" ||
			r.Path == "/zookeeper" || r.Path == "/zookeeper/quota" || r.Path == "/zookeeper/config":
			return "", wire.BadArguments
		case !there:
			return "", wire.NoNode
		case !modelMay(c, parent.acl, wire.PermDelete):
			return "", wire.NoAuth
		case !ok:
			return "", wire.NoNode
		case r.Version != -1 && r.Version != n.stat.Version:
			return "", wire.BadVersion
		case len(m.children(r.Path)) > 0:
			return "", wire.NotEmpty
		}
		m.remove(r.Path, who)
		return "", wire.OK
	case *wire.SetDataRequest:
		n, code := m.target(c, r.Path, wire.PermWrite, r.Version)
		if code != wire.OK {
			return "", code
		}
		n.data = r.Data
		n.stat.Version++
		n.stat.Mzxid, n.stat.Mtime = m.zxid, m.at
		m.nodes[r.Path] = n
		m.changed(wire.EventDataChanged, r.Path, n, who)
		return fmt.Sprint(m.stat(r.Path)), wire.OK
	case *wire.CheckRequest:
		_, code := m.target(c, r.Path, wire.PermRead, r.Version)
		return "", code
	case *wire.SetACLRequest:
		acl, ok := modelACL(c, r.ACL)
		n, there := m.nodes[r.Path]
		switch {
		case !alive:
			return "", wire.SessionExpired
		case !modelValid(r.Path):
			return "", wire.BadArguments
		case !ok:
			return "", wire.InvalidACL
		case !there:
			return "", wire.NoNode
		case !modelMay(c, n.acl, wire.PermAdmin):
			return "", wire.NoAuth
		case r.Version != -1 && r.Version != n.stat.Aversion:
			return "", wire.BadVersion
		}
		n.acl = acl
		n.stat.Aversion++
		m.nodes[r.Path] = n
		return fmt.Sprint(m.stat(r.Path)), wire.OK
	case *wire.MultiRequest:
		return m.multi(c, r, who), wire.OK
	case *wire.Empty:
		if !alive {
			return "", wire.SessionExpired
		}
		for _, path := range slices.Sorted(maps.Keys(m.nodes)) {
			if n := m.nodes[path]; n.kind == "ephemeral" && n.stat.EphemeralOwner == c.Session {
				m.remove(path, who)
			}
		}
		delete(m.sessions, c.Session)
		return "", wire.OK
	}
	panic("no such write")
}

func (m *model) target(c *client, path string, want wire.Perms, version int32) (modelNode, wire.Code) {
	n, ok := m.nodes[path]
	switch {
	case !m.sessions[c.Session]:
		return n, wire.SessionExpired
	case !modelValid(path):
		return n, wire.BadArguments
	case !ok:
		return n, wire.NoNode
	case !modelMay(c, n.acl, want):
		return n, wire.NoAuth
	case version != -1 && version != n.stat.Version:
		return n, wire.BadVersion
	}
	return n, wire.OK
}

func (m *model) remove(path string, who map[int64]*client) {
	n := m.nodes[path]
	delete(m.nodes, path)
	parent := m.nodes[modelParent(path)]
	parent.stat.Pzxid = m.zxid
	m.nodes[modelParent(path)] = parent
	m.changed(wire.EventDeleted, path, n, who)
}

func (m *model) create(c *client, op wire.Op, r *wire.CreateRequest, ttl int64, who map[int64]*client) (string,
	wire.Code,
) {
	kind := map[int32]string{1: "ephemeral", 3: "ephemeral", 5: "ttl", 6: "ttl"}[r.Flags]
	if op == wire.OpCreateContainer {
		kind = "container"
	}
	timed := r.Flags == 5 || r.Flags == 6
	acl, ok := modelACL(c, r.ACL)
	parentPath := modelParent(r.Path)
	if i := strings.LastIndex(r.Path, "/"); i > 0 {
		parentPath = r.Path[:i]
	}
	parent, there := m.nodes[parentPath]
	path := r.Path
	if r.Flags == 2 || r.Flags == 3 || r.Flags == 6 {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	_, exists := m.nodes[path]
	switch {
	case r.Flags < 0 || r.Flags > 6 || timed != (op == wire.OpCreateTTL) || timed && (ttl < 1 || ttl >= 1<<40):
		return "", wire.BadArguments
	case !m.sessions[c.Session]:
		return "", wire.SessionExpired
	case !strings.Contains(r.Path, "/") || strings.Contains(r.Path, "\x00"):
		return "", wire.BadArguments
	case !ok:
		return "", wire.InvalidACL
	case !there:
		return "", wire.NoNode
	case !modelMay(c, parent.acl, wire.PermCreate):
		return "", wire.NoAuth
	case !modelValid(path):
		return "", wire.BadArguments
	case exists:
		return "", wire.NodeExists
	case parent.kind == "ephemeral":
		return "", wire.NoChildrenForEphemerals
	}
	n := modelNode{data: r.Data, acl: acl, kind: kind, lifetime: ttl}
	n.stat = wire.Stat{Czxid: m.zxid, Mzxid: m.zxid, Pzxid: m.zxid, Ctime: m.at, Mtime: m.at}
	if kind == "ephemeral" {
		n.stat.EphemeralOwner = c.Session
	}
	parent.creates++
	parent.stat.Pzxid = m.zxid
	m.nodes[parentPath], m.nodes[path] = parent, n
	m.changed(wire.EventCreated, path, n, who)
	if op == wire.OpCreate {
		return path, wire.OK
	}
	return path + " " + fmt.Sprint(m.stat(path)), wire.OK
}

func (m *model) multi(c *client, r *wire.MultiRequest, who map[int64]*client) string {
	nodes, watches := maps.Clone(m.nodes), slices.Clone(m.watches)
	var lines []string
	for i, op := range r.Ops {
		kind := op.Op
		if create, ok := op.Request.(*wire.CreateRequest); ok && create.Flags == wire.FlagContainer {
			kind = wire.OpCreateContainer
		}
		body, code := m.write(c, kind, op.Request, who)
		if code == wire.OK {
			lines = append(lines, "0 "+body)
			continue
		}
		m.nodes, m.watches, m.fired = nodes, watches, nil
		for j := range lines {
			lines[j] = "0 "
		}
		lines = append(lines, fmt.Sprintf("%d ", code))
		for range r.Ops[i+1:] {
			lines = append(lines, "-2 ")
		}
		break
	}
	return strings.Join(lines, "|")
}
