package counter_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 14
func TestNodesHoldWhatThePeersHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, x := range []struct {
			layout counter.Layout
			value  int64
			data   string
		}{
			{counter.Long, 258, "\x00\x00\x00\x00\x00\x00\x01\x02"},
			{counter.Long, -2, "\xff\xff\xff\xff\xff\xff\xff\xfe"},
			{counter.Long, math.MinInt64, "\x80\x00\x00\x00\x00\x00\x00\x00"},
			{counter.Int, 258, "\x00\x00\x01\x02"},
			{counter.Int, -2, "\xff\xff\xff\xfe"},
			{counter.Text, 5, "5"},
			{counter.Text, -12, "-12"},
		} {
			c := w.counter(counter.Config{Layout: x.layout})
			must(t, c.Set(t.Context(), x.value))
			if got := w.data(); string(got) != x.data {
				t.Errorf("%v %d: the node holds %q, want %q", x.layout, x.value, got, x.data)
			}
			w.write([]byte(x.data))
			wantValue(t, c, x.value)
		}
	})
}

// Promise: 14
func TestMissingAndEmptyNodesAreZero(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, layout := range []counter.Layout{counter.Long, counter.Int, counter.Text} {
			c := w.counter(counter.Config{Layout: layout})
			wantValue(t, c, 0)
			w.write(nil) // as kazoo's Counter does at first
			wantValue(t, c, 0)
			if got := add(t, c, 5); got != 5 {
				t.Errorf("%v: got %d, want 5", layout, got)
			}
			w.remove()
			if got := add(t, c, 3); got != 3 {
				t.Errorf("%v after a deletion: got %d, want 3", layout, got)
			}
			w.remove()
		}
	})
}

// Promise: 14
func TestUnreadableDataIsAClearErrorAndStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, x := range []struct {
			layout     counter.Layout
			data, says string
		}{
			{counter.Long, "\x00\x00\x00\x05", "layout Int would read it"},
			{counter.Int, "\x00\x00\x00\x00\x00\x00\x00\x05", "layout Long would read it"},
			{counter.Long, "5", "layout Text would read it"},
			{counter.Long, "timeout = 10s", "not a number of layout Long"},
			{counter.Text, "2.5", "not a number of layout Text"},
			{counter.Int, "abc", "holds 3 bytes"},
		} {
			w.write([]byte(x.data))
			c := w.counter(counter.Config{Layout: x.layout})
			_, getErr := c.Get(t.Context())
			_, addErr := c.Add(t.Context(), 1)
			_, casErr := c.CompareAndSet(t.Context(), 0, 1)
			for _, err := range []error{getErr, addErr, casErr} {
				var unreadable *counter.UnreadableError
				if !errors.Is(err, counter.ErrUnreadable) || !errors.As(err, &unreadable) ||
					!strings.Contains(err.Error(), x.says) || strings.Count(err.Error(), path) != 1 {
					t.Errorf("%v of %q: got %v", x.layout, x.data, err)
				}
			}
			if got := w.data(); string(got) != x.data {
				t.Errorf("the node holds %q, want %q as before", got, x.data)
			}
			names, _, err := w.Session(t, timeout).Children(t.Context(), path)
			must(t, err)
			if len(names) != 0 {
				t.Errorf("below the node there is %q, want nothing as before", names)
			}
			must(t, c.Set(t.Context(), 7))
			wantValue(t, c, 7)
			w.remove()
		}
	})
}

// Promise: 14
func TestOverflowIsAnErrorAndChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, x := range []struct {
			layout counter.Layout
			at, n  int64
		}{
			{counter.Long, math.MaxInt64, 1},
			{counter.Long, math.MinInt64, -1},
			{counter.Long, -2, math.MinInt64},
			{counter.Text, math.MaxInt64 - 4, 5},
			{counter.Int, math.MaxInt32, 1},
			{counter.Int, math.MinInt32, -1},
			{counter.Int, 1, math.MaxInt64},
		} {
			c := w.counter(counter.Config{Layout: x.layout})
			must(t, c.Set(t.Context(), x.at))
			if _, err := c.Add(t.Context(), x.n); !errors.Is(err, counter.ErrOverflow) {
				t.Errorf("%v: %d%+d: got %v, want ErrOverflow", x.layout, x.at, x.n, err)
			}
			wantValue(t, c, x.at)
		}
		c := w.counter(counter.Config{Layout: counter.Int})
		if err := c.Set(t.Context(), math.MaxInt32+1); !errors.Is(err, counter.ErrOverflow) {
			t.Errorf("got %v, want ErrOverflow", err)
		}
	})
}

