package tree

// Writes.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// IsWrite reports whether op is a write that clients may send: create, create2, createContainer, createTTL, delete,
// setData, setACL, multi, closeSession.
func IsWrite(op wire.Op) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData,
		wire.OpSetACL, wire.OpMulti, wire.OpCloseSession:
		return true
	}
	return false
}

// Write applies create, create2, createContainer, createTTL, delete, setData, setACL, multi, closeSession (of c's
// session) and, for the collector's nil c, deleteContainer. Any other operation is Unimplemented. The time at is in
// milliseconds since 1970. Write keeps no reference to the memory of req's data.
func (t *Tree) Write(zxid, at int64, c *Caller, op wire.Op, req wire.Record) Result {
	t.begin(zxid, at)
	switch op {
	case wire.OpMulti:
		return t.finish(t.multi(c, req))
	case wire.OpSetACL:
		return t.finish(t.serveSetACL(c, req))
	case wire.OpDeleteContainer:
		return t.finish(nil, t.serveDeleteContainer(c, req))
	case wire.OpCloseSession:
		if c == nil {
			return t.finish(nil, wire.SessionExpired)
		}
		return t.CloseSession(zxid, at, c.Session)
	default:
		return t.finish(t.one(c, op, req))
	}
}

// one applies an operation that is allowed both in a multi and on its own.
func (t *Tree) one(c *Caller, op wire.Op, req wire.Record) (wire.Record, wire.Code) {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return t.serveCreate(c, op, req)
	case wire.OpDelete:
		return t.serveDelete(c, req)
	case wire.OpSetData:
		return t.serveSetData(c, req)
	default:
		return nil, wire.Unimplemented
	}
}

// alive reports whether the caller's session may still write. The server itself always may.
func (t *Tree) alive(c *Caller) bool {
	return c == nil || t.sessions[c.Session] != nil
}

// matches reports whether a node has the version that a request expects; -1 means any.
func matches(want, have int32) bool { return want == -1 || want == have }

func (t *Tree) serveDelete(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.DeleteRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	if !t.alive(c) {
		return nil, wire.SessionExpired
	}
	if !addressable(r.Path) || isSystem(r.Path) {
		return nil, wire.BadArguments
	}
	parent := t.parentOf(r.Path)
	if parent == nil {
		return nil, wire.NoNode
	}
	if !t.allowed(c, parent.acl, wire.PermDelete) || !t.mayChangeQuotas(c, r.Path, wire.PermDelete) {
		return nil, wire.NoAuth
	}
	n := t.nodes[r.Path]
	switch {
	case n == nil:
		return nil, wire.NoNode
	case !matches(r.Version, n.version):
		return nil, wire.BadVersion
	case len(n.children) > 0:
		return nil, wire.NotEmpty
	}
	t.remove(n)
	return nil, wire.OK
}

func (t *Tree) serveSetData(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.SetDataRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	if !t.alive(c) {
		return nil, wire.SessionExpired
	}
	if !validPath(r.Path) {
		return nil, wire.BadArguments
	}
	n := t.nodes[r.Path]
	switch {
	case n == nil:
		return nil, wire.NoNode
	case !t.allowed(c, n.acl, wire.PermWrite), !t.mayChangeQuotas(c, r.Path, wire.PermWrite):
		return nil, wire.NoAuth
	case t.overQuota(r.Path, n, int64(len(r.Data)-len(n.data)), 0):
		return nil, wire.QuotaExceeded
	case !matches(r.Version, n.version):
		return nil, wire.BadVersion
	}
	t.setData(n, clone(r.Data))
	return &wire.StatResponse{Stat: n.stat()}, wire.OK
}

func (t *Tree) serveSetACL(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.SetACLRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	if !t.alive(c) {
		return nil, wire.SessionExpired
	}
	if !validPath(r.Path) {
		return nil, wire.BadArguments
	}
	list, ok := t.normalize(c, r.ACL)
	if !ok {
		return nil, wire.InvalidACL
	}
	n := t.nodes[r.Path]
	switch {
	case n == nil:
		return nil, wire.NoNode
	case !t.allowed(c, n.acl, wire.PermAdmin), !t.mayChangeQuotas(c, r.Path, wire.PermAdmin):
		return nil, wire.NoAuth
	case !matches(r.Version, n.aversion):
		return nil, wire.BadVersion
	}
	t.setList(n, list)
	return &wire.StatResponse{Stat: n.stat()}, wire.OK
}

// serveCheck serves check, which is allowed only in a multi.
func (t *Tree) serveCheck(c *Caller, req wire.Record) wire.Code {
	r, ok := req.(*wire.CheckRequest)
	if !ok || r == nil {
		return wire.MarshallingError
	}
	if !t.alive(c) {
		return wire.SessionExpired
	}
	if !validPath(r.Path) {
		return wire.BadArguments
	}
	n := t.nodes[r.Path]
	switch {
	case n == nil:
		return wire.NoNode
	case !t.allowed(c, n.acl, wire.PermRead):
		return wire.NoAuth
	case !matches(r.Version, n.version):
		return wire.BadVersion
	}
	return wire.OK
}
