package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// everyKind is all ways to take a lock, each with a client of its own. Of two that are asked for, one after the other,
// the second waits for the first.
func (w *world) everyKind() map[string]func() func(context.Context) (*lock.Hold, error) {
	type take = func(context.Context) (*lock.Hold, error)
	kinds := w.delayedKinds()
	kinds["plain mutex"] = func() take { return w.mutex(lock.Config{}).Lock }
	kinds["strict mutex"] = func() take { return w.mutex(strict).Lock }
	kinds["bounded tries"] = func() take { return w.mutex(lock.Config{Retry: lock.NTimes(3, time.Second)}).Lock }
	kinds["plain set"] = func() take { return w.set(pathA, path).Lock }
	kinds["agreed limit"] = func() take { return permits{w.semaphore(lock.AgreedLimit(1)), 1}.Lock }
	kinds["stored limit"] = func() take { return permits{w.semaphore(lock.StoredLimit(2)), 2}.Lock }
	kinds["simple"] = func() take { return w.simple().Lock }
	for name, first := range map[string]bool{"reader": true, "reader behind a writer": false} {
		reads := !first
		kinds[name] = func() take {
			m := w.rw(lock.RWConfig{Delay: delay})
			if reads = !reads; reads {
				return m.RLock
			}
			return m.Lock
		}
	}
	return kinds
}

// Each request of an acquisition, a wait and an unlock is refused in turn, for a reason that passes. No caller is told,
// and no contender falls behind. SessionMoved also ends the connection. The others differ little, and take turns.
//
// Promise: 4
func TestRefusalThatPassesEndsNoAcquisitionAndNoWait(t *testing.T) {
	t.Parallel()
	refusals := map[string][]zk.Code{
		"moved": {zk.SessionMoved}, "refused": {zk.ThrottledOp, zk.OperationTimeout, zk.NotReadOnly},
	}
	kinds := slices.Sorted(maps.Keys(new(world).everyKind()))
	cases := make(map[string]bool)
	for name := range refusals {
		for _, kind := range kinds {
			cases[name+" "+kind] = true
		}
	}
	for name, codes := range refusals {
		for i, kind := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					lockOf := w.everyKind()[kind]
					reached := true
					for step := range soak.Steps(name+" "+kind, cases) {
						if !reached {
							break
						}
						first, second := lockOf(), lockOf()
						hit := w.hit(step, zktest.Answer(codes[(i+step)%len(codes)]))
						hold := locked(t, first)
						waiting := waits(t.Context(), second)
						time.Sleep(5 * time.Second)
						none(t, fmt.Sprintf("step %d: behind the holder", step), waiting)
						unlock(t, hold)
						unlock(t, got(t, waiting))
						time.Sleep(5 * time.Second)
						reached = hit()
						w.empty(pathA, locksPath, leasesPath, lock.DelayPath(path), lock.DelayPath(pathA))
						if line := w.line(); len(line) != 0 {
							t.Fatalf("step %d: left behind: %+v", step, line)
						}
					}
				})
			})
		}
	}
}

// Changes of a hold's kind, likewise.
//
// Promise: 4
func TestRefusalThatPassesEndsNoChangeOfAHold(t *testing.T) {
	t.Parallel()
	for _, code := range []zk.Code{zk.SessionMoved, zk.ThrottledOp} {
		t.Run(code.Error(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step, reached := 1, true; reached; step++ {
					m := w.rw(lock.RWConfig{Layout: lock.Both})
					hold := locked(t, m.Lock)
					hit := w.hit(step, zktest.Answer(code))
					if err := m.Downgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					if err := m.Upgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					unlock(t, hold)
					time.Sleep(time.Second)
					reached = hit()
					w.empty(path)
				}
			})
		})
	}
}

// A server that stays overloaded is not asked without pause, and a caller that gives up returns at once.
//
// Promise: 4
func TestServerThatStaysOverloadedIsAskedInPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		unlock(t, acquire(t, m))
		synctest.Wait()
		asked := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpCreate {
				return zktest.Pass
			}
			asked++
			return zktest.Answer(zk.ThrottledOp)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("a deadline of ten seconds took %v", took)
		}
		w.Control(nil)
		if asked < 10 || asked > 200 {
			t.Errorf("asked %d times in ten seconds", asked)
		}
		unlock(t, acquire(t, m))
		time.Sleep(time.Second)
		w.empty(path)
	})
}
