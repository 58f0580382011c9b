package counter_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func get(t *testing.T, v *counter.Value) counter.Versioned {
	t.Helper()
	now, err := v.Get(t.Context())
	must(t, err)
	return now
}

func TestValueIsTheBytesOfItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		if now := get(t, v); now.Exists || now.Data != nil || now.Mzxid != 0 {
			t.Errorf("got %+v, want no node", now)
		}
		must(t, v.Set(t.Context(), []byte("one")))
		if got := w.data(); string(got) != "one" {
			t.Errorf("the node holds %q", got)
		}
		must(t, v.Set(t.Context(), nil))
		if now := get(t, v); !now.Exists || len(now.Data) != 0 || now.Version != 1 {
			t.Errorf("got %+v, want an empty node", now)
		}
	})
}

// Promise: 14
func TestCompareAndSetOfAValueTakesWhatItReturned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v, other := w.value(w.Client(t, timeout)), w.value(w.Client(t, timeout))
		first, done, err := v.CompareAndSet(t.Context(), counter.Versioned{}, []byte("a"))
		must(t, err)
		if now := get(t, other); !done || now.Mzxid != first.Mzxid || now.Czxid != first.Czxid || now.Version != 0 {
			t.Errorf("got %+v, %v; it is %+v", first, done, now)
		}
		second, done, err := v.CompareAndSet(t.Context(), first, []byte("b"))
		must(t, err)
		if now := get(t, other); !done || now.Mzxid != second.Mzxid || now.Version != 1 || string(second.Data) != "b" {
			t.Errorf("got %+v, %v; it is %+v", second, done, now)
		}
		now, done, err := other.CompareAndSet(t.Context(), first, []byte("c"))
		must(t, err)
		if done || string(now.Data) != "b" || now.Mzxid != second.Mzxid {
			t.Errorf("got %+v, %v; want what is there", now, done)
		}
	})
}

// The version of a new node begins at 0 again, so it may be that of the old one.
//
// Promise: 14
func TestCompareAndSetIsRefusedInARecreatedNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("a")))
		old := get(t, v)
		w.remove()
		must(t, v.Set(t.Context(), []byte("a")))
		now, done, err := v.CompareAndSet(t.Context(), old, []byte("b"))
		must(t, err)
		if done || now.Version != old.Version || string(now.Data) != "a" {
			t.Errorf("got %+v, %v; want it refused", now, done)
		}
	})
}

// Between the read and the write no server can tell the nodes apart, but the receipt has gone with the old one.
//
// Promise: 14
func TestValueThatIsRecreatedDuringACompareAndSetIsNotReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v, other := w.value(w.Client(t, timeout)), w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("a")))
		old := get(t, v)
		write, proceed := withCancel(t)
		held := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) && !held {
				held = true
				return zktest.Until(write)
			}
			return zktest.Pass
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			now, done, err := v.CompareAndSet(t.Context(), old, []byte("b"))
			if done || err != nil || string(now.Data) != "c" {
				t.Errorf("got %q, %v, %v, want it refused, and c", now.Data, done, err)
			}
		}()
		synctest.Wait()
		w.remove()
		must(t, other.Set(t.Context(), []byte("c")))
		proceed()
		<-done
	})
}

// Promise: 14
func TestSeedLeavesANodeThatExists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		now, err := v.Seed(t.Context(), []byte("seed"))
		must(t, err)
		if string(now.Data) != "seed" {
			t.Errorf("got %+v", now)
		}
		w.write(nil)
		if now, err = v.Seed(t.Context(), []byte("seed")); err != nil || len(now.Data) != 0 || !now.Exists {
			t.Errorf("got %+v, %v; want the empty node", now, err)
		}
	})
}

// Promise: 14
func TestSetIsDoneOnceWhateverHitsItAtWhicheverStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("first")))
		w.atEveryStep(func(fault string, step int) {
			before := get(t, v).Version
			client := w.Client(t, timeout)
			must(t, w.value(client).Set(t.Context(), []byte("second")))
			w.Control(nil)
			_ = client.Close() // a connection that was just cut need not tell the server
			if now := get(t, v); string(now.Data) != "second" || now.Version != before+1 {
				t.Errorf("%s at step %d: version %d became %d", fault, step, before, now.Version)
			}
		})
	})
}

// Promise: 14
func TestCompareAndSetKnowsItsOutcomeWhateverHitsItAtWhicheverStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("first")))
		w.atEveryStep(func(fault string, step int) {
			before := get(t, v)
			client := w.Client(t, timeout)
			got, done, err := w.value(client).CompareAndSet(t.Context(), before, []byte(fault))
			must(t, err)
			w.Control(nil)
			_ = client.Close() // a connection that was just cut need not tell the server
			now := get(t, v)
			if !done || now.Mzxid != got.Mzxid || now.Version != got.Version || now.Version != before.Version+1 {
				t.Errorf("%s at step %d: got %+v, %v; it is %+v", fault, step, got, done, now)
			}
		})
	})
}

// A Set without a reply that is simply sent again would replace what another process has set behind it.
//
// Promise: 14
func TestSetWhoseReplyIsLostDoesNotReplaceALaterValue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v, other := w.value(w.Client(t, timeout)), w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("a")))
		must(t, other.Set(t.Context(), []byte("a")))
		cut := int64(0)
		back, proceed := withCancel(t)
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case cut == 0 && isWrite(r):
				cut = r.Session
				return zktest.DropReply
			case r.Op == zktest.OpConnect && r.Session == cut:
				return zktest.Until(back)
			}
			return zktest.Pass
		})
		var wg sync.WaitGroup
		wg.Go(func() { must(t, v.Set(t.Context(), []byte("b"))) })
		synctest.Wait()
		must(t, other.Set(t.Context(), []byte("c")))
		proceed()
		wg.Wait()
		if now := get(t, other); string(now.Data) != "c" {
			t.Errorf("got %q, want c", now.Data)
		}
	})
}

func TestValueTooLargeForServersIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		large := make([]byte, 1<<20)
		_, _, err := v.CompareAndSet(t.Context(), counter.Versioned{}, large)
		for _, err := range []error{v.Set(t.Context(), large), err} {
			if !errors.Is(err, counter.ErrTooLarge) {
				t.Errorf("got %v, want ErrTooLarge", err)
			}
		}
		must(t, v.Set(t.Context(), large[:1<<20-10<<10]))
	})
}

// watching returns what v.Watch yields, one by one.
func watching(t *testing.T, v *counter.Value) func() counter.Versioned {
	t.Helper()
	next, stop := iter.Pull2(v.Watch(t.Context()))
	t.Cleanup(stop)
	return func() counter.Versioned {
		t.Helper()
		now, err, ok := next()
		if !ok || err != nil {
			t.Fatalf("the watch has ended: %v", err)
		}
		return now
	}
}

// Promise: 14
func TestWatchYieldsTheValueAndItsChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		watched := watching(t, w.value(w.Client(t, timeout)))
		var got []string
		see := func() {
			now := watched()
			if got = append(got, string(now.Data)); !now.Exists {
				got[len(got)-1] = "none"
			}
		}
		see()
		must(t, v.Set(t.Context(), []byte("a")))
		see()
		must(t, v.Set(t.Context(), []byte("b")))
		must(t, v.Set(t.Context(), []byte("c")))
		see()
		w.remove()
		see()
		must(t, v.Set(t.Context(), []byte("c")))
		see()
		if want := []string{"none", "a", "c", "none", "c"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Promise: 14
func TestWatchGoesOnAfterReconnectsAndUnderNewSessions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		v, watched := w.value(w.Client(t, timeout)), watching(t, w.value(client))
		must(t, v.Set(t.Context(), []byte("a")))
		watched()
		for i, fault := range []func(id int64){
			func(id int64) { w.Drop(id) },
			func(id int64) { w.ExpireSession(id) },
			func(id int64) { w.Cut(id); time.Sleep(2 * timeout); w.Heal(id) },
		} {
			sess, err := client.Session(t.Context())
			must(t, err)
			fault(sess.ID())
			must(t, v.Set(t.Context(), []byte{byte(i)}))
			if now := watched(); string(now.Data) != string([]byte{byte(i)}) {
				t.Errorf("fault %d: got %q", i, now.Data)
			}
		}
	})
}

// A server may lag behind what the watch has yielded, also after a Sync that a replaced leader has answered.
//
// Promise: 14
func TestWatchNeverGoesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("a")))
		old := get(t, v)
		watched := watching(t, w.value(client))
		watched()
		must(t, v.Set(t.Context(), []byte("b")))
		if now := watched(); now.Mzxid <= old.Mzxid || string(now.Data) != "b" {
			t.Errorf("got %+v after %+v", now, old)
		}
		sess, err := client.Session(t.Context())
		must(t, err)
		w.ExpireSession(sess.ID())
		next := make(chan counter.Versioned)
		go func() { next <- watched() }()
		time.Sleep(timeout) // in the bubble no time passes; the watch reads the same value under the next session
		must(t, v.Set(t.Context(), []byte("c")))
		if now := <-next; string(now.Data) != "c" {
			t.Errorf("got %q again, want c", now.Data)
		}
	})
}

// Transaction ids begin again in an ensemble that was rebuilt.
//
// Promise: 14
func TestWatchGoesOnInAnEnsembleThatWasRebuilt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, timeout)
		for range 100 {
			_, err := sess.Set(t.Context(), "/", nil, -1)
			must(t, err)
		}
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("old")))
		watched := watching(t, v)
		old := watched()
		w.Wipe()
		if now := watched(); now.Exists {
			t.Errorf("got %q, want that the node is missing", now.Data)
		}
		must(t, w.value(w.Client(t, timeout)).Set(t.Context(), []byte("new")))
		if now := watched(); string(now.Data) != "new" || now.Mzxid >= old.Mzxid {
			t.Errorf("got %q by transaction %d, want new by one before %d", now.Data, now.Mzxid, old.Mzxid)
		}
	})
}

// Promise: 14
func TestWatchContinuesAfterRefusals(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.value(w.Client(t, timeout))
		must(t, v.Set(t.Context(), []byte("a")))
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && r.Nth <= 2 {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		refused := 0
		for now, err := range v.Watch(t.Context()) {
			if err == nil {
				if string(now.Data) != "a" {
					t.Errorf("got %q, want a", now.Data)
				}
				break
			}
			if !errors.Is(err, zk.NoAuth) {
				t.Errorf("got %v, want NoAuth", err)
			}
			refused++
		}
		if refused != 2 {
			t.Errorf("got %d refusals and then no value, want 2 and the value", refused)
		}
	})
}

// Promise: 14
func TestWatchEndsWithItsContextAndItsClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		v := w.value(client)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		follow := func(ctx context.Context) {
			for _, err := range v.Watch(ctx) {
				if err != nil {
					ended <- err
				}
			}
		}
		go follow(ctx)
		synctest.Wait()
		cancel(errLeft)
		if err := <-ended; !errors.Is(err, errLeft) {
			t.Errorf("got %v, want the cause", err)
		}
		go follow(t.Context())
		synctest.Wait()
		must(t, client.Close())
		if err := <-ended; !errors.Is(err, zk.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		w.NoWatches(t)
	})
}
