package counter

// Guests and hosts: processes that make each other's calls.

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	shared  = "/visits"
	timeout = 20 * time.Second
)

// crowd is a server, and time, that belong to one test.
type crowd struct {
	*zktest.Server
	*testing.T
}

func inCrowd(t *testing.T, test func(t *testing.T, w *crowd)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		test(t, &crowd{zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute)), t})
	})
}

func (w *crowd) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// process returns a counter of a process of its own, and its session.
func (w *crowd) process() (*Counter, *zk.Session) {
	w.Helper()
	client := w.Client(w.T, timeout)
	c, err := New(client, shared, Config{})
	w.must(err)
	sess, err := client.Session(w.Context())
	w.must(err)
	return c, sess
}

// guest returns a process that asks others to make its next calls.
func (w *crowd) guest() (*Counter, *zk.Session) {
	w.Helper()
	c, sess := w.process()
	w.add(c, 0)     // it has a receipt
	synctest.Wait() // its goroutine has ended
	c.calls.guest.losses = maxSkip + 1
	return c, sess
}

func (w *crowd) add(c *Counter, n int64) int64 {
	w.Helper()
	v, err := c.Add(w.Context(), n)
	w.must(err)
	return v
}

// asks begins to add n, and returns when the request waits for a host.
func (w *crowd) asks(c *Counter, n int64) (result func() (int64, error)) {
	w.Helper()
	var v int64
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { v, err = c.Add(w.Context(), n) })
	synctest.Wait()
	return func() (int64, error) { wg.Wait(); return v, err }
}

// requests returns the names of the requests that wait.
func (w *crowd) requests() []string {
	w.Helper()
	names, _, err := w.Session(w.T, timeout).Children(w.Context(), shared+"-requests")
	if !errors.Is(err, zk.NoNode) {
		w.must(err)
	}
	return names
}

func (w *crowd) wantRequests(n int) {
	w.Helper()
	if got := w.requests(); len(got) != n {
		w.Errorf("%d requests wait, want %d", len(got), n)
	}
}

func (w *crowd) wantValue(c *Counter, want int64) {
	w.Helper()
	if got, err := c.Get(w.Context()); err != nil || got != want {
		w.Errorf("the counter is %d, %v, want %d", got, err, want)
	}
}

// wantResult checks what an addition of a guest has returned.
func (w *crowd) wantResult(result func() (int64, error), want int64) {
	w.Helper()
	if got, err := result(); err != nil || got != want {
		w.Errorf("the guest got %d, %v, want %d", got, err, want)
	}
}

func TestRequestIsReadAsItWasWritten(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		c, sess := w.guest()
		rec, err := c.reg.receipts.get(t.Context(), sess)
		w.must(err)
		calls := []*call{
			newCall(opAdd, -1, 0), newCall(opAddUpTo, math.MaxInt64, math.MinInt64), newCall(opCompare, 1, 2),
			newCall(opSet, 0, 0),
		}
		sent := newRequest(rec, calls)
		got := parseRequest(sent.name)
		if got == nil || got.receipt != sent.receipt || got.version != sent.version || got.stamp != sent.stamp ||
			len(got.calls) != len(calls) {
			t.Fatalf("got %+v, want %+v", got, sent)
		}
		for i, x := range got.calls {
			if x.op != calls[i].op || x.n != calls[i].n || x.other != calls[i].other {
				t.Errorf("call %d: got %+v, want %+v", i, x, calls[i])
			}
		}
		if newRequest(rec, slices.Repeat(calls, 64)) != nil {
			t.Error("a request that is too long was made")
		}
	})
}

func FuzzParseRequest(f *testing.F) {
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAABYQACAA")
	f.Fuzz(func(t *testing.T, name string) {
		if r := parseRequest(name); r != nil && (r.receipt == "" || len(name) > maxRequest || r.version == anyVersion) {
			t.Errorf("%q was taken for %+v", name, r)
		}
	})
}

