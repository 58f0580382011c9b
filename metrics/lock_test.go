package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/metrics"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const lockPath = "/locks/report"

func mutex(tb testing.TB, client *zk.Client, path string, cfg lock.Config) *lock.Mutex {
	tb.Helper()
	m, err := lock.NewMutex(client, path, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// told is a mutex with metrics and a client of its own.
func (w *world) told(cfg lock.Config) *lock.Mutex {
	w.t.Helper()
	cfg.Hooks = w.metrics.Lock()
	return mutex(w.t, w.client(), lockPath, cfg)
}

// lockConfig is the configuration of a lock with metrics.
func (w *world) lockConfig() lock.Config { return lock.Config{Hooks: w.metrics.Lock()} }

func must[V any](tb testing.TB) func(v V, err error) V {
	tb.Helper()
	return func(v V, err error) V {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func locked(tb testing.TB, take func(context.Context) (*lock.Hold, error)) *lock.Hold {
	tb.Helper()
	return must[*lock.Hold](tb)(take(tb.Context()))
}

// idle is what the gauges of the lock show while nothing happens.
var idle = map[string]float64{
	"lock_held{kind=exclusive,lock=/locks/report}":    0,
	"lock_waiting{kind=exclusive,lock=/locks/report}": 0,
	"lock_longest_hold_seconds{lock=/locks/report}":   0,
	"lock_longest_wait_seconds{lock=/locks/report}":   0,
}

func TestDeadlocksAreCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.told(lock.Config{OnDeadlock: lock.FailWait})
		hold := locked(t, m.Lock)
		w.want(map[string]float64{"lock_deadlocks_total{lock=/locks/report}": 0})
		if _, err := m.Lock(hold.Context()); !errors.Is(err, lock.ErrDeadlock) {
			t.Fatal(err)
		}
		w.want(map[string]float64{
			"lock_deadlocks_total{lock=/locks/report}":                                    1,
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=deadlock}": 1,
			"lock_waiting{kind=exclusive,lock=/locks/report}":                             0,
		})
		_ = hold.Unlock()
		w.want(idle)
	})
}

func TestHoldsAreCountedAndMeasured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.told(lock.Config{})
		hold := locked(t, m.Lock)
		time.Sleep(3 * time.Second)
		w.want(map[string]float64{
			"lock_acquired_total{how=server,kind=exclusive,lock=/locks/report}":           1,
			"lock_acquired_total{how=handoff,kind=exclusive,lock=/locks/report}":          0,
			"lock_acquired_total{how=retained,kind=exclusive,lock=/locks/report}":         0,
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=acquired}": 1,
			"lock_wait_seconds_sum{kind=exclusive,lock=/locks/report,outcome=acquired}":   0,
			"lock_held{kind=exclusive,lock=/locks/report}":                                1,
			"lock_longest_hold_seconds{lock=/locks/report}":                               3,
			"lock_contended_total{lock=/locks/report}":                                    0,
			"lock_lost_total{cause=expired,lock=/locks/report}":                           0,
			"lock_hold_seconds_count{end=released,kind=exclusive,lock=/locks/report}":     0,
		})
		_ = hold.Unlock()
		w.want(map[string]float64{
			"lock_hold_seconds_count{end=released,kind=exclusive,lock=/locks/report}": 1,
			"lock_hold_seconds_sum{end=released,kind=exclusive,lock=/locks/report}":   3,
		})
		w.want(idle)
	})
}

func TestWaitsAreCountedAndMeasuredWhateverTheirEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.told(lock.Config{})
		other := locked(t, mutex(t, w.client(), lockPath, lock.Config{}).Lock)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		why := errors.New("enough")
		canceled, cancelWait := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := m.Lock(canceled); !errors.Is(err, why) {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		holds := make(chan *lock.Hold)
		wg.Go(func() {
			h, err := m.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			holds <- h
		})
		time.Sleep(4 * time.Second)
		w.want(map[string]float64{
			"lock_waiting{kind=exclusive,lock=/locks/report}": 2,
			"lock_longest_wait_seconds{lock=/locks/report}":   5,
			"lock_contended_total{lock=/locks/report}":        3,
			"lock_held{kind=exclusive,lock=/locks/report}":    0,
		})
		cancelWait(why)
		w.want(map[string]float64{
			"lock_waiting{kind=exclusive,lock=/locks/report}": 1,
			"lock_longest_wait_seconds{lock=/locks/report}":   4,
		})
		_ = other.Unlock()
		_ = (<-holds).Unlock()
		wg.Wait()
		w.want(idle)
		w.want(map[string]float64{
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=held}":     1,
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=canceled}": 2,
			"lock_wait_seconds_sum{kind=exclusive,lock=/locks/report,outcome=canceled}":   7,
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=acquired}": 1,
			"lock_wait_seconds_sum{kind=exclusive,lock=/locks/report,outcome=acquired}":   4,
		})
	})
}

