package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// An access is one way to take the lock at a path.
type access struct {
	name      string
	lock, try func(context.Context) (*lock.Hold, error)
	reads     bool
}

// accesses returns every way to take the lock at path, each on a client of its own.
func (w *world) accesses(layout lock.Layout) []access {
	w.t.Helper()
	rw := lock.RWConfig{Layout: layout}
	m, writer, reader := w.mutex(lock.Config{Layout: layout}), w.rw(rw), w.rw(rw)
	s, err := lock.NewSet(w.Client(w.t, 20*time.Second), []string{path, pathB}, lock.SetConfig{Layout: layout})
	if err != nil {
		w.t.Fatal(err)
	}
	return []access{
		{"mutex", m.Lock, m.TryLock, false},
		{"set", s.Lock, s.TryLock, false},
		{"writer", writer.Lock, writer.TryLock, false},
		{"reader", reader.RLock, reader.TryRLock, true},
	}
}

// Promise: 1
func TestMutexesSetsAndReadWriteLocksOfOnePathExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, layouts := range [][2]lock.Layout{
		{lock.Curator, lock.Curator}, {lock.Kazoo, lock.Curator}, {lock.Both, lock.Both},
	} {
		t.Run(layouts[0].String()+" and "+layouts[1].String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				holders, comers := w.accesses(layouts[0]), w.accesses(layouts[1])
				for _, holder := range holders {
					for _, comer := range comers {
						what := comer.name + " behind a " + holder.name
						hold := locked(t, holder.lock)
						if holder.reads && comer.reads {
							unlock(t, locked(t, comer.lock))
							unlock(t, hold)
							synctest.Wait()
							continue
						}
						if _, err := comer.try(t.Context()); !errors.Is(err, lock.ErrHeld) {
							t.Errorf("a try of a %s: got %v, want lock.ErrHeld", what, err)
						}
						waiting := waits(t.Context(), comer.lock)
						none(t, what, waiting)
						token := hold.Token()
						unlock(t, hold)
						next := got(t, waiting)
						if next.Token() <= token {
							t.Errorf("%s: token %d after %d", what, next.Token(), token)
						}
						unlock(t, next)
						synctest.Wait() // until its nodes are gone, or the next try would find them
					}
				}
			})
		})
	}
}

// The writer's node goes, and a reader's stands at its number: a mutex must list the line then.
//
// Promise: 1
func TestDowngradeDoesNotLetAMutexIn(t *testing.T) {
	t.Parallel()
	for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.rw(lock.RWConfig{Layout: layout})
				hold := locked(t, m.Lock)
				next := waits(t.Context(), w.mutex(lock.Config{Layout: layout}).Lock)
				if err := m.Downgrade(t.Context(), hold); err != nil {
					t.Fatal(err)
				}
				none(t, "behind a writer that has become a reader", next)
				unlock(t, hold)
				unlock(t, got(t, next))
			})
		})
	}
}

// A mutex that waits behind a reader is one who waits to write: readers that come later stand behind it.
func TestReadersDoNotOvertakeAMutex(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.rw(lock.RWConfig{}).RLock)
		m := waits(t.Context(), w.mutex(lock.Config{}).Lock)
		reader := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		none(t, "behind a reader", m, reader)
		unlock(t, hold)
		exclusive := got(t, m)
		none(t, "behind a mutex", reader)
		unlock(t, exclusive)
		unlock(t, got(t, reader))
	})
}
