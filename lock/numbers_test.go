package lock_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestNumbersAreLeftUntilTheFirstThatIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const end = math.MaxInt32 - 1<<20
		client := w.Client(t, 20*time.Second)
		sess := session(t, client)
		want := func(of string, want lock.Numbers) {
			t.Helper()
			if got, err := lock.InspectNumbers(t.Context(), client, of); got != want || err != nil {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		want(path, lock.Numbers{Path: path, Left: end})
		m := w.mutex(lock.Config{Layout: lock.Kazoo}) // whose path stays
		unlock(t, acquire(t, m))
		for _, c := range []struct {
			next int32
			left int
			low  bool
		}{
			{1, end - 1, false},
			{1<<30 - 1, end - 1<<30 + 1, false},
			{1 << 30, end - 1<<30, true},
			{end - 1, 1, true},
			{end, 0, true},
			{math.MaxInt32, 0, true},
		} {
			w.PresetSequence(path, c.next)
			want(path, lock.Numbers{Path: path, Left: c.left, Low: c.low})
			h, err := m.TryLock(t.Context())
			if c.left == 0 {
				if !errors.Is(err, lock.ErrWrap) || !strings.Contains(err.Error(), path) {
					t.Errorf("%d: got %v, want ErrWrap at %s", c.next, err, path)
				}
				continue
			}
			if err != nil || !strings.HasSuffix(h.Path(), fmt.Sprintf("%010d", c.next)) {
				t.Fatalf("%d: got %v, %v", c.next, h, err)
			}
			want(path, lock.Numbers{Path: path, Left: c.left - 1, Low: c.low || c.left-1 <= end-1<<30})
			unlock(t, h)
		}
		// Where a server counts on, others may stand behind the end.
		for _, next := range []int32{math.MinInt32, math.MinInt32 + 5, -5} {
			w.PresetSequence(path, next)
			theirs, err := sess.Create(t.Context(), path+"/lock-", nil, zk.EphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			want(path, lock.Numbers{Path: path, Low: true})
			if err := sess.Delete(t.Context(), theirs.Path, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestNumbersOfASemaphoreAreThoseOfItsLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		s, err := lock.NewSemaphore(client, path, lock.AgreedLimit(1), lock.SemaphoreConfig{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		w.PresetSequence(path+"/locks", 1<<30)
		want := lock.Numbers{Path: path + "/locks", Left: math.MaxInt32 - 1<<20 - 1<<30, Low: true}
		if got, err := lock.InspectNumbers(t.Context(), client, path); got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		unlock(t, h)
	})
}
