package everycall_test

// The calls of packages member and fence.

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

var memberTypes = []reflect.Type{
	reflect.TypeFor[*member.Node](), reflect.TypeFor[*member.Group](), reflect.TypeFor[*member.Membership](),
	reflect.TypeFor[*member.Lease](), reflect.TypeFor[*member.Partitioner](), reflect.TypeFor[*fence.Node](),
}

// onNode returns a call of a node that is in place, and is removed.
func onNode(
	mode member.NodeMode, f func(ctx context.Context, n *member.Node, data []byte) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		n, err := member.NewNode(a.client, a.path, nil, member.NodeConfig{Mode: mode, ACL: a.acl})
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, n, a.data), n.CloseWait(ctx))
	}
}

func awaited(ctx context.Context, n *member.Node, _ []byte) error { return n.Await(ctx) }

// onGroup returns a call of a member that has joined, and leaves.
func onGroup(
	f func(ctx context.Context, g *member.Group, m *member.Membership, data []byte) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		g, err := member.NewGroup(a.client, a.path, member.GroupConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		m, err := g.Join(ctx, "me", nil)
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, g, m, a.data), m.LeaveWait(ctx))
	}
}

func wantMe(members []member.Member, err error) error {
	if err == nil && (len(members) != 1 || members[0].ID != "me") {
		err = errors.New("it does not see the member")
	}
	return err
}

func onLease(count int, f func(ctx context.Context, l *member.Lease) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		l, err := member.NewLease(a.client, a.path, "me", time.Hour, member.LeaseConfig{Count: count, ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, l)
	}
}

func onFence(
	f func(ctx context.Context, n *fence.Node, sess *zk.Session) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		n, err := fence.NewNode(a.path, a.acl)
		if err != nil {
			return err
		}
		if a.client == nil {
			return zk.BadArguments // a fence is given sessions
		}
		sess, err := a.client.Session(ctx)
		if err != nil {
			return err
		}
		return f(ctx, n, sess)
	}
}

var memberCalls = []call{
	{name: "member.Node.Await", do: onNode(member.Ephemeral, awaited), leavesNothing: true},
	{name: "member.Node.Await of a persistent one", do: onNode(member.Persistent, awaited), leavesNothing: true},
	{name: "member.Node.Await of one with a number", do: onNode(member.EphemeralSequential, awaited)},
	{name: "member.Node.Set", takesData: true, do: onNode(
		member.Ephemeral, func(ctx context.Context, n *member.Node, data []byte) error { return n.Set(ctx, data) },
	), leavesNothing: true},
	{name: "member.Node.CloseWait", do: onNode(
		member.Persistent, func(ctx context.Context, n *member.Node, _ []byte) error {
			return errors.Join(n.Await(ctx), n.CloseWait(ctx))
		},
	), leavesNothing: true},
	{name: "member.Group.Join", takesData: true, do: func(ctx context.Context, a args) error {
		g, err := member.NewGroup(a.client, a.path, member.GroupConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		m, err := g.Join(ctx, "me", a.data)
		if err != nil {
			return err
		}
		return m.LeaveWait(ctx)
	}, leavesNothing: true},
	{name: "member.Group.Members", do: onGroup(
		func(ctx context.Context, g *member.Group, _ *member.Membership, _ []byte) error {
			return wantMe(g.Members(ctx))
		},
	), leavesNothing: true},
	{name: "member.Group.Watch", do: onGroup(
		func(ctx context.Context, g *member.Group, _ *member.Membership, _ []byte) error {
			for members, err := range g.Watch(ctx) {
				return wantMe(members, err)
			}
			return errors.New("the watch ended")
		},
	), leavesNothing: true},
	{name: "member.Membership.Await", do: onGroup(
		func(ctx context.Context, _ *member.Group, m *member.Membership, _ []byte) error { return m.Await(ctx) },
	), leavesNothing: true},
	{name: "member.Membership.Set", takesData: true, do: onGroup(
		func(ctx context.Context, _ *member.Group, m *member.Membership, data []byte) error {
			return m.Set(ctx, data)
		},
	), leavesNothing: true},
	{name: "member.Membership.LeaveWait", do: onGroup(
		func(ctx context.Context, _ *member.Group, m *member.Membership, _ []byte) error {
			return m.LeaveWait(ctx)
		},
	), leavesNothing: true},
	{name: "member.Lease.Take", do: onLease(0, func(ctx context.Context, l *member.Lease) error {
		_, err := l.Take(ctx)
		return err
	})},
	{name: "member.Lease.Take of several", do: onLease(2, func(ctx context.Context, l *member.Lease) error {
		_, err := l.Take(ctx)
		return err
	})},
	{name: "member.Lease.Release", do: onLease(0, func(ctx context.Context, l *member.Lease) error {
		_, err := l.Take(ctx)
		return errors.Join(err, l.Release(ctx))
	})},
	{name: "member.Partitioner.Run", do: func(ctx context.Context, a args) error {
		cfg := member.PartitionerConfig{ACL: a.acl}
		p, err := member.NewPartitioner(a.client, a.path, "me", []string{"item"}, cfg)
		if err != nil {
			return err
		}
		owned := errors.New("owned")
		err = p.Run(ctx, func(context.Context, *member.Share) error { return owned })
		if errors.Is(err, owned) {
			return nil
		}
		return err
	}},
	{name: "fence.Node.Write", do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			return shown(ctx, func() error {
				_, err := n.Write(ctx, sess, 7)
				return err
			})
		},
	)},
	{name: "fence.Node.Raise", do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			return shown(ctx, func() error { return n.Raise(ctx, sess, 7) })
		},
	)},
	{name: "fence.Node.Newest", do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			_, err := n.Newest(ctx, sess)
			return err
		},
	)},
}

// shown repeats what only shows a token after a lost reply, as its caller is told to.
func shown(ctx context.Context, show func() error) error {
	for {
		if err := show(); err == nil || ctx.Err() != nil || zk.OutcomeOf(err) != zk.Unknown {
			return err
		}
	}
}
