package everycall_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// onTheWay are the recipes whose path is only on the way to their nodes: others may read and set it.
var onTheWay = []string{
	"lock.Simple", "member.Node with a number", "member.Group", "member.Partitioner", "classic.KazooLocking",
	"member.Group.Members", "member.Group.Watch", "discovery.Registry.Register", "discovery.Registry.Services",
	"discovery.Registry.Instances", "discovery.Registry.Watch", "discovery.Provider",
}

// What a stranger has made open to all, at the path or above it, is refused and named, and nothing of ours stays in it.
// It can be accepted. A path below a node of our own is ours, and is not removed when it is empty.
func TestPathThatGrantsMoreThanTheACLIsRefused(t *testing.T) {
	t.Parallel()
	type options struct {
		path string
		acl  []zk.ACL
		any  bool
	}
	type taking = func(ctx context.Context, c *zk.Client, o options) error
	// What only reads comes before a call that makes the path, and is refused itself.
	late := func(reads bool, err error) error {
		if reads && err != nil {
			return errors.New("not refused before: " + err.Error())
		}
		return err
	}
	election := func(read func(context.Context, *elect.Candidate) error) taking {
		return func(ctx context.Context, c *zk.Client, o options) error {
			e, err := elect.NewCandidate(c, o.path, "host", elect.Config{ACL: o.acl, AnyACL: o.any})
			if err == nil && read != nil {
				err = read(ctx, e)
			}
			if err != nil {
				return err
			}
			l, err := e.Campaign(ctx)
			if err != nil {
				return late(read != nil, err)
			}
			return l.ResignWait(ctx)
		}
	}
	group := func(read func(context.Context, *member.Group) error) taking {
		return func(ctx context.Context, c *zk.Client, o options) error {
			g, err := member.NewGroup(c, o.path, member.GroupConfig{ACL: o.acl, AnyACL: o.any})
			if err == nil && read != nil {
				err = read(ctx, g)
			}
			if err != nil {
				return err
			}
			m, err := g.Join(ctx, "me", nil)
			if err != nil {
				return late(read != nil, err)
			}
			return m.LeaveWait(ctx)
		}
	}
	registry := func(read func(context.Context, *discovery.Registry) error) taking {
		return func(ctx context.Context, c *zk.Client, o options) error {
			r, err := discovery.NewRegistry(c, o.path, discovery.Config{ACL: o.acl, AnyACL: o.any})
			if err == nil && read != nil {
				err = read(ctx, r)
			}
			if err != nil {
				return err
			}
			g, err := r.Register(ctx, instance(nil))
			if err != nil {
				return late(read != nil, err)
			}
			return g.UnregisterWait(ctx)
		}
	}
	for name, take := range map[string]taking{
		"lock.Mutex": func(ctx context.Context, c *zk.Client, o options) error {
			m, err := lock.NewMutex(c, o.path, lock.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			h, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			return h.UnlockWait(ctx)
		},
		"lock.Simple": func(ctx context.Context, c *zk.Client, o options) error {
			m, err := lock.NewSimple(c, o.path+"/node", lock.SimpleConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			h, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			return h.UnlockWait(ctx)
		},
		"lock.Semaphore": func(ctx context.Context, c *zk.Client, o options) error {
			cfg := lock.SemaphoreConfig{ACL: o.acl, AnyACL: o.any}
			s, err := lock.NewSemaphore(c, o.path, lock.AgreedLimit(2), cfg)
			if err != nil {
				return err
			}
			h, err := s.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			return h.UnlockWait(ctx)
		},
		"elect": election(nil),
		"elect.Candidate.Observe": election(func(ctx context.Context, c *elect.Candidate) error {
			for _, err := range c.Observe(ctx) {
				return err
			}
			return errors.New("the iteration ended")
		}),
		"elect.Candidate.Participants": election(func(ctx context.Context, c *elect.Candidate) error {
			_, err := c.Participants(ctx)
			return err
		}),
		"member.Group": group(nil),
		"member.Group.Members": group(func(ctx context.Context, g *member.Group) error {
			_, err := g.Members(ctx)
			return err
		}),
		"member.Group.Watch": group(func(ctx context.Context, g *member.Group) error {
			for _, err := range g.Watch(ctx) {
				return err
			}
			return errors.New("the iteration ended")
		}),
		"discovery.Registry.Register": registry(nil),
		"discovery.Registry.Services": registry(func(ctx context.Context, r *discovery.Registry) error {
			_, err := r.Services(ctx)
			return err
		}),
		"discovery.Registry.Instances": registry(func(ctx context.Context, r *discovery.Registry) error {
			_, err := r.Instances(ctx, "web")
			return err
		}),
		"discovery.Registry.Watch": registry(func(ctx context.Context, r *discovery.Registry) error {
			for _, err := range r.Watch(ctx, "web") {
				return err
			}
			return errors.New("the iteration ended")
		}),
		"discovery.Provider": registry(func(ctx context.Context, r *discovery.Registry) error {
			p, err := r.OpenProvider("web", discovery.ProviderConfig{})
			if err != nil {
				return err
			}
			defer p.Close()
			_, err = p.Instances(ctx)
			return err
		}),
		"member.Node": func(ctx context.Context, c *zk.Client, o options) error {
			cfg := member.NodeConfig{Mode: member.Persistent, ACL: o.acl, AnyACL: o.any}
			n, err := member.OpenNode(c, o.path, []byte("kept"), cfg)
			if err != nil {
				return err
			}
			err = n.Await(ctx)
			n.Detach()
			return err
		},
		"member.Node with a number": func(ctx context.Context, c *zk.Client, o options) error {
			cfg := member.NodeConfig{Mode: member.EphemeralSequential, ACL: o.acl, AnyACL: o.any}
			n, err := member.OpenNode(c, o.path+"/node-", nil, cfg)
			if err != nil {
				return err
			}
			return errors.Join(n.Await(ctx), n.CloseWait(ctx))
		},
		"member.Lease": func(ctx context.Context, c *zk.Client, o options) error {
			l, err := member.NewLease(c, o.path, "me", time.Minute, member.LeaseConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			if _, err = l.Take(ctx); err != nil {
				return err
			}
			return l.Release(ctx)
		},
		"member.Partitioner": func(ctx context.Context, c *zk.Client, o options) error {
			cfg := member.PartitionerConfig{ACL: o.acl, AnyACL: o.any}
			p, err := member.NewPartitioner(c, o.path, "me", []string{"item"}, cfg)
			if err != nil {
				return err
			}
			owned := errors.New("owned")
			err = p.Run(ctx, func(context.Context, *member.Share) error { return owned })
			if errors.Is(err, owned) {
				return nil
			}
			return err
		},
		"counter.Counter": func(ctx context.Context, c *zk.Client, o options) error {
			n, err := counter.New(c, o.path, counter.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			_, err = n.Add(ctx, 1)
			return errors.Join(err, n.Close(ctx))
		},
		"counter.Sequence": func(ctx context.Context, c *zk.Client, o options) error {
			s, err := counter.NewSequence(c, o.path, counter.SequenceConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			_, err = s.Next(ctx)
			return errors.Join(err, s.Close(ctx))
		},
		"counter.Value": func(ctx context.Context, c *zk.Client, o options) error {
			v, err := counter.NewValue(c, o.path, counter.ValueConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			return errors.Join(v.Set(ctx, []byte("x")), v.Close(ctx))
		},
		"counter.Value that is read": func(ctx context.Context, c *zk.Client, o options) error {
			v, err := counter.NewValue(c, o.path, counter.ValueConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			for _, err = range v.Watch(ctx) {
				break
			}
			_, readErr := v.Get(ctx)
			return errors.Join(err, readErr, v.Set(ctx, nil))
		},
		"fence.Node": func(ctx context.Context, c *zk.Client, o options) error {
			sess, err := c.Session(ctx)
			if err != nil {
				return err
			}
			n, err := fence.NewNode(o.path, o.acl)
			if err != nil {
				return err
			}
			n.AnyACL = o.any
			return n.Raise(ctx, sess, 1)
		},
		"barrier.Barrier": func(ctx context.Context, c *zk.Client, o options) error {
			b, err := barrier.NewBarrier(c, o.path, barrier.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			return b.Set(ctx)
		},
		"barrier.Double": func(ctx context.Context, c *zk.Client, o options) error {
			d, err := barrier.NewDouble(c, o.path, 1, barrier.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
		"barrier.Rounds": func(ctx context.Context, c *zk.Client, o options) error {
			cfg := barrier.RoundsConfig{Parties: 1, ACL: o.acl, AnyACL: o.any}
			r, err := barrier.NewRounds(c, o.path, cfg)
			if err != nil {
				return err
			}
			p, err := r.Join(ctx)
			if err != nil {
				return err
			}
			_, err = p.Arrive(ctx)
			return errors.Join(err, p.Leave(ctx))
		},
		"queue.Queue": func(ctx context.Context, c *zk.Client, o options) error {
			q, err := queue.New(c, o.path, queue.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			_, err = q.Put(ctx, queue.Message{Body: []byte("x")})
			return errors.Join(err, q.Close(ctx))
		},
		"classic.Curator": func(ctx context.Context, c *zk.Client, o options) error {
			q, err := classic.NewCurator(c, o.path, classic.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			return q.Put(ctx, []byte("x"))
		},
		"classic.KazooLocking": func(ctx context.Context, c *zk.Client, o options) error {
			q, err := classic.NewKazooLocking(c, o.path, classic.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			return q.Put(ctx, []byte("x"), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				cfg := w.Config(timeout)
				cfg.Auth = []zk.Auth{zk.Digest("ann", "secret")}
				client, err := zk.Open(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = client.Close() }()
				stranger := w.Session(t, timeout)
				for _, p := range []string{"/open", "/open/dir"} {
					if _, err := stranger.Create(ctx, p, nil, zk.Persistent); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := client.CreateNode(ctx, zk.Node{Path: "/mine", ACL: zk.CreatorACL()}); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Create(ctx, "/mine/wide", nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
				others := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermWrite, ID: zk.OpenACL()[0].ID})
				if _, err := client.CreateNode(ctx, zk.Node{Path: "/mine/written", ACL: others}); err != nil {
					t.Fatal(err)
				}
				mine := options{acl: zk.CreatorACL()}
				for path, wide := range map[string]string{
					"/open/dir": "/open", "/open/new": "/open",
					"/mine/wide": "/mine/wide", "/mine/written": "/mine/written",
				} {
					mine.path = path
					err := take(ctx, client, mine)
					if slices.Contains(onTheWay, name) && wide == "/mine/written" {
						if err != nil {
							t.Errorf("%s: %v", path, err)
						}
						continue
					}
					if !errors.Is(err, attempt.ErrWider) || !strings.Contains(err.Error(), wide) {
						t.Errorf("%s: got %v, want ErrWider that names %s", path, err, wide)
					}
				}
				w.NoNodes(t, "/open/dir")
				if names, _, err := client.Children(ctx, "/open"); err != nil || len(names) > 1 {
					t.Errorf("got nodes %q, %v, want that nothing was made", names, err)
				}
				accepted := options{path: "/open/dir", acl: mine.acl, any: true}
				if err := take(ctx, client, accepted); err != nil {
					t.Error(err)
				}
				mine.path = "/mine/dir"
				if err := take(ctx, client, mine); err != nil {
					t.Error(err)
				}
				_, err = stranger.Create(ctx, "/mine/dir/x", nil, zk.Persistent)
				if !errors.Is(err, zk.NoAuth) {
					t.Errorf("got %v, want that a stranger may not create below our path", err)
				}
			})
		})
	}
}
