package everycall_test

// The calls of package lock.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

var lockTypes = []reflect.Type{
	reflect.TypeFor[*lock.Mutex](), reflect.TypeFor[*lock.RWMutex](), reflect.TypeFor[*lock.Semaphore](),
	reflect.TypeFor[*lock.Set](), reflect.TypeFor[*lock.Simple](), reflect.TypeFor[*lock.Hold](),
}

// locker is what all locks have.
type locker interface {
	Lock(ctx context.Context) (*lock.Hold, error)
	TryLock(ctx context.Context) (*lock.Hold, error)
	Do(ctx context.Context, f func(ctx context.Context, h *lock.Hold) error) error
}

// locks makes each kind of lock.
var locks = map[string]func(a args) (locker, error){
	"Mutex":                  newMutex(lock.Config{}),
	"Mutex Kazoo's":          newMutex(lock.Config{Layout: lock.Kazoo}),
	"Mutex with two layouts": newMutex(lock.Config{Layout: lock.Both}),
	"Mutex with a delay":     newMutex(lock.Config{Delay: time.Second}),
	"Mutex in strict order":  newMutex(lock.Config{Handoff: lock.StrictFIFO}),
	"RWMutex": func(a args) (locker, error) {
		return lock.NewRWMutex(a.client, a.path, lock.RWConfig{ACL: a.acl})
	},
	"Set": func(a args) (locker, error) {
		return lock.NewSet(a.client, []string{a.path, "/app/other"}, lock.SetConfig{ACL: a.acl})
	},
	"Simple": func(a args) (locker, error) { return lock.NewSimple(a.client, a.path, lock.SimpleConfig{ACL: a.acl}) },
}

func newMutex(cfg lock.Config) func(args) (locker, error) {
	return func(a args) (locker, error) {
		with := cfg // calls go on side by side
		with.ACL = a.acl
		return lock.NewMutex(a.client, a.path, with)
	}
}

// released lets a hold go, which must not have been lost.
func released(h *lock.Hold, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(context.Cause(h.Context()), h.Unlock())
}

func onRW(f func(ctx context.Context, m *lock.RWMutex) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		m, err := lock.NewRWMutex(a.client, a.path, lock.RWConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, m)
	}
}

func onSemaphore(
	limit lock.Limit, layout lock.Layout, f func(ctx context.Context, s *lock.Semaphore) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		s, err := lock.NewSemaphore(a.client, a.path, limit, lock.SemaphoreConfig{Layout: layout, ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, s)
	}
}

func acquired(ctx context.Context, s *lock.Semaphore) error { return released(s.Acquire(ctx, 2)) }

// wantAllPermits returns a check that so many permits are free.
func wantAllPermits(limit lock.Limit, layout lock.Layout, permits int) func(*world) error {
	return func(w *world) error {
		if err := wantNobody(w); err != nil {
			return err
		}
		s, err := lock.NewSemaphore(w.Client(w.t, timeout), path, limit, lock.SemaphoreConfig{Layout: layout})
		if err != nil {
			return err
		}
		return released(s.TryAcquire(w.t.Context(), permits))
	}
}

// looks are the bad arguments that functions accept which only look.
var looks = []string{
	"rights of 2 MB", "no rights", "rights for none",
	"root", "the server's", "helper below", "below a helper", "helper beside", "below one beside",
}

