package counter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// loseBirth loses the first request that creates the node, after it has called lost with the session, and holds up the
// second one until it may proceed. Late does what the first asked for, as if a partition had delayed it (see package
// peer's TestCreationMayBeDoneAfterALaterWriteOfItsSession).
func (w *world) loseBirth(data string, lost func(session int64)) (second <-chan struct{}, late, proceed func()) {
	w.t.Helper()
	_, err := w.Session(w.t, timeout).Create(w.t.Context(), "/counters", nil, zk.Persistent)
	must(w.t, err)
	var ops []zk.Op
	again := make(chan struct{})
	until, proceed := withCancel(w.t)
	w.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case !isWrite(r) || r.Parts[0].Op != zktest.OpCreate:
			return zktest.Pass
		case ops != nil:
			close(again)
			return zktest.Until(until)
		}
		for _, part := range r.Parts {
			ops = append(ops, zk.CreateOp(part.Path, []byte(data), zk.Persistent))
		}
		lost(r.Session)
		return zktest.Refuse
	})
	return again, func() {
		w.t.Helper()
		w.Control(nil)
		_, err := w.Session(w.t, timeout).Multi(w.t.Context(), ops...)
		must(w.t, err)
	}, proceed
}

// wantFive checks that the counter has 5, and that it counts on from there.
func wantFive(t *testing.T, c *counter.Counter) {
	t.Helper()
	wantValue(t, c, 5)
	if got := add(t, c, 1); got != 6 {
		t.Errorf("got %d, want 6", got)
	}
}

// Promise: 14
func TestIncrementThatCreatesTheNodeLateIsCountedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{Layout: counter.Text})
		second, late, proceed := w.loseBirth("5", func(int64) {})
		done := make(chan int64)
		go func() { done <- add(t, c, 5) }()
		<-second
		late()
		proceed()
		if got := <-done; got != 5 {
			t.Errorf("got %d, want 5", got)
		}
		wantFive(t, c)
	})
}

// Promise: 14
func TestValueThatIsCreatedLateWasSetByTheCallThatAskedForIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		second, late, proceed := w.loseBirth("mine", func(int64) {})
		done := make(chan bool)
		go func() {
			_, set, err := v.CompareAndSet(t.Context(), counter.Versioned{}, []byte("mine"))
			must(t, err)
			done <- set
		}()
		<-second
		late()
		must(t, w.value(w.Client(t, timeout)).Set(t.Context(), []byte("theirs")))
		proceed()
		if !<-done {
			t.Error("got that the value was not set")
		}
		if got := get(t, v); string(got.Data) != "theirs" {
			t.Errorf("got %q, want theirs", got.Data)
		}
	})
}

// The session ends at the client alone: the servers may still do what it has asked for.
//
// Promise: 14
func TestIncrementThatCreatesTheNodeAfterTheSessionHasEndedHereIsUnresolved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		sess, err := client.Session(t.Context())
		must(t, err)
		c := w.counterOf(client, counter.Config{Layout: counter.Text})
		_, late, _ := w.loseBirth("5", func(session int64) { w.Cut(session) })
		_, err = c.Add(t.Context(), 5)
		if !errors.Is(err, counter.ErrUnresolved) || !errors.Is(sess.Err(), zk.ErrLost) {
			t.Errorf("got %v, and %v of the session; want ErrUnresolved, and ErrLost", err, sess.Err())
		}
		late()
		wantFive(t, c)
	})
}

// Promise: 14
func TestCallerThatLeavesWhileTheNodeMayBeCreatedLateIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		ctx, leave := context.WithCancelCause(t.Context())
		_, late, _ := w.loseBirth("mine", func(int64) { leave(errLeft) })
		if err := v.Set(ctx, []byte("mine")); !errors.Is(err, counter.ErrUnresolved) || !errors.Is(err, errLeft) {
			t.Errorf("got %v, want ErrUnresolved and the cause", err)
		}
		late()
	})
}
