package lock_test

// The hand-off while the server says nothing.

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// hot has n goroutines take m again and again, for that long each time, until stop is called. It counts the turns.
func hot(t *testing.T, m *lock.Mutex, n int, each, pause time.Duration) (turns *atomic.Int32, stop func()) {
	var stopped atomic.Bool
	var all sync.WaitGroup
	turns = new(atomic.Int32)
	for range n {
		all.Go(func() {
			for !stopped.Load() {
				hold, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				turns.Add(1)
				time.Sleep(each)
				_ = hold.Unlock()
				time.Sleep(pause)
			}
		})
	}
	return turns, func() {
		stopped.Store(true)
		all.Wait()
	}
}

// A process that was alone in the line, and hears nothing any more, does not know that it still is.
//
// Promise: 5
func TestHandOffIsBoundedWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	const limit, each = time.Second, 10 * time.Millisecond
	faults := map[string]func(*world, ...int64){
		"half-open": func(w *world, ids ...int64) { w.HalfOpen(ids...) },
		"frozen":    func(w *world, ids ...int64) { w.Freeze(ids...) },
		"mute":      func(w *world, ids ...int64) { w.Mute(ids...) },
	}
	for name, c := range map[string]struct {
		n      int
		retain time.Duration
		pause  time.Duration
		most   int32
	}{
		"hand-off":                  {4, 0, 0, int32(limit/each) + 1},
		"retained":                  {1, time.Hour, 0, int32(limit/each) + 1},
		"retained, and seldom used": {1, time.Hour, 2 * limit, 2},
	} {
		for what, fault := range faults {
			t.Run(name+" "+what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					client := w.Client(t, 20*time.Second)
					m, err := lock.NewMutex(client, path, lock.Config{
						Retain: c.retain, Handoff: lock.Handoff{Count: 1 << 20, Time: limit},
					})
					if err != nil {
						t.Fatal(err)
					}
					turns, stop := hot(t, m, c.n, each, c.pause)
					time.Sleep(10*limit + limit/100) // without other contenders there is no bound
					first := w.line()
					fault(w, session(t, client).ID())
					before := turns.Load()
					other := lockInBackground(t.Context(), w.mutex(lock.Config{}))
					time.Sleep(8 * limit)
					if n := turns.Load() - before; n > c.most {
						t.Errorf("%d turns beside a waiting client, want %d at most", n, c.most)
					}
					w.Heal()
					hold := got(t, other)
					if len(first) == 1 && hold.Token() <= first[0].Token {
						t.Errorf("token %d after %d", hold.Token(), first[0].Token)
					}
					unlock(t, hold)
					stop()
				})
			})
		}
	}
}

// A server that is far away answers, and that is enough: the process does not stop for it.
func TestHandOffGoesOnWhileADistantServerAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const each = 5 * time.Millisecond
		w.Delay(75 * time.Millisecond) // each way: three times the bound
		turns, stop := hot(t, w.mutex(lock.Config{}), 4, each, 0)
		time.Sleep(5 * time.Second)
		before := turns.Load()
		time.Sleep(time.Second)
		if got := turns.Load() - before; got < 190 {
			t.Errorf("got %d turns of %v in a second, want about 200", got, each)
		}
		stop()
		w.Heal()
	})
}

// The lock is served again when the server answers.
//
// Promise: 5
func TestHandOffGoesOnWhenTheServerAnswersAgain(t *testing.T) {
	t.Parallel()
	for name, retain := range map[string]time.Duration{"hand-off": 0, "retained": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, 20*time.Second)
				m, err := lock.NewMutex(client, path, lock.Config{Retain: retain})
				if err != nil {
					t.Fatal(err)
				}
				turns, stop := hot(t, m, 3, time.Millisecond, 0)
				time.Sleep(time.Second)
				line := w.line()
				w.Freeze(session(t, client).ID())
				time.Sleep(2 * time.Second)
				synctest.Wait()
				before := turns.Load()
				time.Sleep(time.Second)
				if got := turns.Load(); got != before {
					t.Errorf("%d turns while the server is silent", got-before)
				}
				w.Heal()
				time.Sleep(time.Second)
				if got := turns.Load(); got < before+500 {
					t.Errorf("%d turns in a second, now that the server answers", got-before)
				}
				if now := w.line(); len(now) != 1 || now[0].Path != line[0].Path {
					t.Errorf("got %+v, want the same node: nobody else came", now)
				}
				stop()
			})
		})
	}
}

// A lock that is retained and used now and then asks the server once for each use at most, and never when it is idle.
func TestRetainedLockThatIsNotUsedAsksNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour})
		unlock(t, acquire(t, m))
		time.Sleep(time.Second)
		lists := func() int { return w.Traffic().Requests[zktest.OpGetChildren] }
		before := lists()
		for range 10 {
			unlock(t, acquire(t, m))
			time.Sleep(time.Minute)
		}
		if n := lists() - before; n > 10 {
			t.Errorf("ten uses in ten minutes listed the line %d times", n)
		}
	})
}
