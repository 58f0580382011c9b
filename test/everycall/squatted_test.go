package everycall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

type onACL func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error

// Anyone can have put a holder where anyone may write: that the lock is held is no answer then.
//
// Promise: 1
func TestHolderWhereOthersMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	const wide = "/mine/wide"
	for name, take := range map[string]onACL{
		"Mutex.TryLock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			m, err := lock.NewMutex(c, path, lock.Config{ACL: acl})
			if err == nil {
				_, err = m.TryLock(ctx)
			}
			return err
		},
		"RWMutex.TryLock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			m, err := lock.NewRWMutex(c, path, lock.RWConfig{ACL: acl})
			if err == nil {
				_, err = m.TryLock(ctx)
			}
			return err
		},
		"RWMutex.TryRLock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			m, err := lock.NewRWMutex(c, path, lock.RWConfig{ACL: acl})
			if err == nil && acl == nil {
				_, err = m.Lock(ctx)
			}
			if err == nil && acl != nil {
				_, err = m.TryRLock(ctx)
			}
			return err
		},
		"Set.TryLock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			s, err := lock.NewSet(c, []string{path, "/mine/another"}, lock.SetConfig{ACL: acl})
			if err == nil && acl != nil {
				_, err = s.TryLock(ctx)
			}
			m, newErr := lock.NewMutex(c, path, lock.Config{ACL: acl})
			if err == nil && acl == nil {
				_, err = m.Lock(ctx)
			}
			return errors.Join(err, newErr)
		},
		"Simple.TryLock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			m, err := lock.NewSimple(c, path+"/node", lock.SimpleConfig{ACL: acl})
			if err == nil {
				_, err = m.TryLock(ctx)
			}
			return err
		},
		"Simple.Lock": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			m, err := lock.NewSimple(c, path+"/node", lock.SimpleConfig{ACL: acl})
			if err == nil {
				_, err = m.Lock(ctx)
			}
			return err
		},
		"Candidate.TryCampaign": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			e, err := elect.NewCandidate(c, path, "host", elect.Config{ACL: acl})
			if err == nil {
				_, err = e.TryCampaign(ctx)
			}
			return err
		},
		// The line is beside the semaphore's path.
		"Semaphore.TryAcquire": func(ctx context.Context, c *zk.Client, path string, acl []zk.ACL) error {
			sem := strings.TrimSuffix(path, "-__lock__")
			cfg := lock.SemaphoreConfig{ACL: acl, Layout: lock.Kazoo}
			s, err := lock.NewSemaphore(c, sem, lock.StoredLimit(1), cfg)
			if err != nil {
				return err
			}
			if acl == nil {
				name := path + "/0f8fad5bd9cb469fa16570867728950e__lock__"
				_, err = c.Create(ctx, name, nil, zk.EphemeralSequential)
				return err
			}
			_, err = s.TryAcquire(ctx, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cfg := w.Config(timeout)
				cfg.Auth = []zk.Auth{zk.Digest("ann", "secret")}
				client, err := zk.Open(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = client.Close() }()
				if _, err := client.CreateNode(ctx, zk.Node{Path: "/mine", ACL: zk.CreatorACL()}); err != nil {
					t.Fatal(err)
				}
				dir := wide
				if name == "Semaphore.TryAcquire" {
					dir += "-__lock__"
				}
				if _, err := client.Create(ctx, dir, nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
				if err := take(ctx, w.Client(t, timeout), dir, nil); err != nil {
					t.Fatal(err)
				}
				err = take(ctx, client, dir, zk.CreatorACL())
				if !errors.Is(err, attempt.ErrWider) || !strings.Contains(err.Error(), dir) {
					t.Errorf("got %v, want ErrWider that names %s", err, dir)
				}
			})
		})
	}
}

// An operator deletes the tree before any one request of a call. What is lost by that begins again, or is told as lost.
func TestDeletionByHandEndsNoCallWithABareRefusal(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		recipe, _, _ := strings.Cut(c.name, ".")
		if recipe != "lock" && recipe != "elect" && recipe != "barrier" || c.name == "lock.Revoke" {
			return // other recipes have tests of their own, and a Revoke loses its record
		}
		inWorld(t, func(t *testing.T, w *world) {
			operator := w.Client(t, timeout)
			self, err := operator.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for step, reached := 1, true; reached && step <= maxRequests; step++ {
				client, asked := w.Client(t, timeout), 0
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Session == self.ID() || r.Seq == 0 {
						return zktest.Pass
					}
					if asked++; asked != step {
						return zktest.Pass
					}
					until, proceed := context.WithCancel(t.Context())
					go func() {
						defer proceed()
						_, _ = operator.DeleteAll(t.Context(), "/app") // another party may make nodes meanwhile
					}()
					return zktest.Until(until)
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := c.do(ctx, args{client: client, path: path, data: []byte("data")})
				cancel()
				if errors.Is(err, zk.NoNode) {
					t.Errorf("deleted before request %d: %v", step, err)
				}
				w.Control(nil)
				reached = asked >= step
				_ = client.Close() // it may be in the middle of something
				if _, err := operator.DeleteAll(t.Context(), "/app"); err != nil && !errors.Is(err, zk.NoNode) {
					t.Error(err)
				}
			}
		})
	})
}
