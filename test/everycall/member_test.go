package everycall_test

// The calls of packages member and fence.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"reflect"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

var memberTypes = []reflect.Type{
	reflect.TypeFor[*member.Node](), reflect.TypeFor[*member.Group](), reflect.TypeFor[*member.Membership](),
	reflect.TypeFor[*member.Lease](), reflect.TypeFor[*member.Partitioner](), reflect.TypeFor[*fence.Node](),
}

// onNode returns a call of a node that is in place with the given data, and is removed.
func onNode(
	mode member.NodeMode, f func(ctx context.Context, n *member.Node, data []byte) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		n, err := member.OpenNode(a.client, a.path, a.data, member.NodeConfig{Mode: mode, ACL: a.acl})
		if err != nil {
			return err
		}
		if err := f(ctx, n, a.data); err != nil {
			return errors.Join(err, n.CloseWait(ctx))
		}
		return errors.Join(wantAt(ctx, a.client, n.Path(), a.data), n.CloseWait(ctx))
	}
}

// wantAt returns an error unless the node at path holds data.
func wantAt(ctx context.Context, client *zk.Client, path string, want []byte) error {
	got, err := attempt.Run(ctx, client, func(sess *zk.Session) ([]byte, error) {
		got, _, err := sess.Get(ctx, path)
		return got, err
	})
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("got %q at %s, want %q", got, path, want)
	}
	return err
}

func wantNoneNumbered(w *world) error {
	w.NoNodes(w.t, stdpath.Dir(path))
	return nil
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
		m, err := g.Join(ctx, "me", []byte("mine"))
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
		if _, err := l.Take(ctx); err != nil {
			return err
		}
		return f(ctx, l)
	}
}

// wantFree returns a check that so many others can take a lease of several.
func wantFree(count, want int) func(*world) error {
	return func(w *world) error {
		for i := range want + 1 {
			cfg := member.LeaseConfig{Count: count}
			l, err := member.NewLease(w.Client(w.t, timeout), path, fmt.Sprint("other", i), time.Hour, cfg)
			if err != nil {
				return err
			}
			if _, err = l.Take(w.t.Context()); i == want && errors.Is(err, member.ErrLeased) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%d others can take a lease, want %d: %w", i, want, err)
			}
		}
		return errors.New("all can take a lease")
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
		sess, err := a.client.Session(ctx)
		if err != nil {
			return err
		}
		return f(ctx, n, sess)
	}
}

// noClient is what a fence allows: it is given sessions.
var noClient = []string{"no client"}