func TestRefusalsAndErrorsAreTheirOwnOutcomes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.client()
		m := mutex(t, client, lockPath, lock.Config{Hooks: w.metrics.Lock()})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpMulti {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		if _, err := m.Lock(t.Context()); !errors.Is(err, zk.NoAuth) {
			t.Fatal(err)
		}
		w.Control(nil)
		_ = client.Close()
		if _, err := m.Lock(t.Context()); !errors.Is(err, zk.ErrClosed) {
			t.Fatal(err)
		}
		w.want(map[string]float64{
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=refused}": 1,
			"lock_wait_seconds_count{kind=exclusive,lock=/locks/report,outcome=error}":   1,
		})
		w.want(idle)
	})
}

func TestHandedOffAndRetainedLocksAreToldApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.told(lock.Config{Retain: time.Minute})
		first := locked(t, m.Lock)
		holds := make(chan *lock.Hold)
		go func() {
			h, err := m.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			holds <- h
		}()
		synctest.Wait()
		_ = first.Unlock()
		_ = (<-holds).Unlock()
		time.Sleep(time.Second)
		_ = locked(t, m.Lock).Unlock()
		w.want(map[string]float64{
			"lock_acquired_total{how=server,kind=exclusive,lock=/locks/report}":   1,
			"lock_acquired_total{how=handoff,kind=exclusive,lock=/locks/report}":  1,
			"lock_acquired_total{how=retained,kind=exclusive,lock=/locks/report}": 1,
			"lock_contended_total{lock=/locks/report}":                            1,
		})
		w.want(idle)
	})
}

func TestEachLossIsCountedWithItsCause(t *testing.T) {
	t.Parallel()
	for cause, row := range map[string]struct {
		cfg  lock.Config
		lose func(w *world, h *lock.Hold)
		end  string
	}{
		"expired": {lose: func(w *world, h *lock.Hold) { w.ExpireSession(h.Session().ID()) }},
		"uncertain": {lose: func(w *world, h *lock.Hold) {
			w.Control(zktest.WithoutQuorum(h.Session().ID()))
			<-h.Context().Done()
			w.Control(nil)
		}},
		"deleted": {lose: func(w *world, h *lock.Hold) {
			if err := w.Session(w.t, sessionTimeout).Delete(w.t.Context(), h.Path(), -1); err != nil {
				w.t.Error(err)
			}
		}},
		"closed": {},
		"revoked": {end: "revoked", lose: func(w *world, h *lock.Hold) {
			go func() {
				<-h.Context().Done()
				_ = h.Unlock()
			}()
			if _, err := lock.Revoke(w.t.Context(), w.client(), lockPath, lock.RevokeOptions{}); err != nil {
				w.t.Error(err)
			}
		}},
		"suspended": {cfg: lock.Config{OnSuspend: lock.EndHold}, lose: func(w *world, h *lock.Hold) {
			w.Drop()
			<-h.Context().Done()
			w.want(map[string]float64{"lock_held{kind=exclusive,lock=/locks/report}": 1})
			time.Sleep(time.Second)
			_ = h.Unlock()
		}},
	} {
		t.Run(cause, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.client()
				row.cfg.Hooks = w.metrics.Lock()
				h := locked(t, mutex(t, client, lockPath, row.cfg).Lock)
				if row.lose == nil {
					_ = client.Close()
				} else {
					row.lose(w, h)
				}
				<-h.Context().Done()
				time.Sleep(time.Second)
				_ = h.Unlock()
				end := row.end
				if end == "" {
					end = "lost"
				}
				w.want(map[string]float64{
					fmt.Sprintf("lock_lost_total{cause=%s,lock=/locks/report}", cause):                    1,
					fmt.Sprintf("lock_hold_seconds_count{end=%s,kind=exclusive,lock=/locks/report}", end): 1,
					"lock_hold_seconds_count{end=released,kind=exclusive,lock=/locks/report}":             0,
				})
				w.want(idle)
			})
		})
	}
}

