package tree

// Multi: several operations as one.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// multi applies all operations or none. Its own code is OK either way, unless an operation is not allowed in a multi,
// or the nodes that it changes have more than Config.MaxLists bytes of access lists: each must be stored again, though
// the request names the nodes only.
func (t *Tree) multi(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.MultiRequest)
	if !ok || r == nil || r.Read {
		return nil, wire.MarshallingError
	}
	for i := range r.Ops {
		if !wellFormed(&r.Ops[i]) {
			return nil, wire.MarshallingError
		}
	}
	if t.cfg.MaxLists > 0 {
		t.tx.listed = map[*node]struct{}{}
	}
	results := make([]wire.MultiResult, len(r.Ops))
	for i := range r.Ops {
		op := &r.Ops[i]
		var body wire.Record
		var code wire.Code
		if op.Op == wire.OpCheck {
			code = t.serveCheck(c, op.Request)
		} else {
			body, code = t.one(c, inMulti(op), op.Request)
		}
		if code != wire.OK {
			t.rollback()
			return &wire.MultiResponse{Results: failed(results, i, code)}, wire.OK
		}
		results[i] = outcome(op.Op, body)
		if t.cfg.MaxLists > 0 && t.tx.lists > t.cfg.MaxLists {
			t.limitHit = ListLimit
			return nil, wire.MarshallingError
		}
	}
	if t.floods() {
		t.limitHit = EventLimit
		return nil, wire.MarshallingError
	}
	return &wire.MultiResponse{Results: results}, wire.OK
}

// wellFormed reports whether an operation is allowed in a multi. Flags that name no mode make the whole multi
// malformed.
func wellFormed(op *wire.SubRequest) bool {
	switch r := op.Request.(type) {
	case *wire.CreateRequest:
		return r != nil && knownFlags(r.Flags) &&
			(op.Op == wire.OpCreate || op.Op == wire.OpCreate2 || op.Op == wire.OpCreateContainer)
	case *wire.CreateTTLRequest:
		return r != nil && knownFlags(r.Flags) && op.Op == wire.OpCreateTTL
	case *wire.DeleteRequest:
		return r != nil && op.Op == wire.OpDelete
	case *wire.SetDataRequest:
		return r != nil && op.Op == wire.OpSetData
	case *wire.CheckRequest:
		return r != nil && op.Op == wire.OpCheck
	}
	return false
}

// inMulti returns the operation that op is in a multi, where the container's flag makes a container whatever kind of
// create it stands in.
func inMulti(op *wire.SubRequest) wire.Op {
	if r, ok := op.Request.(*wire.CreateRequest); ok && r.Flags == wire.FlagContainer {
		return wire.OpCreateContainer
	}
	return op.Op
}

// failed fills in the results of a multi whose operation number at was refused.
func failed(results []wire.MultiResult, at int, code wire.Code) []wire.MultiResult {
	for i := range results {
		results[i] = wire.MultiResult{Op: wire.OpError}
		switch {
		case i == at:
			results[i].Err = code
		case i > at:
			results[i].Err = wire.RuntimeInconsistency
		}
	}
	return results
}

// outcome converts the answer of one operation to a result of a multi. The result's type follows the answer: every kind
// of create but plain create is answered as create2.
func outcome(op wire.Op, body wire.Record) wire.MultiResult {
	switch b := body.(type) {
	case *wire.PathResponse:
		return wire.MultiResult{Op: wire.OpCreate, Path: b.Path}
	case *wire.Create2Response:
		return wire.MultiResult{Op: wire.OpCreate2, Path: b.Path, Stat: b.Stat}
	case *wire.StatResponse:
		return wire.MultiResult{Op: wire.OpSetData, Stat: b.Stat}
	}
	return wire.MultiResult{Op: op}
}

// multiRead answers each read on its own and sets no watches, whatever the reads ask for. It returns MarshallingError
// if the answers together exceed Config.MaxReply.
func (t *Tree) multiRead(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.MultiRequest)
	if !ok || r == nil || !r.Read {
		return nil, wire.MarshallingError
	}
	results := make([]wire.MultiResult, len(r.Ops))
	space := t.space()
	for i := range r.Ops {
		q, ok := r.Ops[i].Request.(*wire.PathWatchRequest)
		if !ok || q == nil {
			return nil, wire.MarshallingError
		}
		op := r.Ops[i].Op
		if op != wire.OpGetData && op != wire.OpGetChildren {
			return nil, wire.MarshallingError
		}
		n, code := t.readable(c, q.Path)
		switch {
		case code != wire.OK:
			results[i] = wire.MultiResult{Op: wire.OpError, Err: code}
		case op == wire.OpGetData:
			results[i] = wire.MultiResult{Op: op, Data: n.data, Stat: n.stat()}
		default:
			names, code := t.names(n, space)
			if code != wire.OK {
				return nil, code
			}
			results[i] = wire.MultiResult{Op: op, Children: names}
		}
		if !t.fits(&space, results[i].Size()) {
			return nil, wire.MarshallingError
		}
	}
	return &wire.MultiResponse{Results: results}, wire.OK
}
