package zk

// Requests on whatever session is live: the methods of Client that Session has, too.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// live runs a request on the live session, for which it waits, and on the next one if that session ends before the
// request was sent. So a request is sent once. Only one that may be repeated is sent again, after a connection or a
// session that ended before the reply.
func live[T any](ctx context.Context, c *Client, op wire.Op, path string, request func(*Session) (T, error)) (T,
	error,
) {
	return onLive(ctx, c, op, path, !op.Writes(), request)
}

func onLive[T any](
	ctx context.Context, c *Client, op wire.Op, path string, repeat bool, request func(*Session) (T, error),
) (T, error) {
	for {
		s, err := c.Session(ctx)
		if err != nil {
			var none T
			return none, refuse(op, path, err)
		}
		value, err := request(s)
		switch cause := s.Err(); {
		case err == nil, ctx.Err() != nil:
			return value, err
		case cause != nil && errors.Is(err, cause) && (repeat || OutcomeOf(err) == NotSent):
		case repeat && brokenOff(err):
		default:
			return value, err
		}
	}
}

// Create is Session.Create on the live session; see Client.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode Mode) (Created, error) {
	return c.CreateNode(ctx, Node{Path: path, Data: data, Mode: mode})
}

// CreateNode is Session.CreateNode on the live session; see Client. An ephemeral node belongs to that session: the next
// one does not create it again.
func (c *Client) CreateNode(ctx context.Context, n Node) (Created, error) {
	return live(ctx, c, n.Mode.op(), n.Path, func(s *Session) (Created, error) { return s.CreateNode(ctx, n) })
}

// Get is Session.Get on the live session; see Client.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	r, err := live(ctx, c, wire.OpGetData, path, func(s *Session) (Data, error) {
		data, stat, err := s.Get(ctx, path)
		return Data{Data: data, Stat: stat}, err
	})
	return r.Data, r.Stat, err
}

// Set is Session.Set on the live session; see Client.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	return live(ctx, c, wire.OpSetData, path, func(s *Session) (Stat, error) { return s.Set(ctx, path, data, version) })
}

// Delete is Session.Delete on the live session; see Client.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	_, err := live(ctx, c, wire.OpDelete, path, func(s *Session) (struct{}, error) {
		return struct{}{}, s.Delete(ctx, path, version)
	})
	return err
}

// Exists is Session.Exists on the live session; see Client.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	r, err := live(ctx, c, wire.OpExists, path, func(s *Session) (Existence, error) {
		stat, exists, err := s.Exists(ctx, path)
		return Existence{Stat: stat, Exists: exists}, err
	})
	return r.Stat, r.Exists, err
}

// Children is Session.Children on the live session; see Client.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	r, err := live(ctx, c, wire.OpGetChildren2, path, func(s *Session) (Children, error) {
		names, stat, err := s.Children(ctx, path)
		return Children{Names: names, Stat: stat}, err
	})
	return r.Names, r.Stat, err
}

// GetACL is Session.GetACL on the live session; see Client.
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	var stat Stat
	acl, err := live(ctx, c, wire.OpGetACL, path, func(s *Session) (acl []ACL, err error) {
		acl, stat, err = s.GetACL(ctx, path)
		return acl, err
	})
	return acl, stat, err
}

// SetACL is Session.SetACL on the live session; see Client.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	return live(ctx, c, wire.OpSetACL, path, func(s *Session) (Stat, error) {
		return s.SetACL(ctx, path, acl, version)
	})
}

// Multi is Session.Multi on the live session; see Client.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	return live(ctx, c, wire.OpMulti, "", func(s *Session) ([]Result, error) { return s.Multi(ctx, ops...) })
}

// MultiRead is Session.MultiRead on the live session; see Client.
func (c *Client) MultiRead(ctx context.Context, ops ...ReadOp) ([]ReadResult, error) {
	return live(ctx, c, wire.OpMultiRead, "", func(s *Session) ([]ReadResult, error) {
		return s.MultiRead(ctx, ops...)
	})
}

// Sync is Session.Sync on the live session; see Client. It holds for reads of that session.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := live(ctx, c, wire.OpSync, path, func(s *Session) (struct{}, error) {
		return struct{}{}, s.Sync(ctx, path)
	})
	return err
}

// CreateAll is Session.CreateAll on the live session; see Client.
func (c *Client) CreateAll(ctx context.Context, n Node, parents Parents) (Created, error) {
	return live(ctx, c, n.Mode.op(), n.Path, func(s *Session) (Created, error) { return s.CreateAll(ctx, n, parents) })
}

// DeleteAll is Session.DeleteAll, and goes on with the next session when one ends.
func (c *Client) DeleteAll(ctx context.Context, path string) (deleted int, err error) {
	if err := c.mayDeleteAll(path); err != nil {
		return 0, err
	}
	var d deletion
	_, err = onLive(ctx, c, wire.OpDelete, path, true, func(s *Session) (struct{}, error) {
		return struct{}{}, d.run(ctx, s, path)
	})
	return d.deleted, d.stopped(path, err)
}
