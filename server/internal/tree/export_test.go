package tree

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Dump formats everything a tree holds, watches included, so that two trees can be compared.
func (t *Tree) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zxid %d nodes %d size %d\n", t.zxid, len(t.nodes), t.size)
	b.WriteString(t.DumpNodes())
	for id, timeout := range t.Sessions() {
		fmt.Fprintf(&b, "session %d timeout %d nodes %q\n", id, timeout, t.sorted(id))
	}
	fmt.Fprintf(&b, "collectables %d quotas %q\n", len(t.collectables), slices.Sorted(maps.Keys(t.bySubject)))
	return b.String() + t.DumpWatches()
}

// DumpNodes formats all nodes, without watches and sessions.
func (t *Tree) DumpNodes() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[path]
		names, _ := t.names(n, t.space())
		slices.Sort(names)
		fmt.Fprintf(&b, "%q null %t data %q acl %v stat %+v kind %d owner %d creates %d children %q\n",
			path, n.data == nil, n.data, n.acl.list, n.stat(), n.kind, n.owner, n.creates, names)
	}
	return b.String()
}

// DumpWatches formats all watches in the order in which they would fire.
func (t *Tree) DumpWatches() string {
	var b strings.Builder
	for which := range t.tables {
		tb := &t.tables[which]
		fmt.Fprintf(&b, "table %d count %d watchers %d\n", which, tb.count, tb.watchers)
		for _, path := range slices.Sorted(maps.Keys(tb.heads)) {
			head := tb.heads[path]
			for w := head; ; {
				fmt.Fprintf(&b, "watch %q by %d modes %d\n", path, w.by.id, w.modes)
				if w = w.next; w == head {
					break
				}
			}
		}
	}
	return b.String()
}

