package tree

// Reads.

import (
	"math"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// IsRead reports whether Read serves op.
func IsRead(op wire.Op) bool {
	switch op {
	case wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2, wire.OpSync,
		wire.OpGetEphemerals, wire.OpGetAllChildren, wire.OpWhoAmI, wire.OpMultiRead, wire.OpAddWatch,
		wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpSetWatches, wire.OpSetWatches2:
		return true
	}
	return false
}

// Read serves the operations that change no node: exists, getData, getACL, getChildren, getChildren2, sync,
// getEphemerals, getAllChildrenNumber, whoAmI, multiRead, addWatch, checkWatches, removeWatches, setWatches,
// setWatches2. Any other is Unimplemented. It registers the watches that the request asks for. Events come from
// setWatches alone and must be sent before the reply. A nil c reads everything and watches nothing.
func (t *Tree) Read(c *Caller, op wire.Op, req wire.Record) (body wire.Record, code wire.Code, events []Fired) {
	switch op {
	case wire.OpSetWatches, wire.OpSetWatches2:
		code, events = t.setWatches(c, req)
		return nil, code, events
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		body, code = t.readNode(c, op, req)
	case wire.OpGetACL:
		body, code = t.getACL(c, req)
	case wire.OpSync:
		body, code = sync(req)
	case wire.OpGetEphemerals:
		body, code = t.getEphemerals(c, req)
	case wire.OpGetAllChildren:
		body, code = t.countDescendants(c, req)
	case wire.OpWhoAmI:
		body, code = whoAmI(c), wire.OK
	case wire.OpMultiRead:
		body, code = t.multiRead(c, req)
	case wire.OpAddWatch:
		body, code = t.addWatch(c, req)
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		code = t.findWatches(c, req, op == wire.OpRemoveWatches)
	default:
		code = wire.Unimplemented
	}
	return body, code, nil
}

// readable returns the node at path, NoNode if there is none, or NoAuth if c may not read it.
func (t *Tree) readable(c *Caller, path string) (*node, wire.Code) {
	n := t.lookup(path)
	switch {
	case n == nil:
		return nil, wire.NoNode
	case !t.allowed(c, n.acl, wire.PermRead):
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func (t *Tree) readNode(c *Caller, op wire.Op, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.PathWatchRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	if op == wire.OpExists && strings.IndexByte(r.Path, 0) >= 0 {
		return nil, wire.BadArguments
	}
	n, code := t.readable(c, r.Path)
	var body wire.Record
	if code == wire.OK {
		body, code = t.describe(op, n)
	}
	if r.Watch && (code == wire.OK || code == wire.NoNode && op == wire.OpExists) {
		// Only exists leaves a watch on an absent node.
		which := onData
		if op == wire.OpGetChildren || op == wire.OpGetChildren2 {
			which = onChildren
		}
		if !t.mayWatch(c, 1, len(r.Path)) {
			return nil, wire.BadArguments
		}
		t.watch(c, which, r.Path, standard)
	}
	return body, code
}

// describe returns the answer to a read of n.
func (t *Tree) describe(op wire.Op, n *node) (wire.Record, wire.Code) {
	switch op {
	case wire.OpExists:
		return &wire.StatResponse{Stat: n.stat()}, wire.OK
	case wire.OpGetData:
		return &wire.DataResponse{Data: n.data, Stat: n.stat()}, wire.OK
	}
	names, code := t.names(n, t.space())
	if code != wire.OK {
		return nil, code
	}
	if op == wire.OpGetChildren {
		return &wire.ChildrenResponse{Children: names}, wire.OK
	}
	return &wire.Children2Response{Children: names, Stat: n.stat()}, wire.OK
}

// names returns the names of n's children in no particular order, or MarshallingError if they take more than space
// bytes.
func (t *Tree) names(n *node, space int) ([]string, wire.Code) {
	if least := len(n.children) * lengthSize; !t.fits(&space, least) {
		return nil, wire.MarshallingError
	}
	names := make([]string, len(n.children))
	dir := len(n.path) + 1 // with its slash
	if n.path == "/" {
		dir = 1
	}
	for i, child := range n.children {
		names[i] = child.path[dir:] // not behind the last slash, which would have to be looked for
		if !t.fits(&space, len(names[i])) {
			return nil, wire.MarshallingError
		}
	}
	return names, wire.OK
}

func (t *Tree) getACL(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.PathRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	n := t.lookup(r.Path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !t.allowed(c, n.acl, wire.PermRead|wire.PermAdmin) {
		return nil, wire.NoAuth
	}
	list := n.acl.list
	if !t.allowed(c, n.acl, wire.PermAdmin) {
		list = masked(list)
	}
	return &wire.ACLResponse{ACL: list, Stat: n.stat()}, wire.OK
}

// sync echoes the path, which need not exist. It has nothing to wait for: earlier requests are answered before it.
func sync(req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.PathRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	return &wire.PathResponse{Path: r.Path}, wire.OK
}

func (t *Tree) getEphemerals(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.EphemeralsRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	prefix := r.Prefix
	if strings.TrimSpace(prefix) == "" {
		prefix = rootPath
	}
	paths := []string{}
	space := t.space()
	if c != nil && t.sessions[c.Session] != nil {
		for _, n := range t.sessions[c.Session].nodes {
			if strings.HasPrefix(n.path, prefix) {
				paths = append(paths, n.path)
				if !t.fits(&space, lengthSize+len(n.path)) {
					return nil, wire.MarshallingError
				}
			}
		}
	}
	return &wire.ChildrenResponse{Children: paths}, wire.OK // not in order: a session may have a million
}

func (t *Tree) countDescendants(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	w, code := t.Walk(c, req)
	if code != wire.OK {
		return nil, code
	}
	w.Step(math.MaxInt)
	return w.Answer(), wire.OK
}

// Walk counts the nodes below a path in pieces, so that others can be served in between.
type Walk struct {
	path  []visit // from the top to where the walk is
	count int
}

// visit is a node with the index of the child to visit next.
type visit struct {
	n    *node
	next int
}

// Walk begins to serve getAllChildrenNumber. It returns NoNode if there is no such node, or NoAuth.
func (t *Tree) Walk(c *Caller, req wire.Record) (*Walk, wire.Code) {
	r, ok := req.(*wire.PathRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	n, code := t.readable(c, r.Path)
	switch {
	case code != wire.OK:
		return nil, code
	case n == t.root:
		return &Walk{count: len(t.nodes) - 1}, wire.OK
	}
	return &Walk{path: []visit{{n: n}}}, wire.OK
}

// Step visits up to n nodes and reports whether it has visited all. Nodes that come or go between two steps may be
// counted or not, as in ZooKeeper, which does not stop writes while it counts.
func (w *Walk) Step(n int) (done bool) {
	for ; n > 0 && len(w.path) > 0; n-- {
		at := &w.path[len(w.path)-1]
		if at.next >= len(at.n.children) {
			w.path = w.path[:len(w.path)-1]
			continue
		}
		child := at.n.children[at.next]
		at.next++
		w.count++
		if len(child.children) > 0 {
			w.path = append(w.path, visit{n: child})
		}
	}
	return len(w.path) == 0
}

// Answer returns the reply.
func (w *Walk) Answer() wire.Record { return &wire.CountResponse{Count: int32(w.count)} }

func whoAmI(c *Caller) wire.Record {
	r := &wire.WhoAmIResponse{IDs: []wire.ID{}}
	if c == nil {
		return r
	}
	super := wire.ID{Scheme: "super"}
	for _, id := range c.IDs {
		if id.Scheme == "digest" {
			id.ID, _, _ = strings.Cut(id.ID, ":")
		}
		r.IDs = append(r.IDs, id)
	}
	if c.Super && !slices.Contains(r.IDs, super) {
		r.IDs = append(r.IDs, super)
	}
	return r
}
