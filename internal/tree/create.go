package tree

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

// kindOf returns what a create makes. It is the operation that makes a container, whatever flags it comes with, and the
// flag that stands for a container makes a plain node in any other operation.
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

// creation is what create, create2, createContainer and createTTL have in common. A time to live of -1 is none.
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

// checkMode judges flags and time to live, before anything else is looked at.
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
	if !t.allowed(c, parent.acl, wire.PermCreate) {
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
	case t.overQuota(path, int64(len(r.Data)), 1):
		return nil, wire.QuotaExceeded
	case k == ephemeral && c == nil:
		return nil, wire.SessionExpired // the server itself has no session to bind a node to
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
