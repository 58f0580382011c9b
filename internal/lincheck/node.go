package lincheck

// Copies of nodes: what caches have told of them, against the server's nodes at the end.

import (
	"fmt"
	"maps"
	"slices"
)

// NodeState is a node's state. The zero NodeState is a node that does not exist.
type NodeState struct {
	Czxid   int64  `json:",omitempty"`
	Mzxid   int64  `json:",omitempty"`
	Version int32  `json:",omitempty"`
	Data    string `json:",omitempty"`
}

func (s NodeState) exists() bool { return s.Czxid != 0 }

// NodeChange is a change that a reader was told of.
type NodeChange struct {
	Reader        int
	Path          string
	Kind          string // created, changed, deleted or replaced
	Before, After NodeState
}

// NodeCopy is what a reader had at the end, when the nodes did not change any more.
type NodeCopy struct {
	Reader int
	View   map[string]NodeState // what its cache had
	Told   map[string]NodeState // what the changes add up to
}

// NodeHistory is what the readers of a tree were told, each in its order.
type NodeHistory struct {
	Changes []NodeChange
	Copies  []NodeCopy
	Server  map[string]NodeState // at the end
}

// seenNode is what a reader was told last of a node.
type seenNode struct {
	now    NodeState
	newest int64 // the largest mzxid
}

// CheckNodes checks that caches are what they promise. Each reader's changes follow on each other: a change begins with
// the state that the one before has led to, and is of the kind that the two states make it. A node's state never goes
// back. All readers that see a state of a node, which its mzxid identifies, see the same one. At the end every copy has
// the server's nodes.
func CheckNodes(h NodeHistory) error {
	type place struct {
		reader int
		path   string
	}
	type version struct {
		path  string
		mzxid int64
	}
	seen, states := make(map[place]seenNode), make(map[version]NodeState)
	agree := func(reader int, path string, s NodeState) error {
		at := version{path, s.Mzxid}
		if known, ok := states[at]; ok && known != s {
			return fmt.Errorf("lincheck: not a copy: reader %d: %s is %+v, and elsewhere %+v", reader, path, s, known)
		}
		states[at] = s
		return nil
	}
	for i, c := range h.Changes {
		at := place{c.Reader, c.Path}
		if why := c.contradicts(seen[at]); why != "" {
			return fmt.Errorf("lincheck: not a copy: change %d, reader %d: %s %s from %+v to %+v: %s",
				i, c.Reader, c.Kind, c.Path, c.Before, c.After, why)
		}
		seen[at] = seenNode{now: c.After, newest: max(seen[at].newest, c.After.Mzxid)}
		if c.After.exists() {
			if err := agree(c.Reader, c.Path, c.After); err != nil {
				return err
			}
		}
	}
	for path, s := range h.Server {
		if err := agree(-1, path, s); err != nil {
			return err
		}
	}
	for _, c := range h.Copies {
		for what, got := range map[string]map[string]NodeState{"cache": c.View, "sum of changes": c.Told} {
			if path, differs := difference(got, h.Server); differs {
				return fmt.Errorf("lincheck: not a copy: reader %d: at the end its %s has %s as %+v, the server as %+v",
					c.Reader, what, path, got[path], h.Server[path])
			}
		}
	}
	return nil
}

// contradicts says why a change cannot follow on what was told before, "" if it can.
func (c NodeChange) contradicts(last seenNode) string {
	kind := "changed"
	switch {
	case !c.Before.exists() && !c.After.exists():
		return "it is no change"
	case !c.Before.exists():
		kind = "created"
	case !c.After.exists():
		kind = "deleted"
	case c.Before.Czxid != c.After.Czxid:
		kind = "replaced"
	}
	switch {
	case c.Before != last.now:
		return fmt.Sprintf("the reader was told of %+v last", last.now)
	case c.Kind != kind:
		return "it is of the kind " + kind
	case c.After.exists() && c.After.Mzxid <= last.newest:
		return fmt.Sprintf("it goes back behind transaction %d", last.newest)
	case c.After.exists() && (c.After.Mzxid < c.After.Czxid || c.After.Czxid < c.Before.Czxid):
		return "it is older than its node"
	default:
		return ""
	}
}

// difference returns the first path at which two trees differ.
func difference(a, b map[string]NodeState) (path string, differs bool) {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(paths)
	for _, path := range paths {
		if a[path] != b[path] {
			return path, true
		}
	}
	return "", false
}