func TestHostMakesTheCallsOfGuestsWithItsOwn(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		host, hosting := w.process()
		first, _ := w.guest()
		second, _ := w.guest()
		w.add(host, 1)
		one, two := w.asks(first, 10), w.asks(second, 100)
		w.wantRequests(2)
		time.Sleep(lookEvery)
		w.add(host, 1) // and looks
		writes := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				writes++
				if r.Session != hosting.ID() {
					t.Errorf("a guest writes: %+v", r)
				}
			}
			return zktest.Pass
		})
		if got := w.add(host, 1); got != 3 {
			t.Errorf("the host got %d, want 3", got)
		}
		a, errA := one()
		b, errB := two()
		w.must(errors.Join(errA, errB))
		if b != 113 && a != 113 || a != 13 && b != 103 {
			t.Errorf("the guests got %d and %d", a, b)
		}
		if writes != 1 {
			t.Errorf("%d writes, want 1", writes)
		}
		w.Control(nil)
		w.wantRequests(0)
		w.wantValue(host, 113)
	})
}

func TestGuestGetsWhatItAsksFor(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		host, _ := w.process()
		w.add(host, 5)
		serve := func(do func(c *Counter) error) {
			c, _ := w.guest()
			var err error
			var wg sync.WaitGroup
			wg.Go(func() { err = do(c) })
			synctest.Wait()
			w.wantRequests(1)
			time.Sleep(lookEvery)
			w.add(host, 0)
			w.add(host, 0)
			wg.Wait()
			w.must(err)
			if c.calls.guest.answeredAt.IsZero() {
				t.Error("the guest wrote itself")
			}
		}
		serve(func(c *Counter) error {
			v, added, err := c.AddUpTo(t.Context(), 10, 12)
			if v != 5 || added {
				t.Errorf("got %d, %v; want 5 and nothing added", v, added)
			}
			return err
		})
		serve(func(c *Counter) error {
			done, err := c.CompareAndSet(t.Context(), 4, 7)
			if done {
				t.Error("4 was replaced where there is 5")
			}
			return err
		})
		serve(func(c *Counter) error {
			if _, err := c.Add(t.Context(), math.MaxInt64); !errors.Is(err, ErrOverflow) {
				t.Errorf("got %v, want an overflow", err)
			}
			return nil
		})
		serve(func(c *Counter) error {
			done, err := c.CompareAndSet(t.Context(), 5, 7)
			if !done {
				t.Error("5 was not replaced")
			}
			return err
		})
		w.wantValue(host, 7)
	})
}

func TestGuestWithoutAHostWritesItself(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		host, _ := w.process()
		c, _ := w.guest()
		result := w.asks(c, 10)
		w.wantRequests(1)
		w.wantResult(result, 10)
		w.wantRequests(0)
		w.add(host, 1)
		w.add(host, 1)
		w.wantValue(host, 12)
		synctest.Wait()
		if c.calls.guest.asks() {
			t.Error("it asks again at once")
		}
	})
}

func TestGuestLeavesNoRequestBehindWhicheverRequestIsLost(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"lost": zktest.CutBefore, "its reply lost": zktest.DropReply, "refused for now": zktest.Answer(zk.ThrottledOp),
	} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, func(t *testing.T, w *crowd) {
				want := int64(0)
				for step, reached := 1, true; reached; step++ {
					c, _ := w.guest()
					reached = false
					var mu sync.Mutex // guards reached
					w.Control(func(r zktest.Request) zktest.Fault {
						mu.Lock()
						defer mu.Unlock()
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					want += 10
					w.wantResult(w.asks(c, 10), want)
					time.Sleep(timeout) // the process lives on, and does nothing
					w.Control(nil)
					w.wantRequests(0)
				}
			})
		})
	}
}

