package zktest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// watchMany watches nodes while another client changes them and faults hit the watching client's connection. It
// follows every node from one change to the next, so that a missed change makes it wait for ever.
func watchMany(t *testing.T, l *zktest.Link, dir string, nodes, rounds int, hit func(session int64, round int)) {
	t.Helper()
	ctx := t.Context()
	writer, watcher := l.Session(t, 30*time.Second), l.Session(t, 30*time.Second)
	node := func(i int) string { return fmt.Sprintf("%s/%d", dir, i) }
	create := writer.Batch()
	made := make([]*zk.Future[zk.Created], nodes)
	for i := range nodes {
		made[i] = create.Create(node(i), []byte("0"), zk.Persistent)
	}
	create.Send()
	for _, f := range made {
		if _, err := f.Get(ctx); err != nil {
			t.Fatal(err)
		}
	}

	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			if err := follow(ctx, watcher, node(i), strconv.Itoa(rounds)); err != nil {
				t.Errorf("%s: %v", node(i), err)
			}
		})
	}
	for round := 1; round <= rounds; round++ {
		hit(watcher.ID(), round)
		b := writer.Batch()
		set := make([]*zk.Future[zk.Stat], nodes)
		for i := range nodes {
			set[i] = b.Set(node(i), []byte(strconv.Itoa(round)), -1)
		}
		b.Send()
		for _, f := range set {
			if _, err := f.Get(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Heal()
	wg.Wait()
	for _, s := range []*zk.Session{writer, watcher} {
		if err := s.Client().Close(); err != nil {
			t.Error(err)
		}
	}
	l.NoWatches(t)
}

// follow reads a node, and again after each event of the watch that the read sets, until it has read the last value.
func follow(ctx context.Context, s *zk.Session, path, last string) error {
	for {
		data, _, w, err := s.GetW(ctx, path)
		switch {
		case err != nil && zk.OutcomeOf(err) == zk.Unknown && s.Context().Err() == nil && ctx.Err() == nil:
			continue // a fault hit the connection
		case err != nil:
			return err
		case string(data) == last:
			w.Close()
			return nil
		}
		if _, err := w.Next(ctx); err != nil {
			return err
		}
	}
}

// The server sets many watches in pieces.
func TestWatchesOfAnyNumberAreSetAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, 101, 150, 327, 328, 701} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in a bubble
				defer cancel()
				writer, sess := srv.Session(t, 20*time.Second), srv.Session(t, 20*time.Second)
				watches := make([]*zk.Watch, n)
				for i := range watches {
					path := fmt.Sprintf("/%d", i)
					if _, err := writer.Create(ctx, path, nil, zk.Persistent); err != nil {
						t.Fatal(err)
					}
					var err error
					if _, _, watches[i], err = sess.GetW(ctx, path); err != nil {
						t.Fatal(err)
					}
				}
				before := srv.Traffic().Connections
				srv.Drop(sess.ID())
				time.Sleep(5 * time.Second) // in a bubble: the client comes back, and pings
				if _, _, err := sess.Exists(ctx, "/"); err != nil {
					t.Error(err)
				}
				if got := srv.Traffic().Connections - before; got != 1 {
					t.Errorf("it has connected %d times", got)
				}
				for i, w := range watches {
					if _, err := writer.Set(ctx, fmt.Sprintf("/%d", i), nil, -1); err != nil {
						t.Fatal(err)
					}
					if e, err := w.Next(ctx); err != nil || e.Type != zk.EventDataChanged {
						t.Fatalf("%d: got %v, %v", i, e, err)
					}
				}
			})
		})
	}
}

func TestNoWatchEventIsLostWhileTheConnectionIsCut(t *testing.T) {
	t.Parallel()
	nodes, rounds := 500, soak.Pick(5, 12)
	t.Run("sockets", func(t *testing.T) {
		t.Parallel()
		srv := zktest.Run(t)
		newRaw(t, srv.Link).wantDo(0, create("/w"))
		watchMany(t, srv.Link, "/w", nodes, rounds, func(session int64, _ int) { srv.Drop(session) })
	})
	t.Run("on disk", func(t *testing.T) {
		t.Parallel()
		srv := zktest.Run(t, zktest.Durable())
		newRaw(t, srv.Link).wantDo(0, create("/w"))
		watchMany(t, srv.Link, "/w", nodes, rounds, func(session int64, _ int) { srv.Drop(session) })
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
			newRaw(t, srv.Link).wantDo(0, create("/w"))
			random := rand.New(rand.NewPCG(1, 2))
			watchMany(t, srv.Link, "/w", nodes, rounds, func(session int64, _ int) {
				srv.Heal(session)
				srv.ReleaseWatches(session)
				<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
				switch random.IntN(5) {
				case 0:
					srv.Drop(session)
				case 1:
					srv.Cut(session)
				case 2:
					srv.HalfOpen(session)
				case 3:
					srv.Mute(session)
				case 4:
					srv.Delay(time.Duration(random.IntN(100))*time.Millisecond, session)
				}
			})
		})
	})
	t.Run("Apache ZooKeeper", func(t *testing.T) {
		t.Parallel()
		l := zktest.Proxy(t, peer.ZooKeeper(t, peer.Options{}).ConnectString())
		newRaw(t, l).wantDo(0, create("/w"))
		watchMany(t, l, "/w", nodes, rounds, func(session int64, _ int) { l.Drop(session) })
	})
}
