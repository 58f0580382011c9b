package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const certainTimeout = 16 * time.Second

// takers take the lock at path in every way that there is.
var takers = map[string]func(ctx context.Context, client *zk.Client) (*lock.Hold, error){
	"mutex": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		return lockMutex(ctx, client, lock.Config{})
	},
	"strict": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		return lockMutex(ctx, client, lock.Config{Handoff: lock.StrictFIFO})
	},
	"both layouts": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		return lockMutex(ctx, client, lock.Config{Layout: lock.Both})
	},
	"delay": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		return lockMutex(ctx, client, lock.Config{Delay: time.Millisecond})
	},
	"writer": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		m, err := lock.NewRWMutex(client, path, lock.RWConfig{})
		if err != nil {
			return nil, err
		}
		return m.Lock(ctx)
	},
	"reader that was a writer": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		m, err := lock.NewRWMutex(client, path, lock.RWConfig{})
		if err != nil {
			return nil, err
		}
		h, err := m.Lock(ctx)
		if err == nil {
			err = m.Downgrade(ctx, h)
		}
		if err == nil { // another reader would not have to wait
			err = m.Upgrade(ctx, h)
		}
		return h, err
	},
	"semaphore": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		s, err := lock.NewSemaphore(client, path, lock.AgreedLimit(2), lock.SemaphoreConfig{})
		if err != nil {
			return nil, err
		}
		return s.Acquire(ctx, 2)
	},
	"set": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		s, err := lock.NewSet(client, []string{path, path + "-2"}, lock.SetConfig{})
		if err != nil {
			return nil, err
		}
		return s.Lock(ctx)
	},
	"simple": func(ctx context.Context, client *zk.Client) (*lock.Hold, error) {
		s, err := lock.NewSimple(client, path, lock.SimpleConfig{})
		if err != nil {
			return nil, err
		}
		return s.Lock(ctx)
	},
}

func lockMutex(ctx context.Context, client *zk.Client, cfg lock.Config) (*lock.Hold, error) {
	m, err := lock.NewMutex(client, path, cfg)
	if err != nil {
		return nil, err
	}
	return m.Lock(ctx)
}

// Every kind of hold ends when the session is not certain any more, and its lock is free as soon as the server can be
// written to, but not before the holder has had the margin to stop.
//
// Promise: 2
func TestUncertainHoldIsToldAndFreesTheLock(t *testing.T) {
	t.Parallel()
	for name, take := range takers {
		for _, unlocks := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { freeUncertain(t, take, unlocks) })
			})
		}
	}
}

