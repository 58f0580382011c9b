package everycall_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// What a stranger has made open to all, at the path or above it, is refused and named, and nothing of ours stays in it.
// It can be accepted. A path below a node of our own is ours, and is not removed when it is empty.
func TestPathThatGrantsMoreThanTheACLIsRefused(t *testing.T) {
	t.Parallel()
	type options struct {
		path string
		acl  []zk.ACL
		any  bool
	}
	for name, take := range map[string]func(ctx context.Context, c *zk.Client, o options) error{
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
		"elect": func(ctx context.Context, c *zk.Client, o options) error {
			e, err := elect.NewCandidate(c, o.path, "host", elect.Config{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			l, err := e.Campaign(ctx)
			if err != nil {
				return err
			}
			return l.ResignWait(ctx)
		},
		"member.Group": func(ctx context.Context, c *zk.Client, o options) error {
			g, err := member.NewGroup(c, o.path, member.GroupConfig{ACL: o.acl, AnyACL: o.any})
			if err != nil {
				return err
			}
			m, err := g.Join(ctx, "me", nil)
			if err != nil {
				return err
			}
			return m.LeaveWait(ctx)
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
				mine := options{acl: zk.CreatorACL()}
				for path, wide := range map[string]string{"/open/dir": "/open", "/open/new": "/open"} {
					mine.path = path
					err := take(ctx, client, mine)
					if !errors.Is(err, attempt.ErrWider) || !strings.Contains(err.Error(), wide) {
						t.Errorf("%s: got %v, want ErrWider that names %s", path, err, wide)
					}
				}
				w.NoNodes(t, "/open/dir")
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
