package lock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Time is fake here, so that what comes first comes first by the promise and not by luck.
//
// Promise: 2
func TestHolderIsToldBeforeTheServerLetsAnybodyElseIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		var net zktest.Net
		srv := zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute))
		hold := acquire(t, mutex(t, srv.Client(t, timeout)))
		waiting := lockInBackground(t.Context(), mutex(t, srv.Client(t, timeout)))
		synctest.Wait()

		srv.HalfOpen(hold.Session().ID())
		dark := time.Now()
		<-hold.Context().Done()
		told := time.Since(dark)
		if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrLost) {
			t.Errorf("got cause %v, want zk.ErrLost", cause)
		}
		if told > timeout*3/4 {
			t.Errorf("the holder was told after %v, want at most three quarters of the session's %v", told, timeout)
		}
		select {
		case r := <-waiting:
			t.Fatalf("the waiter was in before the holder was told: %+v", r)
		default:
		}
		r := <-waiting
		if r.err != nil {
			t.Fatal(r.err)
		}
		if in := time.Since(dark); in-told < timeout/4 {
			t.Errorf("the holder had %v between being told and the next one's turn, want the margin of %v",
				in-told, timeout/4)
		}
	})
}

// Whenever the connection goes, a hold has at least a quarter of the session timeout left.
//
// Promise: 2
func TestHoldSurvivesADisconnectShorterThanItsCertainty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		var net zktest.Net
		srv := zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute))
		hold := acquire(t, mutex(t, srv.Client(t, timeout)))
		for phase := time.Duration(0); phase < timeout/8; phase += timeout / 64 {
			time.Sleep(timeout/2 + phase)
			srv.Cut()
			time.Sleep(timeout / 5)
			srv.Heal()
		}
		time.Sleep(timeout)
		if err := hold.Context().Err(); err != nil {
			t.Fatalf("the hold ended: %v", context.Cause(hold.Context()))
		}
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Promise: 6
func TestOneReleaseWakesOneWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiters, timeout = 100, 20 * time.Second
		var net zktest.Net
		srv := zktest.Run(t, zktest.On(&net))
		hold := acquire(t, mutex(t, srv.Client(t, timeout)))
		got := make(chan result, waiters)
		for range waiters {
			m := mutex(t, srv.Client(t, timeout))
			go func() {
				h, err := m.Lock(t.Context())
				got <- result{h, err}
			}()
		}
		// Then all have set their watches, the holder one on its own node, which must not make a second event.
		time.Sleep(time.Minute)
		before := srv.Traffic().Events
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		time.Sleep(time.Minute)
		if n := srv.Traffic().Events - before; n != 1 {
			t.Errorf("one release made %d watch events with %d waiters, want 1", n, waiters)
		}
		if n := len(got); n != 0 {
			t.Errorf("%d more got the lock while it was held", n)
		}
	})
}

// The end of a session reaches the contexts that descend from it one after the other. A caller that asks meanwhile is
// not told that a hold lives whose session does not: its process may have been stopped for so long that others are in.
//
// Promise: 2
func TestHoldIsOverForEveryCallerAsSoonAsItsSessionIs(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for range 20 {
		client := srv.Client(t, 10*time.Second)
		hold := acquire(t, mutex(t, client))
		sess, ctx := hold.Session(), hold.Context()
		for range 10_000 { // some of which the end comes to before it comes to the hold
			_, cancel := context.WithCancel(sess.Context())
			t.Cleanup(cancel)
		}
		go client.Close()
		for sess.Err() == nil {
			runtime.Gosched()
		}
		if ctx.Err() == nil {
			t.Fatal("the session is over, and the hold's context is not")
		}
	}
}
