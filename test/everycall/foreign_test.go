package everycall_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// What other programs keep beside a recipe's path, and members of similar names, are neither deleted nor in the way,
// with children and without.
func TestNodesOfOtherProgramsBesideThePathStay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		beside string // the path of the recipe's node that others have nodes beside
		do     func(ctx context.Context, c *zk.Client) error
		inside []string // what others have below it
	}{
		"barrier.Wait": {path, func(ctx context.Context, c *zk.Client) error {
			b, err := barrier.NewBarrier(c, path, barrier.Config{})
			if err == nil {
				err = b.Set(ctx)
			}
			if err != nil {
				return err
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := b.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return b.Remove(ctx)
		}, nil},
		"barrier.Rounds": {path, func(ctx context.Context, c *zk.Client) error {
			r, err := barrier.NewRounds(c, path, barrier.RoundsConfig{Parties: 1})
			if err != nil {
				return err
			}
			p, err := r.Join(ctx)
			if err != nil {
				return err
			}
			_, err = p.Arrive(ctx)
			return errors.Join(err, p.Leave(ctx))
		}, nil},
		"barrier.Double": {path, func(ctx context.Context, c *zk.Client) error {
			d, err := barrier.NewDouble(c, path, 1, barrier.Config{})
			if err != nil {
				return err
			}
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		}, nil},
		"member.Group": {path + "/shard", func(ctx context.Context, c *zk.Client) error {
			g, err := member.NewGroup(c, path, member.GroupConfig{})
			if err != nil {
				return err
			}
			m, err := g.Join(ctx, "shard", nil)
			if err != nil {
				return err
			}
			return m.LeaveWait(ctx)
		}, nil},
		"member.Node": {path, func(ctx context.Context, c *zk.Client) error {
			n, err := member.OpenNode(c, path, nil, member.NodeConfig{Mode: member.Persistent})
			if err != nil {
				return err
			}
			return errors.Join(n.Await(ctx), n.CloseWait(ctx))
		}, nil},
		"lock.Simple": {path, func(ctx context.Context, c *zk.Client) error {
			s, err := lock.NewSimple(c, path, lock.SimpleConfig{})
			if err != nil {
				return err
			}
			h, err := s.Lock(ctx)
			if err != nil {
				return err
			}
			return h.UnlockWait(ctx)
		}, nil},
		"lock.Config.WaitsPath": {path, func(ctx context.Context, c *zk.Client) error {
			var holds [2]*lock.Hold
			var locks [2]*lock.Mutex
			for i := range locks {
				var err error
				locks[i], err = lock.NewMutex(c, fmt.Sprint("/m", i), lock.Config{WaitsPath: path})
				if err != nil {
					return err
				}
				if holds[i], err = locks[i].Lock(ctx); err != nil {
					return err
				}
			}
			waits := make(chan error, 2)
			for i := range locks {
				go func() {
					inside, cancel := context.WithTimeout(holds[i].Context(), 5*time.Second)
					defer cancel()
					_, err := locks[1-i].Lock(inside)
					waits <- err
				}()
			}
			for range locks {
				if err := <-waits; !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
			}
			return errors.Join(holds[0].UnlockWait(ctx), holds[1].UnlockWait(ctx))
		}, []string{"bell", "0x1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range []zktest.Fault{zktest.Pass, zktest.DropReply, zktest.CutBefore} {
				inWorld(t, func(t *testing.T, w *world) {
					sess := w.Session(t, timeout)
					var foreign []string
					for _, suffix := range []string{"-none", "-receipts", "-requests", "-lock", "-0000000000"} {
						foreign = append(foreign, row.beside+suffix, row.beside+suffix+"2/child")
					}
					for _, name := range row.inside {
						foreign = append(foreign, row.beside+"/"+name)
					}
					for _, p := range foreign {
						if _, err := sess.CreateAll(t.Context(), zk.Node{Path: p}, zk.Parents{}); err != nil {
							t.Fatal(err)
						}
					}
					hit := map[zktest.Op]bool{}
					w.Control(func(r zktest.Request) zktest.Fault { // the first request of each kind
						if r.Session == sess.ID() || r.Seq == 0 || hit[r.Op] {
							return zktest.Pass
						}
						hit[r.Op] = true
						return fault
					})
					if err := row.do(t.Context(), w.Client(t, timeout)); err != nil {
						t.Error(err)
					}
					for _, p := range foreign {
						stat, exists, err := sess.Exists(t.Context(), p)
						if !exists || err != nil || stat.Version != 0 {
							t.Errorf("%s: got exists %t, %+v, %v, want that it stays as it is", p, exists, stat, err)
						}
					}
				})
			}
		})
	}
}
