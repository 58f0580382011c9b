package lock_test

// A server that resumes no session, as ClickHouse Keeper.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A broken connection costs the hold. The next holder gets the lock when the session of the first one expires, and not
// before.
//
// Promise: 1
func TestHoldEndsWithItsConnectionIfNoSessionIsResumed(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpConnect {
				return zktest.Forget
			}
			return zktest.Pass
		})
		mutex := func() *lock.Mutex {
			m, err := lock.NewMutex(srv.Client(t, 10*time.Second), "/m", lock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		first, second := mutex(), mutex()
		hold, err := first.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		srv.Drop()
		<-hold.Context().Done()
		cause := context.Cause(hold.Context())
		if !errors.Is(cause, zk.ErrLost) || !strings.Contains(cause.Error(), "ClickHouse Keeper") {
			t.Errorf("got %v, want the server that does not resume sessions", cause)
		}
		next, err := second.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 9*time.Second { // in the bubble: the first session lived so long
			t.Errorf("the next holder got the lock after %v, while the first session lived", waited)
		}
		if next.Token() <= hold.Token() {
			t.Errorf("got token %v after %v", next.Token(), hold.Token())
		}
		if err := next.Unlock(); err != nil {
			t.Error(err)
		}
		_ = hold.Unlock() // it says that the hold was lost
	})
}

// Without an operation that each contender needs there is no lock, and Lock says so instead of waiting for ever.
func TestLockEndsIfTheServersLackAnOperation(t *testing.T) {
	t.Parallel()
	const create2 = 15
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op == zktest.OpConnect:
				return zktest.Forget
			case r.Code == create2:
				return zktest.Refuse
			}
			return zktest.Pass
		})
		m, err := lock.NewMutex(srv.Client(t, 10*time.Second), "/m", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Lock(t.Context())
		if !errors.Is(err, zk.ErrUnsupported) || !strings.Contains(err.Error(), "operation 15") {
			t.Errorf("got %v", err)
		}
	})
}
