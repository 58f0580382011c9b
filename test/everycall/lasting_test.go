package everycall_test

// What lasts, at and below directories that other recipes have made.

import (
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

type onPath func(ctx context.Context, c *zk.Client, path string) error

// lasting are the recipes with state that lasts.
var lasting = map[string]struct {
	put  onPath
	kept onPath
	gone onPath // takes it away; nil if that is not the recipe's
}{
	"fence": {
		func(ctx context.Context, c *zk.Client, path string) error { return raise(ctx, c, path, 7) },
		func(ctx context.Context, c *zk.Client, path string) error {
			if err := raise(ctx, c, path, 6); !errors.Is(err, fence.ErrStale) {
				return fmt.Errorf("got %w, want that the token is too small", err)
			}
			return nil
		},
		nil,
	},
	"sequence": {
		func(ctx context.Context, c *zk.Client, path string) error { return next(ctx, c, path, 1) },
		func(ctx context.Context, c *zk.Client, path string) error { return next(ctx, c, path, 11) },
		nil,
	},
	"value": {
		func(ctx context.Context, c *zk.Client, path string) error {
			v, err := counter.NewValue(c, path, counter.ValueConfig{})
			if err == nil {
				err = v.Set(ctx, []byte("kept"))
			}
			return err
		},
		func(ctx context.Context, c *zk.Client, path string) error {
			v, err := counter.NewValue(c, path, counter.ValueConfig{})
			if err != nil {
				return err
			}
			got, err := v.Get(ctx)
			if err == nil && string(got.Data) != "kept" {
				err = fmt.Errorf("got %q", got.Data)
			}
			return err
		},
		nil,
	},
	"barrier": {
		onBarrier((*barrier.Barrier).Set),
		stays,
		onBarrier((*barrier.Barrier).Remove),
	},
	"rounds": {
		func(ctx context.Context, c *zk.Client, path string) error { return arrive(ctx, c, path, 1) },
		func(ctx context.Context, c *zk.Client, path string) error { return arrive(ctx, c, path, 2) },
		nil,
	},
	"member.Node": {
		func(ctx context.Context, c *zk.Client, path string) error {
			n, err := member.OpenNode(c, path, []byte("kept"), member.NodeConfig{Mode: member.Persistent})
			if err == nil {
				err = n.Await(ctx)
			}
			if err == nil {
				n.Detach()
			}
			return err
		},
		stays,
		func(ctx context.Context, c *zk.Client, path string) error {
			n, err := member.OpenNode(c, path, []byte("kept"), member.NodeConfig{Mode: member.Persistent})
			if err == nil {
				err = errors.Join(n.Await(ctx), n.CloseWait(ctx))
			}
			return err
		},
	},
	"counter": {
		func(ctx context.Context, c *zk.Client, path string) error { return count(ctx, c, path, 1) },
		func(ctx context.Context, c *zk.Client, path string) error { return count(ctx, c, path, 2) },
		nil,
	},
	"semaphore": {
		storedLimit(2, lock.Curator, nil),
		storedLimit(3, lock.Curator, lock.ErrLimit),
		nil,
	},
	"semaphore like kazoo's": {
		storedLimit(2, lock.Kazoo, nil),
		storedLimit(3, lock.Kazoo, lock.ErrLimit),
		nil,
	},
	"lease": {
		func(ctx context.Context, c *zk.Client, path string) error { return take(ctx, c, path, "me") },
		func(ctx context.Context, c *zk.Client, path string) error {
			if err := take(ctx, c, path, "another"); !errors.Is(err, member.ErrLeased) {
				return fmt.Errorf("got %w, want that it is leased", err)
			}
			return nil
		},
		nil,
	},
	"queue": {
		func(ctx context.Context, c *zk.Client, path string) error {
			q, err := queue.New(c, path, queue.Config{})
			if err == nil {
				_, err = q.Put(ctx, queue.Message{Body: []byte("kept")})
			}
			return err
		},
		func(ctx context.Context, c *zk.Client, path string) error {
			q, err := queue.New(c, path, queue.Config{})
			if err != nil {
				return err
			}
			item, err := q.TryTake(ctx)
			if err != nil {
				return err
			}
			return errors.Join(item.Done(ctx), q.Close(ctx))
		},
		nil,
	},
}

// A place is what other recipes have at the path, or near it.
type place struct {
	lock  string // stands while the state is put, and is gone after that; relative to the path
	fresh bool   // the path is a container that has never had a child
}

var places = map[string]place{
	"above a lock":             {lock: "/lock"},
	"at a lock's path":         {lock: ""},
	"below a lock's path":      {lock: "/.."},
	"at an empty directory":    {lock: "/lock", fresh: true},
	"below an empty directory": {lock: "/..", fresh: true},
}

var errRefused = errors.New("the recipe has refused the path")

// put puts the state while the other recipe is there, and ends that.
func (p place) put(ctx context.Context, c *zk.Client, path string, put onPath) (lockPath string, err error) {
	if p.fresh {
		for _, n := range []zk.Node{{Path: stdpath.Dir(path)}, {Path: path}} {
			n.Data, n.Mode = []byte{}, zk.Container
			if _, err := c.CreateNode(ctx, n); err != nil && !errors.Is(err, zk.NodeExists) {
				return "", err
			}
		}
		if err := put(ctx, c, path); err != nil {
			return "", err
		}
	}
	lockPath = stdpath.Clean(path + p.lock)
	m, err := lock.NewMutex(c, lockPath, lock.Config{})
	if err != nil {
		return "", err
	}
	hold, err := m.Lock(ctx)
	if err != nil {
		return "", err
	}
	if !p.fresh {
		err = put(ctx, c, path)
	}
	// A queue has its path alone, and says so; and so has a semaphore like kazoo's, of which each child is a permit.
	if p.lock != "/.." && (errors.Is(err, queue.ErrNotQueue) || errors.Is(err, zk.NotEmpty)) {
		err = errRefused
	}
	return lockPath, errors.Join(err, hold.UnlockWait(ctx))
}

// Another recipe has made the path as a container, or does so with what is above it. When its nodes have gone, what
// lasts is still there.
func TestWhatLastsSurvivesInAContainerOfAnotherRecipe(t *testing.T) {
	t.Parallel()
	for name, row := range lasting {
		for where, p := range places {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					ctx, client := t.Context(), w.Client(t, timeout)
					lockPath, err := p.put(ctx, client, path, row.put)
					if errors.Is(err, errRefused) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(3 * time.Minute) // the server looks for containers every minute
					if p.lock == "/lock" {
						if _, there, err := client.Exists(ctx, lockPath); there || err != nil {
							t.Errorf("got exists %t, %v, want that the lock's directory is gone", there, err)
						}
					}
					if err := row.kept(ctx, client, path); err != nil {
						t.Error(err)
					}
					if row.gone == nil {
						return
					}
					if err := row.gone(ctx, client, path); err != nil {
						t.Error(err)
					}
					w.NoNodes(t, path)
				})
			})
		}
	}
}

