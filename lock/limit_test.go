package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestStoredLimitThatDiffersIsRefusedWithBothNumbersAndThePath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, permits{w.semaphore(lock.StoredLimit(17)), 1}.Lock)
		data, _, err := w.Session(t, 20*time.Second).Get(t.Context(), path)
		if err != nil || string(data) != "17" {
			t.Errorf("got %q, %v at %s, want 17", data, err, path)
		}
		other := permits{w.semaphore(lock.StoredLimit(23)), 1}
		for name, take := range map[string]func() (*lock.Hold, error){
			"Acquire":    func() (*lock.Hold, error) { return other.Lock(t.Context()) },
			"TryAcquire": func() (*lock.Hold, error) { return other.TryLock(t.Context()) },
		} {
			_, err := take()
			if !errors.Is(err, lock.ErrLimit) {
				t.Fatalf("%s: got %v, want lock.ErrLimit", name, err)
			}
			for _, part := range []string{"17", "23", path} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %s", name, err, part)
				}
			}
		}
		w.empty(locksPath)
		unlock(t, hold)
	})
}

func TestNodeWithoutANumberIsNotTakenForAStoredLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		for _, dir := range []string{"/locks", path} {
			if _, err := sess.Create(t.Context(), dir, []byte("10.0.0.1"), zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.semaphore(lock.StoredLimit(3)).Acquire(t.Context(), 1)
		if !errors.Is(err, lock.ErrLimit) || !strings.Contains(err.Error(), "10.0.0.1") {
			t.Errorf("got %v, want lock.ErrLimit and what is there", err)
		}
		w.empty(path)
		unlock(t, locked(t, w.another(3, 1).Lock)) // who agrees on a limit does not look
	})
}

// The first client to store it finds a container without data that another client has made; or loses it again.
func TestLimitIsStoredWhereverItIsMissing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		agreed := locked(t, w.another(2, 1).Lock)
		stored := permits{w.semaphore(lock.StoredLimit(2)), 1}
		unlock(t, locked(t, stored.Lock))
		sess := w.Session(t, 20*time.Second)
		set := func(text string) {
			t.Helper()
			if _, err := sess.Set(t.Context(), path, []byte(text), -1); err != nil {
				t.Fatal(err)
			}
		}
		waiting := waits(t.Context(), permits{stored.Semaphore, 2}.Lock)
		set("")
		none(t, "one is taken", waiting)
		unlock(t, agreed)
		hold := got(t, waiting)
		if data, _, err := sess.Get(t.Context(), path); err != nil || string(data) != "2" {
			t.Errorf("got %q, %v at %s, want 2", data, err, path)
		}
		// The limit changes while a contender waits: the contender that expects the old limit gets an error.
		waiting = waits(t.Context(), stored.Lock)
		set("3")
		if r := <-waiting; !errors.Is(r.err, lock.ErrLimit) {
			t.Errorf("got %v, want lock.ErrLimit", r.err)
		}
		if err := hold.Context().Err(); err != nil {
			t.Errorf("the hold has ended: %v", err)
		}
		unlock(t, hold)
		w.empty(locksPath, leasesPath)
	})
}

func (w *world) setLimit(n int) {
	w.t.Helper()
	w.setLimitAt(limitPath, n)
	synctest.Wait()
}

// setLimitAt writes the number that a WatchedLimit reads.
func (w *world) setLimitAt(path string, n int) {
	w.t.Helper()
	limit, err := counter.New(w.Client(w.t, 20*time.Second), path, counter.Config{Layout: counter.Int})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := limit.Set(w.t.Context(), int64(n)); err != nil {
		w.t.Fatal(err)
	}
}

// CURATOR-75.
func TestRaisedLimitLetsWaitersInAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setLimit(0)
		var waiting []<-chan result
		for range 4 {
			waiting = append(waiting, waits(t.Context(), permits{w.semaphore(lock.WatchedLimit(limitPath)), 2}.Lock))
		}
		none(t, "no contender has a permit", waiting...)
		w.setLimit(3)
		first := got(t, waiting[0])
		none(t, "one permit is left", waiting[1:]...)
		w.setLimit(6)
		second, third := got(t, waiting[1]), got(t, waiting[2])
		none(t, "none is left", waiting[3])
		for _, h := range []*lock.Hold{first, second, third} {
			unlock(t, h)
		}
		unlock(t, got(t, waiting[3]))
		w.NoWatches(t)
	})
}

func TestLoweredLimitRevokesNothingAndLetsNobodyIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setLimit(3)
		s := w.semaphore(lock.WatchedLimit(limitPath))
		var holds []*lock.Hold
		for range 3 {
			holds = append(holds, locked(t, permits{s, 1}.Lock))
		}
		w.setLimit(1)
		waiting := waits(t.Context(), permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}.Lock)
		time.Sleep(time.Minute)
		for i, h := range holds {
			if err := h.Context().Err(); err != nil {
				t.Errorf("hold %d has ended: %v", i, err)
			}
			none(t, fmt.Sprintf("%d are out of one", len(holds)-i), waiting)
			unlock(t, h)
		}
		unlock(t, got(t, waiting))
	})
}

