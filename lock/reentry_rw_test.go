package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

func lockedIn(t *testing.T, outer *lock.Hold, take func(context.Context) (*lock.Hold, error)) *lock.Hold {
	t.Helper()
	h, err := take(lock.Reenter(outer.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if h.Token() != outer.Token() || h.Path() != outer.Path() {
		t.Errorf("got token %d at %s, want a hold nested in %d at %s", h.Token(), h.Path(), outer.Token(), outer.Path())
	}
	return h
}

func TestReadersAndWritersNestInsideTheirHolds(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lock.RWConfig{
		"shared nodes": {}, "strict": {Handoff: lock.StrictFIFO}, "hooks": {Hooks: new(diary).hooks()},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m, other := w.rw(cfg), w.rw(lock.RWConfig{})
				writer := locked(t, m.Lock)
				inner := []*lock.Hold{
					lockedIn(t, writer, m.Lock), lockedIn(t, writer, m.RLock),
					lockedIn(t, writer, m.TryLock), lockedIn(t, writer, m.TryRLock),
				}
				waiting := waits(t.Context(), other.RLock)
				unlock(t, writer)
				for _, h := range inner {
					none(t, "inside a nested writer", waiting)
					unlock(t, h)
				}
				unlock(t, got(t, waiting))

				reader := locked(t, m.RLock)
				inner = []*lock.Hold{lockedIn(t, reader, m.RLock), lockedIn(t, reader, m.TryRLock)}
				waiting = waits(t.Context(), other.Lock)
				none(t, "behind a reader", waiting)
				// A writer waits, and does not keep the reader from what it has.
				inner = append(inner, lockedIn(t, reader, m.RLock))
				unlock(t, reader)
				for _, h := range inner {
					none(t, "behind a nested reader", waiting)
					unlock(t, h)
				}
				unlock(t, got(t, waiting))
				w.empty(path)
			})
		})
	}
}

// Known of others: a writer inside a hold for reading waits for itself until its time is up.
func TestWriterInsideAHoldForReadingIsRefusedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		reader := locked(t, m.RLock)
		for _, take := range []func(context.Context) (*lock.Hold, error){m.Lock, m.TryLock} {
			if _, err := take(lock.Reenter(reader.Context())); !errors.Is(err, lock.ErrUpgradeConflict) {
				t.Errorf("got %v, want lock.ErrUpgradeConflict", err)
			}
		}
		if err := m.Upgrade(t.Context(), reader); err != nil {
			t.Fatalf("the refused ones left something: %v", err)
		}
		inner := lockedIn(t, reader, m.Lock) // it is a writer's now
		if err := m.Downgrade(t.Context(), reader); !errors.Is(err, lock.ErrNested) {
			t.Errorf("a writer is inside: got %v, want lock.ErrNested", err)
		}
		unlock(t, inner)
		if err := m.Downgrade(t.Context(), reader); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Lock(lock.Reenter(reader.Context())); !errors.Is(err, lock.ErrUpgradeConflict) {
			t.Errorf("after the downgrade: got %v, want lock.ErrUpgradeConflict", err)
		}
		unlock(t, reader)
		unlock(t, locked(t, m.Lock))
		w.empty(path)
	})
}

func TestReaderThatIsUpgradedTakesItsNestedHoldsAlong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		outer := locked(t, m.RLock)
		inner := lockedIn(t, outer, m.RLock)
		if err := m.Upgrade(t.Context(), inner); err != nil {
			t.Fatal(err)
		}
		waiting := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		unlock(t, inner)
		none(t, "behind what was upgraded", waiting)
		unlock(t, outer)
		unlock(t, got(t, waiting))
		w.empty(path)
	})
}

func TestSetInsideItsOwnHoldIsNested(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.set(pathA, pathB)
		outer := locked(t, s.Lock)
		inner := []*lock.Hold{lockedIn(t, outer, s.Lock), lockedIn(t, outer, s.TryLock)}
		if n := len(inner[0].Guards()); n != 2 {
			t.Errorf("a nested hold has %d guards, want 2", n)
		}
		waiting := waits(t.Context(), w.set(pathB).Lock)
		unlock(t, outer)
		for _, h := range inner {
			none(t, "inside a nested hold", waiting)
			unlock(t, h)
		}
		unlock(t, got(t, waiting))
		w.empty(pathA, pathB)
	})
}

func TestNestedHoldsOfAllKindsEndWithTheSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rw, s := w.rw(lock.RWConfig{}), w.set(pathA, pathB)
		r, all := locked(t, rw.RLock), locked(t, s.Lock)
		inner := []*lock.Hold{lockedIn(t, r, rw.RLock), lockedIn(t, all, s.Lock)}
		for _, h := range []*lock.Hold{r, all} {
			w.ExpireSession(h.Session().ID())
		}
		for _, h := range inner {
			<-h.Context().Done()
			if err := h.Unlock(); err == nil {
				t.Error("Unlock of a nested hold that was lost: got no error")
			}
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		w.empty(path, pathA, pathB)
	})
}