// Promise: 14
func TestAddUpToStopsAtTheLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		for _, x := range []struct {
			n, limit, want int64
			added          bool
		}{
			{3, 5, 3, true},
			{3, 5, 3, false},
			{2, 5, 5, true},
			{-4, 1, 1, true},
			{-1, 1, 1, false},
			{math.MaxInt64, math.MaxInt64, 1, false},
			{0, -100, 1, true},
		} {
			got, added, err := c.AddUpTo(t.Context(), x.n, x.limit)
			must(t, err)
			if got != x.want || added != x.added {
				t.Errorf("%+d up to %d: got %d, %v, want %d, %v", x.n, x.limit, got, added, x.want, x.added)
			}
		}
	})
}

// Promise: 14
func TestCompareAndSetComparesTheValueOfNow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, other := w.counter(counter.Config{}), w.counter(counter.Config{})
		for i, x := range []struct {
			other, old, next int64
			want             bool
		}{{0, 0, 1, true}, {0, 0, 2, false}, {4, 5, 7, true}, {1, 7, 9, false}, {-1, 7, 9, true}} {
			if x.other != 0 {
				add(t, other, x.other) // of which c does not know
			}
			got, err := c.CompareAndSet(t.Context(), x.old, x.next)
			must(t, err)
			if got != x.want {
				t.Errorf("step %d: got %v, want %v", i, got, x.want)
			}
		}
		wantValue(t, c, 9)
	})
}

// What a server knows may be old. That the value is another one is only true if it is so now.
//
// Promise: 14
func TestAnOldReadDoesNotMakeACompareAndSetFail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, other := w.counter(counter.Config{}), w.counter(counter.Config{})
		add(t, other, 3)
		wantValue(t, c, 3)
		_, _, err := w.Session(t, timeout).Get(t.Context(), path) // so that there is an old answer
		must(t, err)
		add(t, other, 4)
		stale := true
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && r.Path == path && stale {
				stale = false
				return zktest.Stale
			}
			return zktest.Pass
		})
		got, err := c.CompareAndSet(t.Context(), 7, 8)
		must(t, err)
		if !got || stale {
			t.Errorf("got %v (stale answer used: %v), want true", got, !stale)
		}
	})
}

// Promise: 14
func TestCallsOfManyGoroutinesLeaveAsOneWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 100
		c := w.counter(counter.Config{})
		add(t, c, 1)
		first, proceed := withCancel(t)
		writes := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				if writes++; writes == 1 {
					return zktest.Until(first)
				}
			}
			return zktest.Pass
		})
		values := make([]int64, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				v, err := c.Add(t.Context(), 1)
				if err != nil {
					t.Error(err)
				}
				values[i] = v
			})
			synctest.Wait() // so that they call in this order
		}
		proceed()
		wg.Wait()
		for i, v := range values {
			if want := int64(i + 2); v != want {
				t.Fatalf("call %d got %d, want %d", i, v, want)
			}
		}
		w.Control(nil) // f does not run any more
		if writes != 2 {
			t.Errorf("%d calls took %d writes, want 2", n, writes)
		}
	})
}

// Promise: 14
func TestNoIncrementIsLostOrDoubledWhateverHitsItAtWhicheverStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.counter(counter.Config{})
		want := int64(0)
		w.atEveryStep(func(fault string, step int) {
			client := w.Client(t, timeout)
			c := w.counterOf(client, counter.Config{})
			// Both write the same bytes to the same versions.
			for range 2 {
				var wg sync.WaitGroup
				for _, c := range []*counter.Counter{c, other, c} {
					wg.Go(func() {
						if _, err := c.Add(t.Context(), 1); err != nil {
							t.Errorf("%s at step %d: %v", fault, step, err)
						}
					})
				}
				wg.Wait()
				want += 3
			}
			w.Control(nil)
			_ = client.Close() // a connection that was just cut need not tell the server
			got, err := other.Get(t.Context())
			must(t, err)
			if got != want {
				t.Fatalf("%s at step %d: the counter is %d after %d increments", fault, step, got, want)
			}
		})
	})
}