// lockCalls returns the rows: each way of each lock, and what only some have.
func lockCalls() []call {
	rows := []call{
		{name: "lock.RWMutex.RLock", do: onRW(func(ctx context.Context, m *lock.RWMutex) error {
			return released(m.RLock(ctx))
		}), leavesNothing: true},
		{name: "lock.RWMutex.TryRLock", do: onRW(func(ctx context.Context, m *lock.RWMutex) error {
			return released(m.TryRLock(ctx))
		}), leavesNothing: true},
		{name: "lock.RWMutex.RDo", do: onRW(func(ctx context.Context, m *lock.RWMutex) error {
			return m.RDo(ctx, func(context.Context, *lock.Hold) error { return nil })
		}), leavesNothing: true},
		{name: "lock.RWMutex.Upgrade", do: onRW(func(ctx context.Context, m *lock.RWMutex) error {
			h, err := m.RLock(ctx)
			if err == nil {
				err = errors.Join(m.Upgrade(ctx, h), released(h, nil))
			}
			return err
		}), leavesNothing: true},
		{name: "lock.RWMutex.Downgrade", do: onRW(func(ctx context.Context, m *lock.RWMutex) error {
			h, err := m.Lock(ctx)
			if err == nil {
				err = errors.Join(m.Downgrade(ctx, h), released(h, nil))
			}
			return err
		}), leavesNothing: true},
		{name: "lock.Hold.UnlockWait", do: func(ctx context.Context, a args) error {
			m, err := locks["Mutex"](a)
			if err != nil {
				return err
			}
			h, err := m.Lock(ctx)
			if err == nil {
				err = h.UnlockWait(ctx)
			}
			return err
		}, leavesNothing: true},
		{
			name: "lock.Semaphore.Acquire", do: onSemaphore(lock.AgreedLimit(3), lock.Curator, acquired),
			done: wantAllPermits(lock.AgreedLimit(3), lock.Curator, 3),
		},
		{
			name: "lock.Semaphore.Acquire of a stored number",
			do:   onSemaphore(lock.StoredLimit(3), lock.Curator, acquired),
			done: wantAllPermits(lock.StoredLimit(3), lock.Curator, 3),
		},
		{
			name: "lock.Semaphore.Acquire of Kazoo's", do: onSemaphore(lock.StoredLimit(3), lock.Kazoo, acquired),
			done: wantAllPermits(lock.StoredLimit(3), lock.Kazoo, 3),
		},
		{name: "lock.Semaphore.Acquire of a watched number", do: func(ctx context.Context, a args) error {
			watched := func(ctx context.Context, s *lock.Semaphore) error {
				n, err := counter.New(a.client, "/app/limit", counter.Config{Layout: counter.Int})
				if err != nil {
					return err
				}
				return errors.Join(n.Set(ctx, 3), n.Close(ctx), acquired(ctx, s))
			}
			return onSemaphore(lock.WatchedLimit("/app/limit"), lock.Curator, watched)(ctx, a)
		}, done: wantAllPermits(lock.WatchedLimit("/app/limit"), lock.Curator, 3)},
		{name: "lock.Semaphore.TryAcquire", do: onSemaphore(lock.AgreedLimit(3), lock.Curator,
			func(ctx context.Context, s *lock.Semaphore) error { return released(s.TryAcquire(ctx, 2)) },
		), done: wantAllPermits(lock.AgreedLimit(3), lock.Curator, 3)},
		{name: "lock.Semaphore.Do", do: onSemaphore(lock.AgreedLimit(3), lock.Curator,
			func(ctx context.Context, s *lock.Semaphore) error {
				return s.Do(ctx, 2, func(context.Context, *lock.Hold) error { return nil })
			},
		), done: wantAllPermits(lock.AgreedLimit(3), lock.Curator, 3)},
		{name: "lock.Inspect", do: func(ctx context.Context, a args) error {
			found, err := lock.Inspect(ctx, a.client, a.path)
			if err == nil && len(found) > 0 {
				err = fmt.Errorf("got contenders %v, want none", found)
			}
			return err
		}, allows: looks},
		{name: "lock.InspectNumbers", do: func(ctx context.Context, a args) error {
			_, err := lock.InspectNumbers(ctx, a.client, a.path)
			return err
		}, allows: looks},
		{name: "lock.Summarize", do: func(ctx context.Context, a args) error {
			_, err := lock.Summarize(ctx, a.client, a.path)
			return err
		}, allows: looks},
		{name: "lock.SummarizeListed", do: func(ctx context.Context, a args) error {
			_, err := lock.SummarizeListed(ctx, a.client, a.path, zk.Children{})
			return err
		}, allows: looks},
		{name: "lock.Deadlocks", do: func(ctx context.Context, a args) error {
			_, err := lock.Deadlocks(ctx, a.client, a.path)
			return err
		}, allows: append(slices.Clone(looks), "no path")},
		{name: "lock.NestedWaits", do: func(ctx context.Context, a args) error {
			_, err := lock.NestedWaits(ctx, a.client, a.path)
			return err
		}, allows: append(slices.Clone(looks), "no path")},
		{name: "lock.Revocations", do: func(ctx context.Context, a args) error {
			_, err := lock.Revocations(ctx, a.client, a.path)
			return err
		}, allows: looks},
		{name: "lock.Revoke", do: func(ctx context.Context, a args) error {
			m, err := locks["Mutex"](a)
			if err != nil {
				return err
			}
			h, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			go func() {
				<-h.Context().Done()
				_ = h.Unlock()
			}()
			asked, err := lock.Revoke(ctx, a.client, a.path, lock.RevokeOptions{Record: true})
			if err == nil && len(asked) != 1 {
				err = fmt.Errorf("got %d holders, want the one", len(asked))
			}
			return err
		}, done: wantNobody},
	}
	for kind, newLock := range locks {
		rows = append(rows, lockRows(kind, newLock)...)
	}
	return rows
}

// lockRows returns the rows of one kind of lock, whose name is its type's and after a space which way of it.
func lockRows(kind string, newLock func(args) (locker, error)) []call {
	typ, way, _ := strings.Cut(kind, " ")
	row := func(method string, f func(ctx context.Context, l locker) error) call {
		do := func(ctx context.Context, a args) error {
			l, err := newLock(a)
			if err != nil {
				return err
			}
			return f(ctx, l)
		}
		name := strings.TrimSpace("lock." + typ + "." + method + " " + way)
		return call{name: name, do: do, leavesNothing: true}
	}
	return []call{
		row("Lock", func(ctx context.Context, l locker) error { return released(l.Lock(ctx)) }),
		row("TryLock", func(ctx context.Context, l locker) error { return released(l.TryLock(ctx)) }),
		row("Do", func(ctx context.Context, l locker) error {
			return l.Do(ctx, func(context.Context, *lock.Hold) error { return nil })
		}),
	}
}