// The limit is lowered when the transaction that takes the permit is on its way. It is refused, and the contender stays
// in the line.
//
// Promise: 1
func TestPermitIsNotGivenAfterALimitThatWasLowered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setLimit(1)
		unlock(t, locked(t, permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}.Lock))
		synctest.Wait()
		proceed := w.stopAtTheTaking()
		first := waits(t.Context(), permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}.Lock)
		second := waits(t.Context(), permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}.Lock)
		before := w.nodes(locksPath)
		w.setLimit(0)
		proceed()
		none(t, "no contender has a permit", first, second)
		if now := w.nodes(locksPath); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Errorf("got %v in the line, want %v as before", now, before)
		}
		w.empty(leasesPath)
		w.setLimit(1)
		hold := got(t, first)
		none(t, "behind the first", second)
		unlock(t, hold)
		unlock(t, got(t, second))
	})
}

// The limit's node is deleted when the transaction that takes the permit is on its way: the contender gets an error.
func TestLimitThatIsDeletedWhileAPermitIsTakenIsAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setLimit(1)
		s := permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}
		unlock(t, locked(t, s.Lock))
		synctest.Wait()
		proceed := w.stopAtTheTaking()
		waiting := waits(t.Context(), s.Lock)
		if _, err := w.Session(t, 20*time.Second).DeleteAll(t.Context(), limitPath); err != nil {
			t.Fatal(err)
		}
		proceed()
		if r := <-waiting; r.err == nil || !strings.Contains(r.err.Error(), limitPath) {
			t.Errorf("got %v, want an error that names %s", r.err, limitPath)
		}
		w.empty(locksPath, leasesPath)
	})
}

func TestNodesThatCannotBeALimitAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}
		refused := func(what string) {
			t.Helper()
			for _, take := range []func() (*lock.Hold, error){
				func() (*lock.Hold, error) { return s.Lock(t.Context()) },
				func() (*lock.Hold, error) { return s.TryLock(t.Context()) },
			} {
				if _, err := take(); err == nil || errors.Is(err, lock.ErrHeld) ||
					!strings.Contains(err.Error(), limitPath) {
					t.Errorf("%s: got %v, want an error that names %s", what, err, limitPath)
				}
			}
			w.empty(locksPath, leasesPath)
		}
		refused("no node")
		w.setLimit(1)
		sess := w.Session(t, 20*time.Second)
		for _, data := range []string{"", "10", "\xff\xff\xff\xff", "\x00\x00\x00\x00\x01"} {
			if _, err := sess.Set(t.Context(), limitPath, []byte(data), -1); err != nil {
				t.Fatal(err)
			}
			refused(fmt.Sprintf("%q", data))
		}
		// Curator's SharedCount writes 258 like this.
		if _, err := sess.Set(t.Context(), limitPath, []byte("\x00\x00\x01\x02"), -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, locked(t, permits{s.Semaphore, 258}.Lock))
	})
}

// The first takes the last permit. Before it has counted, the limit is raised, and the next takes one: both may have
// theirs.
//
// Promise: 1
func TestPermitIsKeptWhenTheLimitIsRaisedBeforeItsTakerHasCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.setLimit(1)
		first := permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}
		unlock(t, locked(t, first.Lock))
		synctest.Wait()
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		var taker int64
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case taker == 0 && r.Op == zktest.OpMulti:
				taker = r.Session
			case r.Session == taker && r.Op == zktest.OpGetChildren && r.Path == leasesPath:
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		waiting := waits(t.Context(), first.Lock)
		none(t, "its list is on its way", waiting)
		w.setLimit(2)
		second := locked(t, permits{w.semaphore(lock.WatchedLimit(limitPath)), 1}.Lock)
		proceed()
		hold := got(t, waiting)
		if hold.Token() >= second.Token() {
			t.Errorf("the first has token %d behind %d: it gave its permit back, and took another",
				hold.Token(), second.Token())
		}
		unlock(t, hold)
		unlock(t, second)
		w.empty(locksPath, leasesPath)
	})
}

// The parents vanish when the first asks for its node. Before it has another one, the permit it has seen free is taken.
func TestPermitsAreCountedAnewForAContenderThatIsMadeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.another(1, 1)
		warm := locked(t, first.Lock)
		id := warm.Session().ID()
		unlock(t, warm)
		letHoldsAge()
		ctx, proceed := context.WithCancel(t.Context())
		defer proceed()
		creations, takings := 0, 0
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session != id:
			case r.Op == zktest.OpMulti:
				takings++
			case r.Op == zktest.OpCreate:
				switch creations++; creations {
				case 1:
					return zktest.Answer(zk.NoNode)
				case 2: // of the parents
					return zktest.Until(ctx)
				}
			}
			return zktest.Pass
		})
		waiting := waits(t.Context(), first.Lock)
		hold := locked(t, w.another(1, 1).Lock)
		letHoldsAge()
		proceed()
		none(t, "the permit is taken", waiting)
		if takings != 0 {
			t.Errorf("it has tried %d times to take a permit that was not free", takings)
		}
		unlock(t, hold)
		unlock(t, got(t, waiting))
		w.empty(locksPath, leasesPath)
	})
}
