package tree

// Containers and TTL nodes that may be deleted.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Containers looks at no more than n of the first from containers and TTL nodes, the last ones first, and returns the
// paths of those that may be deleted at the given time, in milliseconds since 1970. The next call continues with left,
// until it is 0. Nodes that come or go between the calls make a pass neither miss another node nor end late. The caller
// deletes each with Write, operation deleteContainer and nil Caller, which checks again.
func (t *Tree) Containers(now int64, from, n int) (paths []string, left int) {
	from = min(from, len(t.collectables))
	left = max(0, from-n)
	for _, n := range t.collectables[left:from] {
		if t.collectable(n, now) {
			paths = append(paths, n.path)
		}
	}
	return paths, left
}

// CollectableCount returns the number of containers and TTL nodes.
func (t *Tree) CollectableCount() int { return len(t.collectables) }

// Expires reports whether the node at a path is there and has a time to live.
func (t *Tree) Expires(path string) bool {
	n := t.nodes[path]
	return n != nil && n.kind == ttl
}

// collectable reports whether the collector may delete n. A container must have had a child, or be older than
// Config.NeverUsedAfter.
func (t *Tree) collectable(n *node, now int64) bool {
	if len(n.children) > 0 {
		return false
	}
	switch n.kind {
	case container:
		return n.creates != 0 || t.cfg.NeverUsedAfter > 0 && now-n.mtime > t.cfg.NeverUsedAfter
	case ttl:
		return now-n.mtime > n.owner
	case persistent, ephemeral:
	}
	return false
}

// serveDeleteContainer deletes a container or TTL node for the collector. No client may send it.
func (t *Tree) serveDeleteContainer(c *Caller, req wire.Record) wire.Code {
	r, ok := req.(*wire.PathRequest)
	if c != nil {
		return wire.Unimplemented
	}
	if !ok || r == nil {
		return wire.MarshallingError
	}
	n := t.nodes[r.Path]
	switch {
	case n == nil:
		return wire.NoNode
	case len(n.children) > 0:
		return wire.NotEmpty
	case !t.collectable(n, t.tx.at):
		return wire.BadVersion
	}
	t.remove(n)
	return wire.OK
}

// PresetSequence makes next the number of path's next sequential child. It is meant for tests and uses no zxid. The
// result is NoNode if there is no such node.
func (t *Tree) PresetSequence(path string, next int32) Result {
	n := t.lookup(path)
	if n == nil {
		return t.finish(nil, wire.NoNode)
	}
	t.tx.steps = append(t.tx.steps, step{kind: sequenceSet, n: n})
	n.creates = next
	return t.finish(nil, wire.OK)
}