// Another process has written the same bytes to the same version, so the node alone does not tell whether the write was
// done.
//
// Promise: 14
func TestLostReplyIsToldFromTheSameWriteOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"not done": zktest.Refuse, "done": zktest.DropReply} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c, other := w.counter(counter.Config{}), w.counter(counter.Config{})
				add(t, c, 1)
				add(t, other, 1)
				cut := int64(0)
				back, proceed := withCancel(t)
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case cut == 0 && isWrite(r):
						cut = r.Session
						return fault
					case r.Op == zktest.OpConnect && r.Session == cut:
						return zktest.Until(back)
					}
					return zktest.Pass
				})
				done := make(chan int64)
				go func() { done <- add(t, c, 1) }()
				synctest.Wait()
				add(t, other, 1)
				proceed()
				<-done
				wantValue(t, other, 4)
			})
		})
	}
}

// mute lets the servers execute the first write and says nothing from then on, to that session.
func (w *world) mute(first zktest.Fault) {
	done := false
	w.Control(func(r zktest.Request) zktest.Fault {
		if done || !isWrite(r) {
			return zktest.Pass
		}
		done = true
		if first == zktest.Mute {
			w.Mute(r.Session)
		} else {
			w.Cut(r.Session)
		}
		return first
	})
}

// Promise: 14
func TestIncrementWhoseSessionEndsBeforeTheAnswerIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"done": zktest.Mute, "not done": zktest.CutBefore} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, timeout)
				c := w.counterOf(client, counter.Config{})
				add(t, c, 1)
				sess, err := client.Session(t.Context())
				must(t, err)
				w.mute(fault)
				if got := add(t, c, 1); got != 2 {
					t.Errorf("got %d, want 2", got)
				}
				if sess.Context().Err() == nil {
					t.Error("the session has not ended")
				}
				wantValue(t, c, 2)
			})
		})
	}
}

// Promise: 14
func TestCallerThatLeavesBeforeItsAddendIsSentIsTakenOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		add(t, c, 1)
		first, proceed := withCancel(t)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) && r.Nth == 1 {
				return zktest.Until(first)
			}
			return zktest.Pass
		})
		var wg sync.WaitGroup
		wg.Go(func() { add(t, c, 1) })
		synctest.Wait()
		ctx, leave := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if _, err := c.Add(ctx, 100); !errors.Is(err, errLeft) || errors.Is(err, counter.ErrUnresolved) {
				t.Errorf("got %v, want the cause alone", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { add(t, c, 1) })
		synctest.Wait()
		leave(errLeft)
		synctest.Wait()
		proceed()
		wg.Wait()
		wantValue(t, c, 3)
	})
}

var errLeft = errors.New("left")

// Promise: 14
func TestCallerThatLeavesAfterItsAddendWasSentGetsTheOutcome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		add(t, c, 1)
		answer, proceed := withCancel(t)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				return zktest.ReplyUntil(answer)
			}
			return zktest.Pass
		})
		ctx, leave := withCancel(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if got, err := c.Add(ctx, 1); got != 2 || err != nil {
				t.Errorf("got %d, %v, want 2", got, err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		proceed()
		<-done
	})
}

// Promise: 14
func TestCallerThatLeavesIsToldThatTheOutcomeIsUnknownWhenTheSessionEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		c := w.counterOf(client, counter.Config{})
		add(t, c, 1)
		sess, err := client.Session(t.Context())
		must(t, err)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				w.Mute()
				return zktest.Mute
			}
			return zktest.Pass
		})
		ctx, leave := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Add(ctx, 1)
			if !errors.Is(err, counter.ErrUnresolved) || !errors.Is(err, errLeft) {
				t.Errorf("got %v, want ErrUnresolved and the cause", err)
			}
			if sess.Context().Err() == nil {
				t.Error("it has not waited for the session's end")
			}
		})
		synctest.Wait()
		leave(errLeft)
		wg.Wait()
		w.Control(nil)
		w.Heal()
		wantValue(t, w.counter(counter.Config{}), 2)
		if got := add(t, c, 1); got != 3 { // it goes on
			t.Errorf("got %d, want 3", got)
		}
	})
}