// DumpOrder formats the order of all children and of all sessions' nodes, which undoing must restore too.
func (t *Tree) DumpOrder() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) {
		names, _ := t.names(t.nodes[path], t.space())
		fmt.Fprintf(&b, "%q %q\n", path, names)
	}
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		fmt.Fprintf(&b, "%d:", id)
		for _, n := range t.sessions[id].nodes {
			fmt.Fprintf(&b, " %q", n.path)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Check returns an error if the tree is inconsistent.
func (t *Tree) Check() error {
	size, collectable, ephemerals := int64(0), 0, 0
	for path, n := range t.nodes {
		size += int64(len(path) + len(n.data))
		if n.path != path {
			return fmt.Errorf("node %q has the key %q", n.path, path)
		}
		if n != t.root && (n.parent == nil || t.nodes[n.parent.path] != n.parent ||
			n.parent.children[n.at[inParent]] != n) {
			return fmt.Errorf("node %q is not a child of its parent", path)
		}
		for i, child := range n.children {
			if t.nodes[child.path] != child || child.parent != n || int(child.at[inParent]) != i {
				return fmt.Errorf("child %d of %q is inconsistent", i, path)
			}
		}
		switch n.kind {
		case container, ttl:
			collectable++
			if t.collectables[n.at[inSession]] != n {
				return fmt.Errorf("node %q is not in the set of collectable nodes", path)
			}
		case ephemeral:
			ephemerals++
			s := t.owner(n)
			if s == nil || s.nodes[n.at[inSession]] != n {
				return fmt.Errorf("node %q is not in its session's set", path)
			}
		case persistent:
		}
		if subject, ok := limitsOf(path); ok {
			if t.bySubject[subject] == nil {
				return fmt.Errorf("quota of %q is not in the set of quotas", subject)
			}
		}
	}
	switch {
	case size != t.size:
		return fmt.Errorf("got size %d, want %d", t.size, size)
	case collectable != len(t.collectables):
		return fmt.Errorf("got %d collectable nodes, want %d", len(t.collectables), collectable)
	case ephemerals != t.EphemeralCount():
		return fmt.Errorf("got %d ephemeral nodes, want %d", t.EphemeralCount(), ephemerals)
	case len(t.tx.steps) != 0 || len(t.tx.triggers) != 0 || len(t.tx.sessions) != 0:
		return fmt.Errorf("transaction left open with %d steps", len(t.tx.steps))
	}
	if err := t.checkQuotas(); err != nil {
		return err
	}
	return t.checkWatches()
}

// checkQuotas compares the usage of all quotas that are counted with a count of its own.
func (t *Tree) checkQuotas() error {
	for subject, q := range t.bySubject {
		if top := t.nodes[subject]; top != nil && t.governs[top] != q {
			return fmt.Errorf("quota of %q does not govern its node", subject)
		}
		if !q.done {
			continue
		}
		var size, count int64
		for path, n := range t.nodes {
			if path == subject || strings.HasPrefix(path, subject+"/") {
				size += int64(len(n.data))
				count++
			}
		}
		if size != q.bytes || count != q.count {
			return fmt.Errorf("quota of %q: got usage %d/%d, want %d/%d", subject, q.bytes, q.count, size, count)
		}
	}
	for n, q := range t.governs {
		if t.nodes[n.path] != n || t.bySubject[n.path] != q {
			return fmt.Errorf("quota of the node %q is left", n.path)
		}
	}
	return nil
}

func (t *Tree) sorted(session int64) []string {
	paths, _ := t.Ephemerals(nil, session, 0, math.MaxInt/2)
	slices.Sort(paths)
	return paths
}

// EphemeralsOf returns the sorted paths of a session's ephemeral nodes.
func (t *Tree) EphemeralsOf(session int64) []string { return t.sorted(session) }

// AllContainers returns the sorted paths of all that may be deleted.
func (t *Tree) AllContainers(now int64) []string {
	var all []string
	for left := t.CollectableCount(); left > 0; {
		var paths []string
		paths, left = t.Containers(now, left, 2)
		all = append(all, paths...)
	}
	slices.Sort(all)
	return all
}

func (t *Tree) checkWatches() error {
	recursives := 0
	for which := range t.tables {
		tb := &t.tables[which]
		count, watchers := 0, 0
		for id, by := range t.watchers {
			if by.id != id || by.caller == nil {
				return fmt.Errorf("watcher %d is damaged", id)
			}
			if len(by.watches[which]) > 0 {
				watchers++
			}
		}
		for path, head := range tb.heads {
			for w := head; ; {
				count++
				if w.modes&recursive != 0 {
					recursives++
					if e := w.by.deep[path]; e == nil || e.Value != w {
						return fmt.Errorf("recursive watch of %d at %q is not in its list", w.by.id, path)
					}
				}
				if w.modes == 0 || w.path != path || w.next.prev != w || w.by.watches[which][path] != w {
					return fmt.Errorf("watch of %d at %q is damaged", w.by.id, path)
				}
				if w = w.next; w == head {
					break
				}
			}
		}
		if count != tb.count || watchers != tb.watchers {
			return fmt.Errorf("table %d: got counts %d/%d, want %d/%d",
				which, tb.count, tb.watchers, count, watchers)
		}
	}
	for path, d := range t.deep {
		recursives -= d.watches.Len()
		if n := t.nodes[path]; n != nil && t.deepAt[n] != d || d.watches.Len() == 0 {
			return fmt.Errorf("recursive watches of %q are damaged", path)
		}
	}
	for n := range t.deepAt {
		if t.nodes[n.path] != n || t.deep[n.path] == nil {
			return fmt.Errorf("recursive watches of the node %q are left", n.path)
		}
	}
	if recursives != 0 {
		return fmt.Errorf("got %d recursive watches in no list", recursives)
	}
	return nil
}

// SkipWatchesOf copies the watches of a live tree to a loaded one, because stores do not keep watches.
func (t *Tree) SkipWatchesOf(live *Tree) {
	t.tables, t.watchers, t.deep = live.tables, live.watchers, live.deep
	t.deepAt = map[*node]*deep{}
	for path, d := range live.deep {
		if n := t.nodes[path]; n != nil {
			t.deepAt[n] = d
		}
	}
}

// Node is the content of a node's meta record.
type Node struct {
	Czxid, Mzxid, Pzxid int64
	Ctime, Mtime        int64
	Version, Aversion   int32
	Creates             int32 // children ever created
	Session             int64 // of an ephemeral node
	TTL                 int64 // of a TTL node, in milliseconds
	Container           bool
	DataLength          int32 // -1 if the data is null
	ACL                 []wire.ACL
}

// AppendNode appends the meta record of n to b.
func AppendNode(b []byte, n *Node) []byte {
	k, owner := persistent, int64(0)
	switch {
	case n.Container:
		k = container
	case n.TTL != 0:
		k, owner = ttl, n.TTL
	case n.Session != 0:
		k, owner = ephemeral, n.Session
	}
	return appendRecord(b, &node{
		czxid: n.Czxid, mzxid: n.Mzxid, pzxid: n.Pzxid, ctime: n.Ctime, mtime: n.Mtime, owner: owner,
		version: n.Version, aversion: n.Aversion, creates: n.Creates, kind: k, acl: newACL(n.ACL),
	}, n.DataLength)
}

// DecodeNode decodes a meta record. It returns an error if the record is damaged or of an unknown version.
func DecodeNode(b []byte) (Node, error) {
	var n node
	length, list, err := decodeRecord(b, &n)
	if err != nil {
		return Node{}, err
	}
	out := Node{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion, Creates: n.creates, Container: n.kind == container,
		DataLength: length, ACL: list,
	}
	switch n.kind {
	case ephemeral:
		out.Session = n.owner
	case ttl:
		out.TTL = n.owner
	case persistent, container:
	}
	return out, nil
}

// Stat returns a node's Stat, and whether there is such a node.
func (t *Tree) Stat(path string) (wire.Stat, bool) {
	n := t.lookup(path)
	if n == nil {
		return wire.Stat{}, false
	}
	return n.stat(), true
}

// SessionTimeout returns a session's timeout in milliseconds, and whether there is such a session.
func (t *Tree) SessionTimeout(id int64) (int32, bool) {
	s := t.sessions[id]
	if s == nil {
		return 0, false
	}
	return s.timeout, true
}