var memberCalls = []call{
	{name: "member.Node.Await", takesData: true, do: onNode(member.Ephemeral, awaited), done: wantNone},
	{
		name: "member.Node.Await of a persistent one", takesData: true, do: onNode(member.Persistent, awaited),
		done: wantNone,
	},
	{
		name: "member.Node.Await of one with a number", takesData: true,
		do: onNode(member.EphemeralSequential, awaited), done: wantNoneNumbered,
	},
	{
		name: "member.Node.Await of a persistent one with a number", takesData: true,
		do: onNode(member.PersistentSequential, awaited), done: wantNoneNumbered,
	},
	{name: "member.Node.Set", takesData: true, do: func(ctx context.Context, a args) error {
		n, err := member.OpenNode(a.client, a.path, nil, member.NodeConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		err = n.Set(ctx, a.data)
		if err == nil {
			err = wantAt(ctx, a.client, a.path, a.data)
		}
		return errors.Join(err, n.CloseWait(ctx))
	}, done: wantNone},
	{name: "member.Node.CloseWait", do: func(ctx context.Context, a args) error {
		n, err := member.OpenNode(a.client, a.path, nil, member.NodeConfig{Mode: member.Persistent, ACL: a.acl})
		if err != nil {
			return err
		}
		return errors.Join(n.Await(ctx), n.CloseWait(ctx))
	}, done: wantNone},
	{name: "member.Group.Join", takesData: true, do: func(ctx context.Context, a args) error {
		g, err := member.NewGroup(a.client, a.path, member.GroupConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		m, err := g.Join(ctx, "me", a.data)
		if err != nil {
			return err
		}
		return errors.Join(wantAt(ctx, a.client, a.path+"/me", a.data), m.LeaveWait(ctx))
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
		func(ctx context.Context, g *member.Group, m *member.Membership, _ []byte) error {
			if err := m.Await(ctx); err != nil {
				return err
			}
			return wantMe(g.Members(ctx))
		},
	), leavesNothing: true},
	{name: "member.Membership.Set", takesData: true, do: onGroup(
		func(ctx context.Context, g *member.Group, m *member.Membership, data []byte) error {
			if err := m.Set(ctx, data); err != nil {
				return err
			}
			members, err := g.Members(ctx)
			if err == nil && (len(members) != 1 || !bytes.Equal(members[0].Data, data)) {
				err = fmt.Errorf("got members %v, want one with the data", members)
			}
			return err
		},
	), leavesNothing: true},
	{name: "member.Membership.LeaveWait", do: onGroup(
		func(ctx context.Context, _ *member.Group, m *member.Membership, _ []byte) error {
			return m.LeaveWait(ctx)
		},
	), leavesNothing: true},
	{
		name: "member.Lease.Take", do: onLease(0, func(context.Context, *member.Lease) error { return nil }),
		done: wantWhatLasts("lease"),
	},
	{name: "member.Lease.Take again", do: onLease(0, func(ctx context.Context, l *member.Lease) error {
		_, err := l.Take(ctx)
		return err
	}), done: wantWhatLasts("lease")},
	{
		name: "member.Lease.Take of several", do: onLease(2, func(context.Context, *member.Lease) error { return nil }),
		done: wantFree(2, 1),
	},
	{name: "member.Lease.Release", do: onLease(0, func(ctx context.Context, l *member.Lease) error {
		return l.Release(ctx)
	}), done: wantFree(0, 1)},
	{name: "member.Lease.Release of several", do: onLease(2, func(ctx context.Context, l *member.Lease) error {
		return l.Release(ctx)
	}), done: wantFree(2, 2)},
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
		if err == nil && ctx.Err() == nil {
			err = errors.New("it ended without the error of the work")
		}
		return err
	}, done: wantNobody, runs: true},
	{name: "fence.Node.Write", allows: noClient, do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			return shown(ctx, func() error {
				_, err := n.Write(ctx, sess, 7)
				return err
			})
		},
	), done: wantWhatLasts("fence")},
	{name: "fence.Node.Write together with others", allows: noClient, do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			other := "/" + stdpath.Base(n.Path()) // beside what the call makes
			return shown(ctx, func() error {
				results, err := n.Write(ctx, sess, 7, zk.CreateOp(other, nil, zk.Persistent))
				if err == nil && len(results) != 1 {
					err = fmt.Errorf("got %d results, want 1", len(results))
				}
				if errors.Is(err, zk.NodeExists) { // a lost reply: both were done, or neither
					newest, err := n.Newest(ctx, sess)
					if err == nil && newest != 7 {
						err = fmt.Errorf("got token %d, want 7: the write was done without it", newest)
					}
					return err
				}
				return err
			})
		},
	), done: wantWhatLasts("fence")},
	{name: "fence.Node.Raise", allows: noClient, do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			return shown(ctx, func() error { return n.Raise(ctx, sess, 7) })
		},
	), done: wantWhatLasts("fence")},
	{name: "fence.Node.Newest", allows: noClient, do: onFence(
		func(ctx context.Context, n *fence.Node, sess *zk.Session) error {
			err := shown(ctx, func() error { return n.Raise(ctx, sess, 7) })
			if err != nil {
				return err
			}
			newest, err := n.Newest(ctx, sess)
			if err == nil && newest != 7 {
				err = fmt.Errorf("got token %d, want 7", newest)
			}
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