// The node of a request that its process has withdrawn can come late, and other programs can make nodes there.
func TestHostLeavesOutWhatItCannotServe(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		host, _ := w.process()
		c, sess := w.guest()
		rec, err := c.reg.receipts.get(t.Context(), sess)
		w.must(err)
		calls := []*call{newCall(opAdd, 1000, 0)}
		late := newRequest(rec, calls)
		c.reg.receipts.Put(rec)
		w.add(w.served(c), 1) // the receipt moves on
		rec.Path = c.reg.receipts.dir + "/nowhere"
		for _, name := range []string{late.name, newRequest(rec, calls).name, "rubbish"} {
			_, err := w.Session(t, timeout).Create(t.Context(), shared+"-requests/"+name, nil, zk.Persistent)
			w.must(err)
		}
		for range 6 {
			time.Sleep(lookEvery)
			w.add(host, 1)
		}
		w.wantValue(host, 7)
		if got := w.requests(); !slices.Equal(got, []string{"rubbish"}) {
			t.Errorf("%q are left, want only what is no request", got)
		}
	})
}

// served makes the counter write by itself from now on, where it has made the directory of requests.
func (w *crowd) served(c *Counter) *Counter {
	w.Helper()
	w.add(c, 0) // asks, and gives up
	return c
}

func TestGuestIsServedOnceWhateverHitsItOrItsHostAtWhicheverStep(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"the request is lost": zktest.Refuse, "the connection is cut": zktest.CutBefore,
		"the reply is lost": zktest.DropReply, "the connection ends behind it": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, func(t *testing.T, w *crowd) {
				host, _ := w.process()
				want := int64(0)
				for step := 1; ; step++ {
					c, _ := w.guest()
					reached := false
					var mu sync.Mutex
					w.Control(func(r zktest.Request) zktest.Fault {
						mu.Lock()
						defer mu.Unlock()
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					result := w.asks(c, 1000)
					for range 4 {
						time.Sleep(lookEvery)
						w.add(host, 1)
					}
					got, err := result()
					w.must(err)
					w.Control(nil)
					want += 1004
					w.wantValue(host, want)
					if got < want-4 || got > want {
						t.Errorf("step %d: the guest got %d of %d", step, got, want)
					}
					_ = c.reg.client.Close()
					if !reached {
						return
					}
				}
			})
		})
	}
}

func TestGuestWhoseSessionEndsIsServedOnce(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"served": true, "not served": false} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, func(t *testing.T, w *crowd) {
				host, _ := w.process()
				c, sess := w.guest()
				result := w.asks(c, 1000)
				if served {
					w.Mute(sess.ID())
					time.Sleep(lookEvery)
					w.add(host, 1)
					w.add(host, 1)
					w.wantRequests(0)
					w.wantValue(host, 1002)
				}
				w.ExpireSession(sess.ID())
				got, err := result()
				w.must(err)
				want := int64(1000)
				if served {
					want = 1002
				}
				w.wantValue(host, want)
				if got != want {
					t.Errorf("got %d, want %d", got, want)
				}
			})
		})
	}
}

func TestGuestThatLeavesIsToldWhatBecameOfItsCalls(t *testing.T) {
	inCrowd(t, func(t *testing.T, w *crowd) {
		c, _ := w.guest()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = c.Add(ctx, 1000) })
		synctest.Wait()
		w.wantRequests(1)
		cancel()
		wg.Wait()
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnresolved) {
			t.Errorf("got %v, want that it was not added", err)
		}
		w.wantRequests(0)
		w.wantValue(c, 0)
	})
}

func TestAnswerOfAHostThatWroteToAnotherNodeIsAnError(t *testing.T) {
	t.Parallel()
	at := func(czxid int64) zk.Existence { return zk.Existence{Exists: true, Stat: zk.Stat{Czxid: czxid}} }
	for _, row := range []struct {
		what string
		host int64
		node zk.Existence
		want error
	}{
		{"the same node", 5, at(5), nil},
		{"created between the host's read and its write", 5, at(7), ErrRecreated},
		{"created after the write", 5, at(11), nil},
		{"created by the write", 0, at(10), nil},
		{"gone", 5, zk.Existence{}, nil},
	} {
		if err := (answer{czxid: row.host}).recreated(row.node, 10); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.what, err, row.want)
		}
	}
}
