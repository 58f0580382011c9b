package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Every session of the waiter expires as soon as it stands in line; the policy says how many are tried, and how soon.
func TestRetryPolicySaysHowOftenAnAcquisitionIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry    lock.Retry
		sessions int           // that are used up
		atLeast  time.Duration // it takes
		atMost   time.Duration
	}{
		"never":       {lock.Forever(time.Hour).Times(0), 1, 0, time.Second},
		"once":        {lock.Forever(0).Times(1), 2, 0, 2 * time.Second},
		"three times": {lock.Forever(10 * time.Second).Times(3), 4, 30 * time.Second, 35 * time.Second},
		"for a while": {
			lock.Forever(10 * time.Second).Within(25 * time.Second), 3,
			25 * time.Second, 26 * time.Second,
		},
		"for a while, never": {lock.Forever(0).Within(25 * time.Second).Times(0), 1, 0, time.Second},
		"growing pauses":     {lock.Exponential(time.Second, 4*time.Second).Times(4), 5, 0, 17 * time.Second},
	} {
		for kind, handoff := range map[string]lock.Handoff{"hand-off": {}, "strict": lock.StrictFIFO} {
			t.Run(name+", "+kind, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					hold := acquire(t, w.mutex(lock.Config{}))
					m := w.mutex(lock.Config{Retry: c.retry, Handoff: handoff})
					begin, watcher := time.Now(), w.Client(t, 20*time.Second)
					waiting := lockInBackground(t.Context(), m)
					sessions := 0
					for len(waiting) == 0 && time.Since(begin) < time.Hour {
						synctest.Wait()
						line, err := lock.Inspect(t.Context(), watcher, path)
						if err != nil {
							t.Fatal(err)
						}
						if len(line) > 1 {
							sessions++
							w.ExpireSession(line[1].Session)
						}
						time.Sleep(100 * time.Millisecond)
					}
					if len(waiting) == 0 {
						t.Fatal("it never gave up")
					}
					r := <-waiting
					if !errors.Is(r.err, zk.ErrExpired) {
						t.Errorf("got %v, want why the last try failed", r.err)
					}
					if sessions != c.sessions {
						t.Errorf("%d sessions were tried, want %d", sessions, c.sessions)
					}
					if took := time.Since(begin); took < c.atLeast || took > c.atMost {
						t.Errorf("it took %v, want %v to %v", took, c.atLeast, c.atMost)
					}
					unlock(t, hold)
				})
			})
		}
	}
}

// The policy is about trying to join the line. A contender in line waits for as long as the context lasts.
func TestPolicyThatIsBoundedInTimeDoesNotBoundTheWaitInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := acquire(t, w.mutex(lock.Config{}))
		waiting := lockInBackground(t.Context(),
			w.mutex(lock.Config{Retry: lock.Forever(time.Second).Within(10 * time.Second)}))
		synctest.Wait()
		for _, id := range w.Sessions() {
			if id != other.Session().ID() {
				w.ExpireSession(id)
			}
		}
		time.Sleep(time.Minute)
		if len(waiting) > 0 {
			t.Fatalf("it does not wait: %v", (<-waiting).err)
		}
		unlock(t, other)
		unlock(t, got(t, waiting))
	})
}

func TestRetryPoliciesThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		for name, r := range map[string]lock.Retry{
			"a negative pause":     lock.Forever(-1),
			"fewer than no tries":  lock.Forever(0).Times(-1),
			"no time":              lock.Forever(time.Second).Within(0),
			"no first pause":       lock.Exponential(0, time.Second),
			"a shrinking pause":    lock.Exponential(time.Second, time.Millisecond),
			"mended in hindsight":  lock.Forever(0).Times(-1).Times(3),
			"negative with others": lock.Exponential(time.Second, time.Minute).Within(-1),
		} {
			if _, err := lock.NewMutex(client, path, lock.Config{Retry: r}); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
		for _, r := range []lock.Retry{
			{}, lock.Forever(0), lock.Forever(time.Second), lock.Exponential(1, 1<<62).Times(100),
		} {
			if _, err := lock.NewMutex(client, path, lock.Config{Retry: r}); err != nil {
				t.Error(err)
			}
		}
	})
}
