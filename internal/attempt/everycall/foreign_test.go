package everycall_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Another recipe has made the path as a container, for its own nodes below it. When these have gone, what lasts is
// still there.
func TestWhatLastsSurvivesInAContainerOfAnotherRecipe(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		put  func(ctx context.Context, c *zk.Client) error
		kept func(ctx context.Context, c *zk.Client) error
		gone func(ctx context.Context, c *zk.Client) error // takes it away; nil if that is not the recipe's
	}{
		"fence": {
			func(ctx context.Context, c *zk.Client) error { return raise(ctx, c, 7) },
			func(ctx context.Context, c *zk.Client) error {
				if err := raise(ctx, c, 6); !errors.Is(err, fence.ErrStale) {
					return fmt.Errorf("got %w, want that the token is too small", err)
				}
				return nil
			},
			nil,
		},
		"sequence": {
			func(ctx context.Context, c *zk.Client) error { return next(ctx, c, 1) },
			func(ctx context.Context, c *zk.Client) error { return next(ctx, c, 11) },
			nil,
		},
		"value": {
			func(ctx context.Context, c *zk.Client) error {
				v, err := counter.NewValue(c, path, counter.ValueConfig{})
				if err == nil {
					err = v.Set(ctx, []byte("kept"))
				}
				return err
			},
			func(ctx context.Context, c *zk.Client) error {
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
			func(ctx context.Context, c *zk.Client) error { return onBarrier(c, (*barrier.Barrier).Set)(ctx) },
			exists,
			func(ctx context.Context, c *zk.Client) error { return onBarrier(c, (*barrier.Barrier).Remove)(ctx) },
		},
		"rounds": {
			func(ctx context.Context, c *zk.Client) error { return arrive(ctx, c, 1) },
			func(ctx context.Context, c *zk.Client) error { return arrive(ctx, c, 2) },
			nil,
		},
		"member.Node": {
			func(ctx context.Context, c *zk.Client) error {
				n, err := member.NewNode(c, path, []byte("kept"), member.NodeConfig{Mode: member.Persistent})
				if err == nil {
					err = n.Await(ctx)
				}
				if err == nil {
					n.Detach()
				}
				return err
			},
			exists,
			func(ctx context.Context, c *zk.Client) error {
				n, err := member.NewNode(c, path, []byte("kept"), member.NodeConfig{Mode: member.Persistent})
				if err == nil {
					err = errors.Join(n.Await(ctx), n.CloseWait(ctx))
				}
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				ctx, client := t.Context(), w.Client(t, timeout)
				below, err := lock.NewMutex(client, path+"/lock", lock.Config{})
				if err != nil {
					t.Fatal(err)
				}
				hold, err := below.Lock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := row.put(ctx, client); err != nil {
					t.Fatal(err)
				}
				if err := hold.UnlockWait(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour) // the server looks for containers every minute
				if _, there, err := client.Exists(ctx, path+"/lock"); there || err != nil {
					t.Errorf("got exists %t, %v, want that the server has removed the lock's directory", there, err)
				}
				if err := row.kept(ctx, client); err != nil {
					t.Error(err)
				}
				if row.gone == nil {
					return
				}
				if err := row.gone(ctx, client); err != nil {
					t.Error(err)
				}
				w.NoNodes(t, path)
			})
		})
	}
}

func raise(ctx context.Context, c *zk.Client, token fence.Token) error {
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

func next(ctx context.Context, c *zk.Client, want int64) error {
	s, err := counter.NewSequence(c, path, counter.SequenceConfig{Block: 10})
	if err != nil {
		return err
	}
	if got, err := s.Next(ctx); err != nil || got != want {
		return fmt.Errorf("got %d, %w, want %d", got, err, want)
	}
	return nil
}

func onBarrier(c *zk.Client, do func(*barrier.Barrier, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		b, err := barrier.NewBarrier(c, path, barrier.Config{})
		if err != nil {
			return err
		}
		return do(b, ctx)
	}
}

func arrive(ctx context.Context, c *zk.Client, want int64) error {
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

func exists(ctx context.Context, c *zk.Client) error {
	_, there, err := c.Exists(ctx, path)
	if err == nil && !there {
		err = errors.New("the node is gone")
	}
	return err
}

// What other programs keep beside a recipe's path, and members of similar names, are neither deleted nor in the way,
// with children and without.
func TestNodesOfOtherProgramsBesideThePathStay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		beside string // the path of the recipe's node that others have nodes beside
		do     func(ctx context.Context, c *zk.Client) error
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
		}},
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
		}},
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
		}},
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
		}},
		"member.Node": {path, func(ctx context.Context, c *zk.Client) error {
			n, err := member.NewNode(c, path, nil, member.NodeConfig{Mode: member.Persistent})
			if err != nil {
				return err
			}
			return errors.Join(n.Await(ctx), n.CloseWait(ctx))
		}},
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
		}},
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
						if _, exists, err := sess.Exists(t.Context(), p); !exists || err != nil {
							t.Errorf("%s: got exists %t, %v, want that it stays", p, exists, err)
						}
					}
				})
			}
		})
	}
}
