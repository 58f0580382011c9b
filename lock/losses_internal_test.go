package lock

// What is kept for the hooks of holds that have ended.

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// An ownership may serve holds for hours.
func TestReportsOfHoldsThatHaveEndedAreNotKept(t *testing.T) {
	t.Parallel()
	client := zktest.Run(t).Client(t, 10*time.Second)
	lost := Hooks{Lost: func(e Event) { t.Errorf("lost: %+v", e) }}
	m, err := NewRWMutex(client, "/locks/report", RWConfig{Hooks: lost})
	if err != nil {
		t.Fatal(err)
	}
	var holds []*Hold
	for range 5 {
		h, err := m.RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	kept := func() (n int) {
		l := holds[0].grant.report.losses
		l.mu.Lock()
		defer l.mu.Unlock()
		for r := l.first; r != nil; r = r.next {
			if r.next != nil && r.next.previous != r {
				t.Error("the list is broken")
			}
			n++
		}
		return n
	}
	if n := kept(); n != len(holds) {
		t.Errorf("%d reports are kept for %d holds", n, len(holds))
	}
	for i, at := range []int{2, 0, 4, 1, 3} { // from the middle, from both ends, and the last
		if err := holds[at].Unlock(); err != nil {
			t.Error(err)
		}
		if n := kept(); n != len(holds)-1-i {
			t.Errorf("%d reports are kept after %d of %d unlocks", n, i+1, len(holds))
		}
	}
}
