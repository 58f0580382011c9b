package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// connected calls example with a client of a server of its own. Your program opens a client of your ensemble.
func connected(example func(ctx context.Context, client *zk.Client) error) {
	err := func(ctx context.Context) error {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
		if err != nil {
			return err
		}
		defer client.Close()
		return example(ctx, client)
	}(context.Background())
	if err != nil {
		fmt.Println(err)
	}
}

// A report that two processes must not write at the same time.
func Example() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
		if err != nil {
			return err
		}
		return m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
			fmt.Println("my turn") // ctx ends when the lock is lost
			return nil
		})
	})
	// Output: my turn
}

// A hold that outlives a function, or is passed on.
func ExampleMutex_Lock() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{Label: "nightly"})
		if err != nil {
			return err
		}
		hold, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock()
		select {
		case <-hold.Context().Done():
			return context.Cause(hold.Context()) // lost
		default:
			fmt.Println("the token is positive:", hold.Token() > 0)
			return nil
		}
	})
	// Output: the token is positive: true
}

func ExampleMutex_TryLock() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
		if err != nil {
			return err
		}
		hold, err := m.TryLock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock()
		_, err = m.TryLock(ctx)
		fmt.Println(errors.Is(err, lock.ErrHeld))
		return nil
	})
	// Output: true
}

// Writers are alone, readers hold together.
func ExampleRWMutex() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewRWMutex(client, "/locks/config", lock.RWConfig{})
		if err != nil {
			return err
		}
		err = m.Do(ctx, func(context.Context, *lock.Hold) error {
			fmt.Println("write the configuration")
			return nil
		})
		if err != nil {
			return err
		}
		return m.RDo(ctx, func(ctx context.Context, _ *lock.Hold) error {
			other, err := m.TryRLock(ctx)
			if err != nil {
				return err
			}
			fmt.Println("two of us read it")
			return other.Unlock()
		})
	})
	// Output:
	// write the configuration
	// two of us read it
}

// A reader finds that there is something to write.
func ExampleRWMutex_Upgrade() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewRWMutex(client, "/locks/config", lock.RWConfig{})
		if err != nil {
			return err
		}
		return m.RDo(ctx, func(ctx context.Context, hold *lock.Hold) error {
			if err := m.Upgrade(ctx, hold); err != nil {
				return err // lock.ErrUpgradeConflict if there are other readers
			}
			fmt.Println("I am the writer now")
			return nil
		})
	})
	// Output: I am the writer now
}

// At most eight jobs use a GPU; this one uses two.
func ExampleSemaphore() {
	connected(func(ctx context.Context, client *zk.Client) error {
		gpus, err := lock.NewSemaphore(client, "/pools/gpu", lock.StoredLimit(8), lock.SemaphoreConfig{})
		if err != nil {
			return err
		}
		return gpus.Do(ctx, 2, func(_ context.Context, hold *lock.Hold) error {
			fmt.Println(len(hold.Guards()), "permits")
			return nil
		})
	})
	// Output: 2 permits
}

// A transfer needs both accounts. Another one in the opposite direction does not deadlock with it.
func ExampleSet() {
	connected(func(ctx context.Context, client *zk.Client) error {
		accounts, err := lock.NewSet(client, []string{"/locks/ada", "/locks/grace"}, lock.SetConfig{})
		if err != nil {
			return err
		}
		return accounts.Do(ctx, func(context.Context, *lock.Hold) error {
			fmt.Println("move the money")
			return nil
		})
	})
	// Output: move the money
}

// A lock that is shared with programs whose lock is one ephemeral node.
func ExampleSimple() {
	connected(func(ctx context.Context, client *zk.Client) error {
		s, err := lock.NewSimple(client, "/legacy/lock", lock.SimpleConfig{})
		if err != nil {
			return err
		}
		return s.Do(ctx, func(_ context.Context, hold *lock.Hold) error {
			fmt.Println("my node is", hold.Path())
			return nil
		})
	})
	// Output: my node is /legacy/lock
}

// The server itself refuses the write of a holder that has lost its lock.
func ExampleHold_Guard() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/stock", lock.Config{})
		if err != nil {
			return err
		}
		hold, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		book := func(order string) error {
			_, err := hold.Session().Multi(ctx, hold.Guard(), zk.CreateOp("/"+order, nil, zk.Persistent))
			return err
		}
		fmt.Println("while it is held:", book("order-1"))
		if err := hold.UnlockWait(ctx); err != nil {
			return err
		}
		fmt.Println("afterwards it is refused:", errors.Is(book("order-2"), zk.NoNode))
		return nil
	})
	// Output:
	// while it is held: <nil>
	// afterwards it is refused: true
}

// A function that takes a lock, and that is also called by those who have it.
func ExampleReenter() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/stock", lock.Config{})
		if err != nil {
			return err
		}
		count := func(ctx context.Context) error {
			return m.Do(lock.Reenter(ctx), func(context.Context, *lock.Hold) error {
				fmt.Println("count the stock")
				return nil
			})
		}
		if err := count(ctx); err != nil { // takes the lock
			return err
		}
		return m.Do(ctx, func(ctx context.Context, _ *lock.Hold) error { return count(ctx) }) // has it
	})
	// Output:
	// count the stock
	// count the stock
}

func ExampleInspect() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{Label: "nightly"})
		if err != nil {
			return err
		}
		return m.Do(ctx, func(ctx context.Context, _ *lock.Hold) error {
			line, err := lock.Inspect(ctx, client, "/locks/report")
			for _, c := range line {
				fmt.Println(c.Kind, c.Owner.Label, "holds it:", c.Holder)
			}
			return err
		})
	})
	// Output: exclusive nightly holds it: true
}

// An operator asks for the lock, and the holder stops.
func ExampleRevoke() {
	connected(func(ctx context.Context, client *zk.Client) error {
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
		if err != nil {
			return err
		}
		hold, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		context.AfterFunc(hold.Context(), func() { hold.Unlock() })
		opts := lock.RevokeOptions{Reason: "maintenance", Grace: time.Minute}
		asked, err := lock.Revoke(ctx, client, "/locks/report", opts)
		if err != nil {
			return err
		}
		revoked, _ := errors.AsType[*lock.RevokedError](context.Cause(hold.Context()))
		fmt.Println(asked[0].Ending, "for", revoked.Revocation.Reason)
		return nil
	})
	// Output: released for maintenance
}

// Who waits and who holds, for a page of metrics. What begins ends, so these return to zero.
func ExampleHooks() {
	connected(func(ctx context.Context, client *zk.Client) error {
		var waiting, held atomic.Int64
		leave := func(e lock.Event) {
			if e.Queued { // Enqueued was called
				waiting.Add(-1)
			}
		}
		m, err := lock.NewMutex(client, "/locks/report", lock.Config{Hooks: lock.Hooks{
			Enqueued: func(context.Context, lock.Event) { waiting.Add(1) },
			Acquired: func(_ context.Context, e lock.Event) {
				leave(e)
				held.Add(1)
			},
			Failed:   func(_ context.Context, e lock.Event) { leave(e) },
			Released: func(lock.Event) { held.Add(-1) },
			Lost:     func(lock.Event) { held.Add(-1) },
		}})
		if err != nil {
			return err
		}
		return m.Do(ctx, func(ctx context.Context, _ *lock.Hold) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := m.Lock(ctx) // waits for the hold that there is, until it gives up
			fmt.Println(errors.Is(err, context.DeadlineExceeded), "waiting:", waiting.Load(), "held:", held.Load())
			return nil
		})
	})
	// Output: true waiting: 0 held: 1
}