// Promise: 14
func TestCallersWithoutAServerLeaveWhenTheyWant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		add(t, c, 1)
		w.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := c.Add(ctx, 1)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zk.ErrNotConnected) {
			t.Errorf("got %v, want the deadline, and that there is no connection", err)
		}
		w.Heal()
		if got := add(t, c, 1); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
	})
}

// receipts returns the paths of all receipts below the counter's node.
func (w *world) receipts(sess *zk.Session) []string {
	w.t.Helper()
	dir := path + "/__receipts__"
	minutes, _, err := sess.Children(w.t.Context(), dir)
	must(w.t, err)
	var all []string
	for _, m := range minutes {
		names, _, err := sess.Children(w.t.Context(), dir+"/"+m)
		must(w.t, err)
		for _, name := range names {
			all = append(all, dir+"/"+m+"/"+name)
		}
	}
	return all
}

// Promise: 14
func TestAReceiptThatOthersRemoveIsReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		add(t, c, 1)
		sess := w.Session(t, timeout)
		names := w.receipts(sess)
		if len(names) != 1 {
			t.Fatalf("got %d receipts, want 1", len(names))
		}
		_, err := sess.DeleteAll(t.Context(), path+"/__receipts__")
		must(t, err)
		if got := add(t, c, 1); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
	})
}

// Promise: 14
func TestCloseRemovesTheReceiptsOfThisProcessAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.counter(counter.Config{}), w.counter(counter.Config{})
		add(t, a, 1)
		add(t, b, 1)
		sess := w.Session(t, timeout)
		must(t, a.Close(t.Context()))
		if got := w.receipts(sess); len(got) != 1 {
			t.Errorf("got receipts %q, want b's alone", got)
		}
		if got := add(t, a, 1); got != 3 {
			t.Errorf("got %d after Close, want 3", got)
		}
	})
}

// Promise: 14
func TestReceiptsOfProcessesThatAreGoneAreRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const gone = 160
		for i := range gone {
			client := w.Client(t, timeout)
			add(t, w.counterOf(client, counter.Config{}), 1)
			must(t, client.Close())
			if i%16 == 0 {
				time.Sleep(time.Minute)
			}
		}
		sess := w.Session(t, timeout)
		if got := len(w.receipts(sess)); got != gone {
			t.Fatalf("got %d receipts within the hour, want %d", got, gone)
		}
		time.Sleep(2 * time.Hour)
		sess = w.Session(t, timeout)
		tries := 0
		for ; len(w.receipts(sess)) > gone/2; tries++ {
			client := w.Client(t, timeout)
			add(t, w.counterOf(client, counter.Config{}), 1)
			synctest.Wait()
			must(t, client.Close())
		}
		t.Logf("swept after %d new processes", tries)
	})
}

// Another recipe has made the path as a container. The server would remove it, with the number, when its last child has
// gone.
//
// Promise: 14
func TestCounterInAContainerKeepsItsNumber(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, timeout)
		for _, n := range []zk.Node{{Path: "/counters"}, {Path: path, Mode: zk.Container}, {Path: path + "/x"}} {
			_, err := sess.CreateNode(t.Context(), n)
			must(t, err)
		}
		c := w.counter(counter.Config{})
		add(t, c, 5)
		must(t, c.Close(t.Context()))
		must(t, sess.Delete(t.Context(), path+"/x", -1))
		time.Sleep(time.Hour) // the server looks every minute
		wantValue(t, w.counter(counter.Config{}), 5)
	})
}

// As with kazoo's counters whose list of rights allows to write, and not to create below.
//
// Promise: 14
func TestCounterWithoutTheRightToCreateBelowItCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, timeout)
		_, err := sess.Create(t.Context(), "/counters", nil, zk.Persistent)
		must(t, err)
		acl := []zk.ACL{{Perms: zk.PermRead | zk.PermWrite, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		_, err = sess.CreateNode(t.Context(), zk.Node{Path: path, ACL: acl})
		must(t, err)
		c := w.counter(counter.Config{})
		add(t, c, 1)
		if got := add(t, c, 1); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		_, err = c.Add(t.Context(), 1)
		if !errors.Is(err, counter.ErrUnresolved) {
			t.Errorf("got %v after a lost reply, want ErrUnresolved", err)
		}
	})
}

