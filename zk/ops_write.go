package zk

// The operations that write.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Create creates a node with OpenACL. It returns the node's Stat and its path, which includes the counter if the mode
// is sequential.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode Mode) (Created, error) {
	return s.CreateNode(ctx, Node{Path: path, Data: data, Mode: mode})
}

// CreateNode creates a node. It returns Unimplemented for containers and TTL nodes if the server has them disabled.
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
		return fmt.Errorf("%w: TTL must be from 1ms to %dms: %v", BadArguments, int64(wire.MaxTTL), n.TTL)
	case !ttl && n.TTL != 0:
		return fmt.Errorf("%w: TTL without a TTL mode", BadArguments)
	}
	return validateNew(n.Path, n.Mode)
}

func (n *Node) request(root chroot) wire.CreateTTLRequest {
	path := root.server(n.Path)
	if n.Path == "/" && n.Mode.sequential() { // a child of the chroot, not a sibling
		path = root.prefix(n.Path)
	}
	return wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: path, Data: n.Data, ACL: toWire(n.ACL), Flags: int32(n.Mode)},
		TTL:           n.TTL.Milliseconds(),
	}
}

// createBody returns the part of the record that op sends.
func createBody(op wire.Op, r *wire.CreateTTLRequest) wire.Record {
	if op == wire.OpCreateTTL {
		return r
	}
	return &r.CreateRequest
}

func (c *call) created() Created {
	return Created{Path: c.sess.client.cfg.root.local(c.path2), Stat: Stat(c.stat)}
}

// Delete deletes a node without children, if version is -1 or that of its data.
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

// Set replaces a node's data, if version is -1 or that of the old data.
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

// SetACL replaces a node's access control list, if version is -1 or that of the list (Stat.Aversion). A nil list means
// OpenACL.
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

// Reconfig is a change of an ensemble's members: either who joins and leaves, or the complete new list.
type Reconfig struct {
	Joining    string // "server.4=host:2888:3888;2181,…"
	Leaving    string // "3,4"
	NewMembers string // instead of Joining and Leaving
	From       int64  // the version of the configuration to change, or -1 for any
}

// Reconfig changes the ensemble's members and returns the new configuration. Servers disable it by default and then
// return ReconfigDisabled.
func (s *Session) Reconfig(ctx context.Context, r Reconfig) ([]byte, Stat, error) {
	c := s.newCall(wire.OpReconfig, "")
	req := &wire.ReconfigRequest{Joining: r.Joining, Leaving: r.Leaving, NewMembers: r.NewMembers, FromConfig: r.From}
	if err := s.do(ctx, c, req); err != nil {
		return nil, Stat{}, err
	}
	defer c.free()
	return c.data, Stat(c.stat), nil
}