func TestEachKindOfLockHasItsOwnSeries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.client()
		rw := must[*lock.RWMutex](t)(lock.NewRWMutex(client, "/locks/rw", lock.RWConfig{Hooks: w.metrics.Lock()}))
		_ = locked(t, rw.Lock).Unlock()
		readers := []*lock.Hold{locked(t, rw.RLock), locked(t, rw.RLock)}
		sem := must[*lock.Semaphore](t)(lock.NewSemaphore(client, "/locks/gpu", lock.AgreedLimit(3),
			lock.SemaphoreConfig{Hooks: w.metrics.Lock()}))
		permits := must[*lock.Hold](t)(sem.Acquire(t.Context(), 2))
		w.want(map[string]float64{
			"lock_held{kind=writer,lock=/locks/rw}":                      0,
			"lock_held{kind=reader,lock=/locks/rw}":                      2,
			"lock_held{kind=permit,lock=/locks/gpu}":                     1,
			"lock_acquired_total{how=server,kind=writer,lock=/locks/rw}": 1,
		})
		for _, h := range append(readers, permits) {
			_ = h.Unlock()
		}
		w.want(map[string]float64{
			"lock_held{kind=reader,lock=/locks/rw}":  0,
			"lock_held{kind=permit,lock=/locks/gpu}": 0,
		})
	})
}

// The metrics have a bounded size, whatever paths a program uses.
func TestOnlySoManyNamesAreShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		letters := func(i int) string { // which are not folded
			return strings.NewReplacer("0", "g", "1", "h", "2", "i", "3", "j", "4", "k", "5", "l", "6", "m",
				"7", "n", "8", "o", "9", "p").Replace(strconv.Itoa(i))
		}
		hooks, client := w.metrics.Lock(), w.client()
		var last *lock.Hold
		for i := range 250 {
			last = locked(t, mutex(t, client, "/locks/"+letters(i), lock.Config{Hooks: hooks}).Lock)
			if i < 249 {
				_ = last.Unlock()
			}
		}
		synctest.Wait()
		held := 0
		for name := range values(t, w.reg) {
			if strings.HasPrefix(name, "turnstile_lock_held{") {
				held++
			}
		}
		if held != 201 {
			t.Errorf("got %d names, want 200 and one for the others", held)
		}
		w.want(map[string]float64{
			"lock_held{kind=exclusive,lock=other}":                            1,
			"lock_acquired_total{how=server,kind=exclusive,lock=other}":       50,
			"lock_acquired_total{how=server,kind=exclusive,lock=/locks/g}":    1,
			"lock_hold_seconds_count{end=released,kind=exclusive,lock=other}": 49,
		})
		_ = last.Unlock()
		w.want(map[string]float64{"lock_held{kind=exclusive,lock=other}": 0})
	})
}

// Whatever goroutines do at the same time, what begins ends, and the sums agree.
func TestManyLocksAtOnceAddUp(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := newMetrics(t, metrics.Config{Registerer: reg})
	srv := zktest.Run(t)
	var wg, scrapes sync.WaitGroup
	done := make(chan struct{})
	scrapes.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = values(t, reg)
			}
		}
	})
	for range 3 {
		cfg := srv.Config(10 * time.Second)
		cfg.Hooks = m.ZK()
		client := must[*zk.Client](t)(zk.Open(t.Context(), cfg))
		t.Cleanup(func() { _ = client.Close() })
		for range 2 {
			shared := mutex(t, client, fmt.Sprintf("/locks/%c", 'u'+rand.N(2)), lock.Config{Hooks: m.Lock()})
			for range 8 {
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
						h, err := shared.Lock(ctx)
						if err == nil {
							_ = h.Unlock()
						}
						cancel()
					}
				})
			}
		}
	}
	wg.Wait()
	close(done)
	scrapes.Wait()
	var acquired, ended, how, calls float64
	for name, v := range values(t, reg) {
		switch {
		case strings.HasPrefix(name, "turnstile_lock_wait_seconds_count"):
			calls += v
			if strings.Contains(name, "outcome=acquired") {
				acquired += v
			}
		case strings.HasPrefix(name, "turnstile_lock_hold_seconds_count"):
			ended += v
		case strings.HasPrefix(name, "turnstile_lock_acquired_total"):
			how += v
		case strings.HasPrefix(name, "turnstile_lock_held"), strings.HasPrefix(name, "turnstile_lock_waiting"),
			strings.HasPrefix(name, "turnstile_lock_longest"):
			if v != 0 {
				t.Errorf("%s is %v, want 0", name, v)
			}
		}
	}
	if acquired != ended || acquired != how || calls != 3*2*8*20 {
		t.Errorf("%v calls, acquired %v and %v, ended %v", calls, acquired, how, ended)
	}
}
