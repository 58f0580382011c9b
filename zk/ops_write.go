package zk

// The operations that write.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Create makes a node that is open to everybody. The answer holds the path with the counter, if mode is sequential, and the Stat.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode Mode) (Created, error) {
	return s.CreateNode(ctx, Node{Path: path, Data: data, Mode: mode})
}

// CreateNode makes a node. Containers and TTL nodes need servers that have them switched on (Unimplemented).
func (s *Session) CreateNode(ctx context.Context, n Node) (Created, error) {
	op := n.Mode.op()
	if err := n.validate(); err != nil {
		return Created{}, refuse(op, n.Path, err)
	}
	c := s.newCall(op, n.Path)
	c.req.create = n.request(s.client.cfg.root)
	if err := s.do(ctx, c, createBody(op, &c.req.create)); err != nil {
		return Created{}, err
	}
	defer c.free()
	return c.created(), nil
}

func (n *Node) validate() error {
	switch ttl := n.Mode.ttl(); {
	case n.Mode < Persistent || n.Mode > PersistentSequentialTTL:
		return fmt.Errorf("%w: unknown mode %d", BadArguments, n.Mode)
	case ttl && (n.TTL < time.Millisecond || n.TTL.Milliseconds() > wire.MaxTTL):
		return fmt.Errorf("%w: a TTL mode needs a TTL from 1ms to %dms, not %v", BadArguments, int64(wire.MaxTTL), n.TTL)
	case !ttl && n.TTL != 0:
		return fmt.Errorf("%w: a TTL needs a TTL mode", BadArguments)
	}
	return validateNew(n.Path, n.Mode)
}

func (n *Node) request(root chroot) wire.CreateTTLRequest {
	path := root.server(n.Path)
	if n.Path == "/" && n.Mode.sequential() { // the root's child, not a sibling of the chroot
		path = root.prefix(n.Path)
	}
	return wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: path, Data: n.Data, ACL: toWire(n.ACL), Flags: int32(n.Mode)},
		TTL:           n.TTL.Milliseconds(),
	}
}

// createBody returns the part of the record that op has.
func createBody(op wire.Op, r *wire.CreateTTLRequest) wire.Record {
	if op == wire.OpCreateTTL {
		return r
	}
	return &r.CreateRequest
}

func (c *call) created() Created {
	return Created{Path: c.sess.client.cfg.root.local(c.path2), Stat: Stat(c.stat)}
}

// Delete removes a node that has no children, if version is that of its data, or -1.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	if err := ValidatePath(path); err != nil {
		return refuse(wire.OpDelete, path, err)
	}
	c := s.newCall(wire.OpDelete, path)
	c.req.remove = wire.DeleteRequest{Path: s.client.cfg.root.server(path), Version: version}
	if err := s.do(ctx, c, &c.req.remove); err != nil {
		return err
	}
	c.free()
	return nil
}

// Set replaces a node's data, if version is that of its data, or -1.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := ValidatePath(path); err != nil {
		return Stat{}, refuse(wire.OpSetData, path, err)
	}
	c := s.newCall(wire.OpSetData, path)
	c.req.set = wire.SetDataRequest{Path: s.client.cfg.root.server(path), Data: data, Version: version}
	if err := s.do(ctx, c, &c.req.set); err != nil {
		return Stat{}, err
	}
	defer c.free()
	return Stat(c.stat), nil
}

// SetACL replaces a node's access control list, if version is the list's (Stat.Aversion), or -1. A nil list opens the node.
func (s *Session) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	if err := ValidatePath(path); err != nil {
		return Stat{}, refuse(wire.OpSetACL, path, err)
	}
	c := s.newCall(wire.OpSetACL, path)
	req := &wire.SetACLRequest{Path: s.client.cfg.root.server(path), ACL: toWire(acl), Version: version}
	if err := s.do(ctx, c, req); err != nil {
		return Stat{}, err
	}
	defer c.free()
	return Stat(c.stat), nil
}

// Reconfig is a change of an ensemble's members: joining and leaving ones, or all of them anew.
type Reconfig struct {
	Joining    string // "server.4=host:2888:3888;2181,…"
	Leaving    string // "3,4"
	NewMembers string // instead of the other two
	From       int64  // the configuration's version that the change is for, -1 for any
}

// Reconfig changes the ensemble's members and returns the new configuration. It is switched off by default (ReconfigDisabled).
func (s *Session) Reconfig(ctx context.Context, r Reconfig) ([]byte, Stat, error) {
	c := s.newCall(wire.OpReconfig, "")
	req := &wire.ReconfigRequest{Joining: r.Joining, Leaving: r.Leaving, NewMembers: r.NewMembers, FromConfig: r.From}
	if err := s.do(ctx, c, req); err != nil {
		return nil, Stat{}, err
	}
	defer c.free()
	return c.data, Stat(c.stat), nil
}
