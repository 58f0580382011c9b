package zk

// Transactions, and several reads in one request.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// An Op is one operation of a Multi.
type Op struct {
	op      wire.Op
	node    Node // path, and for creates the rest
	version int32
	set     bool // made by one of the functions below
}

// CreateOp creates a node with OpenACL, as Session.Create does.
func CreateOp(path string, data []byte, mode Mode) Op {
	return CreateNodeOp(Node{Path: path, Data: data, Mode: mode})
}

// CreateNodeOp creates a node, as Session.CreateNode does.
func CreateNodeOp(n Node) Op { return Op{op: n.Mode.op(), node: n, set: true} }

// DeleteOp deletes a node, as Session.Delete does.
func DeleteOp(path string, version int32) Op {
	return Op{op: wire.OpDelete, node: Node{Path: path}, version: version, set: true}
}

// SetOp replaces a node's data, as Session.Set does.
func SetOp(path string, data []byte, version int32) Op {
	return Op{op: wire.OpSetData, node: Node{Path: path, Data: data}, version: version, set: true}
}

// CheckOp makes the whole Multi fail unless the node exists and version is -1 or that of its data.
func CheckOp(path string, version int32) Op {
	return Op{op: wire.OpCheck, node: Node{Path: path}, version: version, set: true}
}

// Path returns the path of the operation's node.
func (o Op) Path() string { return o.node.Path }

// Data returns the data that the operation writes, nil if it writes none.
func (o Op) Data() []byte { return o.node.Data }

func (o *Op) validate() error {
	switch o.op {
	case wire.OpDelete, wire.OpSetData, wire.OpCheck:
		return ValidatePath(o.node.Path)
	default:
		if !o.set {
			return fmt.Errorf("%w: empty Op, use CreateOp, DeleteOp, SetOp or CheckOp", BadArguments)
		}
		return o.node.validate()
	}
}

func (o *Op) request(root chroot) wire.Record {
	path := root.server(o.node.Path)
	switch o.op {
	case wire.OpDelete:
		return &wire.DeleteRequest{Path: path, Version: o.version}
	case wire.OpSetData:
		return &wire.SetDataRequest{Path: path, Data: o.node.Data, Version: o.version}
	case wire.OpCheck:
		return &wire.CheckRequest{Path: path, Version: o.version}
	default:
		req := o.node.request(root)
		return createBody(o.op, &req)
	}
}

// Result is the outcome of one operation of a Multi.
type Result struct {
	Path string // of creates
	Stat Stat   // of creates (not before 3.8.4) and SetOp
	Zxid int64  // the transaction, the same for all operations of one Multi: the Czxid of what it created
	// Err is nil in the results of a Multi that succeeded. In MultiError.Results it is nil for the operations before
	// the one that failed, which were undone, and RuntimeInconsistency for those after it, which the server did not
	// try.
	Err error
}

// MultiError says which operation made a Multi fail. None was applied.
type MultiError struct {
	Index   int // of the operation
	Op      string
	Path    string
	Err     Code
	Results []Result
}

// Error describes the operation that failed, and why.
func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d, %s %s: %v", e.Index, e.Op, printable(e.Path), e.Err)
}

// Unwrap returns the operation's code, so that errors.Is(err, zk.BadVersion) works.
func (e *MultiError) Unwrap() error { return e.Err }

// Multi executes all operations or none, in one transaction. If the server refuses one, the error wraps a *MultiError
// that says which.
func (s *Session) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	req, err := s.multiRequest(ops)
	if err != nil {
		return nil, refuse(wire.OpMulti, "", err)
	}
	c := s.newCall(wire.OpMulti, "")
	c.ops, c.parts = ops, len(ops)
	if err := s.do(ctx, c, req); err != nil {
		return nil, err
	}
	defer c.free()
	return c.results(), nil
}

func (s *Session) multiRequest(ops []Op) (*wire.MultiRequest, error) {
	req := &wire.MultiRequest{Ops: make([]wire.SubRequest, len(ops))}
	for i := range ops {
		o := &ops[i]
		if err := o.validate(); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		req.Ops[i] = wire.SubRequest{Op: o.op, Request: o.request(s.client.cfg.root)}
	}
	return req, nil
}

// results converts the reply to a multi.
func (c *call) results() []Result {
	results := make([]Result, len(c.multi))
	for i, r := range c.multi {
		results[i] = Result{Stat: Stat(r.Stat), Zxid: c.zxid, Err: codeError(r.Err)}
		if r.Path != "" {
			results[i].Path = c.sess.client.cfg.root.local(r.Path)
		}
	}
	return results
}

// multiFailure returns the error of a multi with a refused operation, or nil if there is none.
func (c *call) multiFailure() error {
	for i, r := range c.multi {
		if r.Op != wire.OpError || r.Err == wire.OK {
			continue
		}
		e := &MultiError{Index: i, Err: Code(r.Err), Results: c.results()}
		if i < len(c.ops) {
			e.Op, e.Path = opName(c.ops[i].op), c.ops[i].node.Path
		}
		return &Error{Op: opName(c.op), Err: e, Outcome: Refused}
	}
	return nil
}

// A ReadOp is one operation of a MultiRead.
type ReadOp struct {
	op   wire.Op
	path string
}

// GetOp reads a node's data and Stat.
func GetOp(path string) ReadOp { return ReadOp{op: wire.OpGetData, path: path} }

// ChildrenOp lists a node's children.
func ChildrenOp(path string) ReadOp { return ReadOp{op: wire.OpGetChildren, path: path} }

// ReadResult is the outcome of one operation of a MultiRead.
type ReadResult struct {
	Data     []byte   // of GetOp
	Stat     Stat     // of GetOp
	Children []string // of ChildrenOp
	Err      error    // nil, or a Code; each operation succeeds or fails on its own
}

// MultiRead reads several nodes in one request. It returns Unimplemented if the server is older than 3.6. Such a server
// also closes the connection, so the client does not ask again.
func (s *Session) MultiRead(ctx context.Context, ops ...ReadOp) ([]ReadResult, error) {
	if s.client.single.Load() {
		return nil, refuse(wire.OpMultiRead, "", Unimplemented)
	}
	req, err := s.multiReadRequest(ops)
	if err != nil {
		return nil, refuse(wire.OpMultiRead, "", err)
	}
	c := s.newCall(wire.OpMultiRead, "")
	c.parts = len(ops)
	if err := s.do(ctx, c, req); err != nil {
		if errors.Is(err, Unimplemented) {
			s.client.single.Store(true)
		}
		return nil, err
	}
	defer c.free()
	return c.readResults(), nil
}

func (s *Session) multiReadRequest(ops []ReadOp) (*wire.MultiRequest, error) {
	req := &wire.MultiRequest{Read: true, Ops: make([]wire.SubRequest, len(ops))}
	bodies := make([]wire.PathWatchRequest, len(ops))
	for i, o := range ops {
		if err := ValidatePath(o.path); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		bodies[i].Path = s.client.cfg.root.server(o.path)
		req.Ops[i] = wire.SubRequest{Op: o.op, Request: &bodies[i]}
	}
	return req, nil
}

// readResults converts the reply to a multiRead.
func (c *call) readResults() []ReadResult {
	results := make([]ReadResult, len(c.multi))
	for i := range c.multi {
		r := &c.multi[i]
		results[i] = ReadResult{Data: r.Data, Stat: Stat(r.Stat), Children: r.Children, Err: codeError(r.Err)}
	}
	return results
}
