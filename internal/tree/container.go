package tree

// Containers and TTL nodes that may be deleted.

import (
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Containers returns the sorted paths of the containers and TTL nodes that may be deleted at the given time, in
// milliseconds since 1970. The caller deletes each with Write, operation deleteContainer and nil Caller, which checks
// again.
func (t *Tree) Containers(now int64) []string {
	var paths []string
	for n := range t.collectables {
		if t.collectable(n, now) {
			paths = append(paths, n.path)
		}
	}
	slices.Sort(paths)
	return paths
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