// The same on Apache ZooKeeper, with one server for all.
func TestWhatLastsSurvivesInAContainerOnZooKeeper(t *testing.T) { //nolint:tparallel // the end needs all that was put
	t.Parallel()
	cluster := peer.ZooKeeper(t, peer.Options{
		Properties: map[string]string{"znode.container.checkIntervalMs": "50", "zookeeper.forceSync": "no"},
		Heap:       "128m",
	})
	ctx := t.Context()
	client, err := zk.Open(ctx, zk.Config{Servers: cluster.ConnectString(), Timeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var paths sync.Map
	t.Run("put", func(t *testing.T) {
		for name, row := range lasting {
			for where, p := range places {
				t.Run(name+" "+where, func(t *testing.T) {
					t.Parallel()
					at := "/" + strings.ReplaceAll(name+"-"+where, " ", "-") + "/thing"
					_, err := p.put(t.Context(), client, at, row.put)
					if errors.Is(err, errRefused) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					paths.Store(name+where, at)
				})
			}
		}
	})
	sess, err := client.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // the second begins after the server has seen that all is empty, and ends after it has acted
		dir := fmt.Sprintf("/empty-%d", i)
		for _, n := range []zk.Node{{Path: dir, Mode: zk.Container}, {Path: dir + "/child"}} {
			if _, err := client.CreateNode(ctx, n); err != nil {
				t.Fatal(err)
			}
		}
		_, _, watch, err := sess.ExistsW(ctx, dir)
		if err == nil {
			err = client.Delete(ctx, dir+"/child", -1)
		}
		for err == nil {
			var event zk.Event
			if event, err = watch.Next(ctx); event.Type == zk.EventDeleted {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range lasting {
		for where := range places {
			at, ok := paths.Load(name + where)
			if !ok {
				continue
			}
			if err := row.kept(ctx, client, at.(string)); err != nil {
				t.Errorf("%s %s: %v", name, where, err)
			}
		}
	}
}

func count(ctx context.Context, c *zk.Client, path string, want int64) error {
	n, err := counter.New(c, path, counter.Config{})
	if err != nil {
		return err
	}
	if got, err := n.Add(ctx, 1); err != nil || got != want {
		return fmt.Errorf("got %d, %w, want %d", got, err, want)
	}
	return n.Close(ctx)
}

func take(ctx context.Context, c *zk.Client, path, holder string) error {
	l, err := member.NewLease(c, path, holder, 24*time.Hour, member.LeaseConfig{})
	if err == nil {
		_, err = l.Take(ctx)
	}
	return err
}

// storedLimit takes a permit of a semaphore that stores that limit, and wants the error.
func storedLimit(limit int, layout lock.Layout, want error) onPath {
	return func(ctx context.Context, c *zk.Client, path string) error {
		s, err := lock.NewSemaphore(c, path, lock.StoredLimit(limit), lock.SemaphoreConfig{Layout: layout})
		if err != nil {
			return err
		}
		hold, err := s.TryAcquire(ctx, 1)
		if want != nil && !errors.Is(err, want) {
			return fmt.Errorf("got %w, want %w", err, want)
		}
		if hold != nil {
			err = hold.UnlockWait(ctx)
		}
		if errors.Is(err, want) {
			return nil
		}
		return err
	}
}

func raise(ctx context.Context, c *zk.Client, path string, token fence.Token) error {
	sess, err := c.Session(ctx)
	if err != nil {
		return err
	}
	f, err := fence.NewNode(path, nil)
	if err != nil {
		return err
	}
	return f.Raise(ctx, sess, token)
}

func next(ctx context.Context, c *zk.Client, path string, want int64) error {
	s, err := counter.NewSequence(c, path, counter.SequenceConfig{Block: 10})
	if err != nil {
		return err
	}
	if got, err := s.Next(ctx); err != nil || got != want {
		return fmt.Errorf("got %d, %w, want %d", got, err, want)
	}
	return nil
}

// onBarrier does something with the barrier at a path.
func onBarrier(do func(*barrier.Barrier, context.Context) error) onPath {
	return func(ctx context.Context, c *zk.Client, path string) error {
		b, err := barrier.NewBarrier(c, path, barrier.Config{})
		if err != nil {
			return err
		}
		return do(b, ctx)
	}
}

func arrive(ctx context.Context, c *zk.Client, path string, want int64) error {
	r, err := barrier.NewRounds(c, path, barrier.RoundsConfig{Parties: 1})
	if err != nil {
		return err
	}
	p, err := r.Join(ctx)
	if err != nil {
		return err
	}
	if got, err := p.Arrive(ctx); err != nil || got != want {
		return fmt.Errorf("got round %d, %w, want %d", got, err, want)
	}
	return p.Leave(ctx)
}

func stays(ctx context.Context, c *zk.Client, path string) error {
	_, there, err := c.Exists(ctx, path)
	if err == nil && !there {
		err = errors.New("the node is gone")
	}
	return err
}