func TestRefusalReachesTheCallers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.counter(counter.Config{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if isWrite(r) {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		if _, err := c.Add(t.Context(), 1); !errors.Is(err, zk.NoAuth) {
			t.Errorf("got %v, want NoAuth", err)
		}
		w.Control(nil)
		if got := add(t, c, 1); got != 1 {
			t.Errorf("got %d, want 1", got)
		}
	})
}

func TestClosedClientIsAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		c := w.counterOf(client, counter.Config{})
		must(t, client.Close())
		if _, err := c.Add(t.Context(), 1); !errors.Is(err, zk.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestParentsLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Control(func(r zktest.Request) zktest.Fault {
			const container = 19
			if r.Code == container {
				t.Errorf("%s was made as a container", r.Path)
			}
			return zktest.Pass
		})
		add(t, w.counter(counter.Config{}), 1)
		if got := w.data(); !bytes.Equal(got, []byte{0, 0, 0, 0, 0, 0, 0, 1}) {
			t.Errorf("the node holds %q", got)
		}
	})
}

func TestInvalidConfigurationIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		for _, x := range []struct {
			path string
			cfg  counter.Config
		}{
			{"visits", counter.Config{}},
			{"/", counter.Config{}},
			{"/zookeeper/visits", counter.Config{}},
			{path, counter.Config{Layout: 7}},
			{path + "/__receipts__", counter.Config{}},
			{path + "-__delay__/x", counter.Config{}},
		} {
			if _, err := counter.New(client, x.path, x.cfg); err == nil {
				t.Errorf("%q with %+v: no error", x.path, x.cfg)
			}
		}
		if _, err := counter.New(nil, path, counter.Config{}); err == nil {
			t.Error("no client: no error")
		}
		if _, err := counter.NewSequence(client, path, counter.SequenceConfig{Block: -1}); err == nil {
			t.Error("negative Block: no error")
		}
		if _, err := counter.NewValue(client, path, counter.ValueConfig{MaxPacket: 10}); err == nil {
			t.Error("small MaxPacket: no error")
		}
	})
}

// Promise: 14
func TestProcessesThatCompeteLoseNothingAndAllGetOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const processes, each = 8, 40
		w.Delay(time.Millisecond)
		var mu sync.Mutex
		var values []int64
		var wg sync.WaitGroup
		for i := range processes {
			client := w.Client(t, timeout)
			c := w.counterOf(client, counter.Config{})
			wg.Go(func() {
				for k := range each {
					if k == each/2 && i%2 == 0 {
						sess, err := client.Session(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						w.Drop(sess.ID())
					}
					v, err := c.Add(t.Context(), 1)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					values = append(values, v)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(values)
		for i, v := range values {
			if v != int64(i+1) {
				t.Fatalf("call %d got %d", i+1, v)
			}
		}
		if len(values) != processes*each {
			t.Errorf("%d values, want %d", len(values), processes*each)
		}
	})
}

// A read shows what was there before it, also on a server that lags behind: the server is asked to catch up first, and
// its answer is not for nothing.
func TestReadsAreNoOlderThanTheCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		c, v := w.counterOf(client, counter.Config{}), w.value(client)
		_, err := c.Add(t.Context(), 1)
		must(t, err)
		sess, err := client.Session(t.Context())
		must(t, err)
		for name, read := range map[string]func(context.Context) error{
			"Counter.Get": func(ctx context.Context) error { _, err := c.Get(ctx); return err },
			"Value.Get":   func(ctx context.Context) error { _, err := v.Get(ctx); return err },
		} {
			var ops []zktest.Op
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Session == sess.ID() && (r.Op == zktest.OpSync || r.Op == zktest.OpGetData) {
					ops = append(ops, r.Op)
				}
				return zktest.Pass
			})
			must(t, read(t.Context()))
			if !slices.Equal(ops, []zktest.Op{zktest.OpSync, zktest.OpGetData}) {
				t.Errorf("%s: got %v, want a sync, and then the read", name, ops)
			}
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Op == zktest.OpSync {
					return zktest.Answer(zk.NotReadOnly)
				}
				return zktest.Pass
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v of a server that cannot catch up, want the deadline's end", name, err)
			}
			cancel()
			w.Control(nil)
		}
	})
}
