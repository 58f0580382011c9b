package zk

// The operations that read.

import (
	"context"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// read sends a request whose body is a path and a watch flag that is not set.
func (s *Session) read(ctx context.Context, op wire.Op, path string) (*call, error) {
	if err := ValidatePath(path); err != nil {
		return nil, refuse(op, path, err)
	}
	c := s.newCall(op, path)
	c.req.watch = wire.PathWatchRequest{Path: s.client.cfg.root.server(path)}
	if err := s.do(ctx, c, &c.req.watch); err != nil {
		return nil, err
	}
	return c, nil
}

// readPath sends a request whose body is a path.
func (s *Session) readPath(ctx context.Context, op wire.Op, path string) (*call, error) {
	if err := ValidatePath(path); err != nil {
		return nil, refuse(op, path, err)
	}
	c := s.newCall(op, path)
	c.req.path = wire.PathRequest{Path: s.client.cfg.root.server(path)}
	if err := s.do(ctx, c, &c.req.path); err != nil {
		return nil, err
	}
	return c, nil
}

// Exists tells whether a node exists, with its Stat if so. That it does not is no error.
func (s *Session) Exists(ctx context.Context, path string) (Stat, bool, error) {
	c, err := s.read(ctx, wire.OpExists, path)
	if err != nil {
		return Stat{}, false, err
	}
	defer c.free()
	return Stat(c.stat), c.code == wire.OK, nil
}

// Get returns a node's data and Stat. Null data is nil, empty data is not.
func (s *Session) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	c, err := s.read(ctx, wire.OpGetData, path)
	if err != nil {
		return nil, Stat{}, err
	}
	defer c.free()
	return c.data, Stat(c.stat), nil
}

// Children returns the names of a node's children, in no order, and the node's Stat.
func (s *Session) Children(ctx context.Context, path string) ([]string, Stat, error) {
	c, err := s.read(ctx, wire.OpGetChildren2, path)
	if err != nil {
		return nil, Stat{}, err
	}
	defer c.free()
	return c.names, Stat(c.stat), nil
}

// GetACL returns a node's access control list and Stat.
func (s *Session) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	c, err := s.readPath(ctx, wire.OpGetACL, path)
	if err != nil {
		return nil, Stat{}, err
	}
	defer c.free()
	return fromWire(c.acl), Stat(c.stat), nil
}

// Sync waits until the connected server has seen all that the ensemble had done when it was called, so that the reads after it show
// at least that. The path is of no importance.
func (s *Session) Sync(ctx context.Context, path string) error {
	c, err := s.readPath(ctx, wire.OpSync, path)
	if err != nil {
		return err
	}
	c.free()
	return nil
}

// DescendantCount returns how many nodes there are below path. Servers before 3.6 do not know it (Unimplemented).
func (s *Session) DescendantCount(ctx context.Context, path string) (int, error) {
	c, err := s.readPath(ctx, wire.OpGetAllChildren, path)
	if err != nil {
		return 0, err
	}
	defer c.free()
	return int(c.count), nil
}

// Ephemerals returns the paths of this session's ephemeral nodes that begin with prefix, which need not be a whole path; "" means
// all. Servers before 3.6 do not know it (Unimplemented).
func (s *Session) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	c := s.newCall(wire.OpGetEphemerals, prefix)
	root := s.client.cfg.root
	if err := s.do(ctx, c, &wire.EphemeralsRequest{Prefix: root.prefix(prefix)}); err != nil {
		return nil, err
	}
	defer c.free()
	if root == "" {
		return c.names, nil
	}
	names := make([]string, 0, len(c.names))
	for _, name := range c.names {
		if root.holds(name) {
			names = append(names, root.local(name))
		}
	}
	return names, nil
}

// WhoAmI returns the identities that the server has for this connection: always the address, in scheme "ip", and what was added.
// Digests come without their hash. Servers before 3.7 do not know it (Unimplemented).
func (s *Session) WhoAmI(ctx context.Context) ([]ID, error) {
	c := s.newCall(wire.OpWhoAmI, "")
	if err := s.do(ctx, c, nil); err != nil {
		return nil, err
	}
	defer c.free()
	ids := make([]ID, len(c.ids))
	for i, id := range c.ids {
		ids[i] = ID(id)
	}
	return ids, nil
}

// Config returns the ensemble's configuration: the data of /zookeeper/config, which no chroot changes.
func (s *Session) Config(ctx context.Context) ([]byte, Stat, error) { return s.Get(ctx, configPath) }
