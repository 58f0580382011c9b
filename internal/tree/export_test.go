package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dump writes down everything a tree holds, watches included, so that two trees can be compared.
func (t *Tree) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zxid %d nodes %d size %d\n", t.zxid, len(t.nodes), t.size)
	b.WriteString(t.DumpNodes())
	for id, timeout := range t.Sessions() {
		fmt.Fprintf(&b, "session %d timeout %d nodes %q\n", id, timeout, t.Ephemerals()[id])
	}
	fmt.Fprintf(&b, "mortal %d quotas %q\n", len(t.mortal), slices.Sorted(maps.Keys(t.quotas)))
	return b.String() + t.DumpWatches()
}

// DumpNodes writes down all nodes but no watch and no session.
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

// DumpWatches writes down all watches in the order in which they would fire.
func (t *Tree) DumpWatches() string {
	var b strings.Builder
	for which := range t.tables {
		tb := &t.tables[which]
		fmt.Fprintf(&b, "table %d count %d recursive %d watchers %d\n", which, tb.count, tb.recursive, tb.watchers)
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

// DumpOrder writes down the order of all children and of all sessions' nodes, which undoing has to restore as well.
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

// Check returns an error if the tree contradicts itself.
func (t *Tree) Check() error {
	size, mortal, ephemerals := int64(0), 0, 0
	for path, n := range t.nodes {
		size += int64(len(path) + len(n.data))
		if n.path != path {
			return fmt.Errorf("node %q is kept as %q", n.path, path)
		}
		if n != t.root && (n.parent == nil || t.nodes[n.parent.path] != n.parent || n.parent.children[n.at[inParent]] != n) {
			return fmt.Errorf("node %q is not a child of its parent", path)
		}
		for i, child := range n.children {
			if t.nodes[child.path] != child || child.parent != n || int(child.at[inParent]) != i {
				return fmt.Errorf("child %d of %q is not there", i, path)
			}
		}
		switch n.kind {
		case container, ttl:
			mortal++
			if _, ok := t.mortal[n]; !ok {
				return fmt.Errorf("node %q is not among the mortal", path)
			}
		case ephemeral:
			ephemerals++
			s := t.sessions[n.owner]
			if s == nil || s.nodes[n.at[inSession]] != n {
				return fmt.Errorf("node %q is not among its session's", path)
			}
		case persistent:
		}
		if subject, ok := limitsOf(path); ok {
			if _, ok := t.quotas[subject]; !ok {
				return fmt.Errorf("quota of %q is not known", subject)
			}
		}
	}
	switch {
	case size != t.size:
		return fmt.Errorf("size %d, counted %d", t.size, size)
	case mortal != len(t.mortal):
		return fmt.Errorf("%d mortal nodes, counted %d", len(t.mortal), mortal)
	case ephemerals != t.EphemeralCount():
		return fmt.Errorf("%d ephemeral nodes, counted %d", t.EphemeralCount(), ephemerals)
	case len(t.tx.steps) != 0 || len(t.tx.triggers) != 0 || len(t.tx.sessions) != 0:
		return fmt.Errorf("a transaction is open: %d steps", len(t.tx.steps))
	}
	return t.checkWatches()
}

func (t *Tree) checkWatches() error {
	for which := range t.tables {
		tb := &t.tables[which]
		count, recursives, watchers := 0, 0, 0
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
				}
				if w.modes == 0 || w.path != path || w.next.prev != w || w.by.watches[which][path] != w {
					return fmt.Errorf("watch of %d at %q is damaged", w.by.id, path)
				}
				if w = w.next; w == head {
					break
				}
			}
		}
		if count != tb.count || recursives != tb.recursive || watchers != tb.watchers {
			return fmt.Errorf("table %d counts %d/%d/%d, has %d/%d/%d", which, tb.count, tb.recursive, tb.watchers, count, recursives, watchers)
		}
	}
	return nil
}

// SkipWatchesOf gives a tree that was loaded the watches of a live one, which no store keeps.
func (t *Tree) SkipWatchesOf(live *Tree) { t.tables, t.watchers = live.tables, live.watchers }
