// Package measure is what turnstile bench, test/herd and the module bench have in common: cycles of locking and
// unlocking, worker processes, a server's counters, and percentiles.
package measure

// Cycles of locking and unlocking, and percentiles.

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// Locker is one goroutine's access to a lock.
type Locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
	Finish(ctx context.Context) error // waits for what the last Unlock has left under way
}

// Mutex is a Locker of a Turnstile mutex. As in most programs, an unlock may be under way when the next Lock begins.
type Mutex struct {
	mutex *lock.Mutex
	hold  *lock.Hold
}

// NewMutex returns a Locker of m.
func NewMutex(m *lock.Mutex) *Mutex { return &Mutex{mutex: m} }

// Lock locks the mutex.
func (m *Mutex) Lock(ctx context.Context) (err error) {
	m.hold, err = m.mutex.Lock(ctx)
	return err
}

// Unlock unlocks the mutex.
func (m *Mutex) Unlock(context.Context) error { return m.hold.Unlock() }

// Finish waits until the servers know of the last Unlock.
func (m *Mutex) Finish(ctx context.Context) error {
	if m.hold == nil {
		return nil
	}
	return m.hold.UnlockWait(ctx)
}

// Cycle is when a Locker asked for the lock, had it, and began to unlock it, in nanoseconds of the system's clock.
type Cycle struct{ Began, Locked, Unlocked int64 }

// Run locks and unlocks in a goroutine for each Locker until d is over, and lets each finish its last cycle. The answer
// has the count of cycles and the time that they took, and the cycles if trace is set. If one fails, Run ends the
// context of the others, and also returns the first error.
func Run(ctx context.Context, lockers []Locker, d time.Duration, trace bool) (Answer, error) {
	var (
		group  sync.WaitGroup
		over   atomic.Bool
		counts = make([]int64, len(lockers))
		cycles = make([][]Cycle, len(lockers))
	)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	defer time.AfterFunc(d, func() { over.Store(true) }).Stop()
	for i, l := range lockers {
		group.Go(func() {
			var n int64
			var err error
			for err == nil && !over.Load() {
				if err = cycle(ctx, l, trace, &cycles[i]); err == nil {
					n++
				}
			}
			counts[i] = n
			if err == nil {
				err = l.Finish(ctx)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	a := Answer{Figures: []int64{0, time.Since(start).Nanoseconds()}, Cycles: slices.Concat(cycles...)}
	for _, n := range counts {
		a.Figures[0] += n
	}
	return a, context.Cause(ctx)
}

// cycle locks and unlocks once. Without trace it does nothing else: a million times a second is promised.
func cycle(ctx context.Context, l Locker, trace bool, cycles *[]Cycle) error {
	if !trace {
		if err := l.Lock(ctx); err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
	c := Cycle{Began: time.Now().UnixNano()}
	if err := l.Lock(ctx); err != nil {
		return err
	}
	c.Locked = time.Now().UnixNano()
	c.Unlocked = time.Now().UnixNano()
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	*cycles = append(*cycles, c)
	return nil
}

// Waits is how long each cycle waited for the lock, in nanoseconds.
func Waits(cycles []Cycle) []float64 {
	all := make([]float64, len(cycles))
	for i, c := range cycles {
		all[i] = float64(c.Locked - c.Began)
	}
	return all
}

// Percentile returns the smallest figure that so many percent do not exceed. There must be at least one figure.
func Percentile(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Median returns the median of figures, 0 if there are none.
func Median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}