func freeUncertain(t *testing.T, take func(context.Context, *zk.Client) (*lock.Hold, error), unlocks bool) {
	t.Helper()
	var net zktest.Net
	srv := zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute))
	hold, err := take(t.Context(), srv.Client(t, certainTimeout))
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Pointer[lock.Hold]
	done := make(chan time.Time, 1)
	waiter := srv.Client(t, certainTimeout)
	go func() {
		h, err := take(t.Context(), waiter)
		if err != nil {
			t.Error(err)
		}
		next.Store(h)
		done <- time.Now()
	}()
	time.Sleep(3 * certainTimeout)
	srv.Control(zktest.WithoutQuorum(hold.Session().ID()))
	isolated := time.Now()
	<-hold.Context().Done()
	told := time.Now()
	if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrUncertain) {
		t.Errorf("told %v, want zk.ErrUncertain", cause)
	}
	if after := told.Sub(isolated); after > certainTimeout/2 {
		t.Errorf("told after %v", after)
	}
	time.Sleep(certainTimeout / 16)
	if next.Load() != nil {
		t.Error("the next one was in at once")
	}
	srv.Control(nil)
	least := told.Add(certainTimeout / 4)
	if unlocks {
		least = time.Now()
		if err := hold.UnlockWait(t.Context()); !errors.Is(err, zk.ErrUncertain) {
			t.Errorf("UnlockWait: %v, want zk.ErrUncertain", err)
		}
	}
	in := <-done
	if in.Before(least) || in.After(least.Add(certainTimeout/4)) {
		t.Errorf("the next one was in %v after the holder was told, want it from %v on", in.Sub(told), least.Sub(told))
	}
	if err := hold.Unlock(); !errors.Is(err, zk.ErrUncertain) {
		t.Errorf("Unlock: %v, want zk.ErrUncertain", err)
	}
	if h := next.Load(); h != nil {
		if err := h.UnlockWait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := hold.Session().Err(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}

// The same mutex is taken again behind the node of the hold that was lost.
//
// Promise: 2
func TestUncertainHoldIsFollowedByOneOfTheSameMutex(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		m := mutex(t, srv.Client(t, certainTimeout))
		hold := acquire(t, m)
		srv.Control(zktest.WithoutQuorum(hold.Session().ID()))
		<-hold.Context().Done()
		told := time.Now()
		srv.Control(nil)
		again := acquire(t, m)
		if after := time.Since(told); after < certainTimeout/4 || again.Token() <= hold.Token() {
			t.Errorf("held again after %v with token %d after %d", after, again.Token(), hold.Token())
		}
		_ = hold.Unlock()
		if err := again.UnlockWait(t.Context()); err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

// Certainty costs a lock that is taken and given back nothing, however long its client has been idle.
//
// Promise: 2
func TestLockOfAnIdleClientTakesTwoWrites(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, certainTimeout)
		for _, dir := range []string{"/locks", path} { // a container would be collected meanwhile
			if _, err := session(t, client).Create(t.Context(), dir, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		m := mutex(t, client)
		for i := range 50 {
			time.Sleep(3*certainTimeout + time.Duration(i)*certainTimeout/100)
			var asked []zktest.Op
			srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Op != zktest.OpPing {
					asked = append(asked, r.Op)
				}
				return zktest.Pass
			})
			if err := acquire(t, m).UnlockWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			srv.Control(nil)
			if len(asked) != 3 || asked[0] != zktest.OpCreate || asked[1] != zktest.OpGetChildren ||
				asked[2] != zktest.OpDelete {
				t.Fatalf("requests %v, want create, getChildren and delete", asked)
			}
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

// A waiter is not given the lock before a quorum has confirmed its session: that may have expired where the server that
// tells of the turn cannot see it. The kinds that are left out take the lock with a write.
//
// Promise: 2
func TestWaiterIsCertainBeforeItHolds(t *testing.T) {
	t.Parallel()
	for name, take := range takers {
		if name == "semaphore" || name == "simple" || name == "delay" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				first, err := take(t.Context(), srv.Client(t, certainTimeout))
				if err != nil {
					t.Fatal(err)
				}
				client := srv.Client(t, certainTimeout)
				got := make(chan result, 1)
				go func() {
					h, err := take(t.Context(), client)
					got <- result{h, err}
				}()
				time.Sleep(3 * certainTimeout)
				srv.Control(zktest.WithoutQuorum(session(t, client).ID()))
				if err := first.UnlockWait(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(certainTimeout / 2)
				if len(got) > 0 {
					r := <-got
					t.Fatalf("the waiter got %v, %v, and no quorum has confirmed its session", r.hold, r.err)
				}
				srv.Control(nil)
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				if err := r.hold.UnlockWait(t.Context()); err != nil {
					t.Error(err)
				}
			}, zktest.SessionTimeouts(time.Second, time.Minute))
		})
	}
}

// The answer comes so late that the session is hardly certain any more, and no quorum confirms it then.
func TestLockWhoseAnswerComesLateIsCertainBeforeItIsHeld(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mutex", "strict", "both layouts", "writer", "set"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, certainTimeout)
				id := session(t, client).ID()
				for _, dir := range []string{"/locks", path, path + "-2"} {
					if _, err := w.Session(t, certainTimeout).Create(t.Context(), dir, nil, zk.Persistent); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * certainTimeout)
				asked, refuse := false, zktest.WithoutQuorum(id)
				w.Control(func(r zktest.Request) zktest.Fault {
					if !asked && r.Session == id && (r.Op == zktest.OpCreate || r.Op == zktest.OpMulti) {
						asked = true
						return zktest.DelayReply(certainTimeout / 8)
					}
					if asked {
						return refuse(r)
					}
					return zktest.Pass
				})
				waiting := waits(t.Context(), func(ctx context.Context) (*lock.Hold, error) {
					return takers[name](ctx, client)
				})
				time.Sleep(certainTimeout / 2)
				none(t, "no quorum has confirmed its session", waiting)
				w.Control(nil)
				unlock(t, got(t, waiting))
			})
		})
	}
}
