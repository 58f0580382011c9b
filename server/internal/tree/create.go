package tree

// Creating nodes.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// knownFlags reports whether a request to create a node names one of the seven modes.
func knownFlags(flags int32) bool {
	return flags >= wire.FlagPersistent && flags <= wire.FlagPersistentSequentialTTL
}

func isSequential(flags int32) bool {
	switch flags {
	case wire.FlagSequential, wire.FlagEphemeralSequential, wire.FlagPersistentSequentialTTL:
		return true
	}
	return false
}

// kindOf returns the kind of node that a create makes. As in ZooKeeper, createContainer makes a container whatever its
// flags are, and the container flag makes a persistent node in every other operation.
func kindOf(op wire.Op, flags int32) kind {
	if op == wire.OpCreateContainer {
		return container
	}
	switch flags {
	case wire.FlagEphemeral, wire.FlagEphemeralSequential:
		return ephemeral
	case wire.FlagTTL, wire.FlagPersistentSequentialTTL:
		return ttl
	}
	return persistent
}

// creation returns the part that create, create2, createContainer and createTTL share, and the time to live, -1 if the
// request has none.
func creation(req wire.Record) (r *wire.CreateRequest, life int64) {
	switch req := req.(type) {
	case *wire.CreateRequest:
		return req, -1
	case *wire.CreateTTLRequest:
		if req != nil {
			return &req.CreateRequest, req.TTL
		}
	}
	return nil, -1
}

// checkMode checks flags and time to live. ZooKeeper does so before every other check.
func (t *Tree) checkMode(op wire.Op, flags int32, life int64) wire.Code {
	timed := flags == wire.FlagTTL || flags == wire.FlagPersistentSequentialTTL
	switch {
	case !knownFlags(flags):
		return wire.BadArguments
	case timed && !t.cfg.ExtendedTypes:
		return wire.Unimplemented
	case timed != (op == wire.OpCreateTTL):
		return wire.BadArguments
	case timed && (life < 1 || life > wire.MaxTTL):
		return wire.BadArguments
	}
	return wire.OK
}

func (t *Tree) serveCreate(c *Caller, op wire.Op, req wire.Record) (wire.Record, wire.Code) {
	r, life := creation(req)
	if r == nil {
		return nil, wire.MarshallingError
	}
	if code := t.checkMode(op, r.Flags, life); code != wire.OK {
		return nil, code
	}
	if !t.alive(c) {
		return nil, wire.SessionExpired
	}
	if !addressable(r.Path) {
		return nil, wire.BadArguments
	}
	list, ok := t.normalize(c, r.ACL)
	if !ok {
		return nil, wire.InvalidACL
	}
	parent := t.parentOf(r.Path)
	if parent == nil {
		return nil, wire.NoNode
	}
	if !t.allowed(c, parent.acl, wire.PermCreate) || !t.mayChangeQuotas(c, r.Path, wire.PermCreate) {
		return nil, wire.NoAuth
	}
	path := r.Path
	if isSequential(r.Flags) {
		var room [128]byte
		path = string(appendSequence(append(room[:0], path...), parent.creates))
	}
	if !validPath(path) {
		return nil, wire.BadArguments
	}
	k := kindOf(op, r.Flags)
	switch {
	case t.nodes[path] != nil:
		return nil, wire.NodeExists
	case parent.kind == ephemeral:
		return nil, wire.NoChildrenForEphemerals
	case t.overQuota(path, parent, int64(len(r.Data)), 1):
		return nil, wire.QuotaExceeded
	case k == ephemeral && c == nil:
		return nil, wire.SessionExpired // the server itself has no session that could own the node
	}
	n := &node{
		path: path, parent: parent, data: clone(r.Data), acl: list, kind: k,
		czxid: t.tx.zxid, mzxid: t.tx.zxid, pzxid: t.tx.zxid, ctime: t.tx.at, mtime: t.tx.at,
	}
	switch k {
	case ephemeral:
		n.owner = c.Session
	case ttl:
		n.owner = life
	case persistent, container:
	}
	t.add(n)
	if op == wire.OpCreate {
		return &wire.PathResponse{Path: path}, wire.OK
	}
	return &wire.Create2Response{Path: path, Stat: n.stat()}, wire.OK
}
