package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// The model keeps everything; the ring must show the largest of each step, for as long as it keeps it.
func TestRingShowsTheLargest(t *testing.T) {
	t.Parallel()
	r := newRing()
	var all []uint32
	for second := range int64(4000) {
		value := uint32(second*7919%1000) + 1
		if second%97 < 9 {
			value = none
		}
		r.add(second, value)
		all = append(all, value)
		if second%61 != 0 {
			continue
		}
		got := r.last(second, 120, false)
		for i := range got {
			want := uint32(none)
			end := (second+1)/5 - 1 - int64(119-i)
			for k := end * 5; k < end*5+5; k++ {
				if k >= 0 && k <= second && k > second-seconds {
					want = larger(want, all[k])
				}
			}
			if got[i] != want {
				t.Fatalf("second %d, step %d: got %d, want %d", second, i, got[i], want)
			}
		}
	}
	day := r.last(3999, 1440, true)
	minute := int(3999/60) - 1
	if got, want := day[1439], slices.MaxFunc(all[minute*60:minute*60+60], func(a, b uint32) int {
		return int(int64(a%none) - int64(b%none))
	}); got != want {
		t.Errorf("the last minute: got %d, want %d", got, want)
	}
}

func TestHistoryHasGaps(t *testing.T) {
	t.Parallel()
	h := newSeries()
	at := func(second int) time.Time {
		return h.start.Add(time.Duration(second)*time.Second + 100*time.Millisecond)
	}
	_, s := ordinary()
	h.add(s, count(s), at(0))
	h.add(s, count(s), at(0)) // ticks are not exact
	h.add(&survey.Snapshot{Mode: survey.Cut}, facts{}, at(1))
	h.add(s, count(s), at(4))
	want := []uint32{3, none, none, none, 3}
	if got := h.waiting.seconds[:5]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := h.locks["/jobs/report"].seconds[4]; got != 2 {
		t.Errorf("got %d waiters, want 2", got)
	}
	if h.locks["/jobs/alone"] != nil {
		t.Error("there is a history of a lock for which nobody has waited")
	}
}

func TestHistoryForgetsLocksThatAreGone(t *testing.T) {
	t.Parallel()
	h := newSeries()
	_, one := many(maxSeries)
	h.add(one, count(one), h.start)
	w := new(world)
	two := &survey.Snapshot{Mode: survey.Live}
	w.add(two, "/new", survey.Lock, "a", "b")
	h.add(two, count(two), h.start.Add(time.Second))
	if len(h.locks) != 1 || h.locks["/new"] == nil || h.full {
		t.Errorf("%d locks, full %t", len(h.locks), h.full)
	}
}

func TestSparksAreDrawn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values      []uint32
		line, label string
	}{
		{[]uint32{none, none}, "", "X: nothing is known yet"},
		{[]uint32{0, 0, 0, 0}, "M0 62H480", "X: at most 1"},
		{[]uint32{4, 4, none, 2}, "M0 2H240M360 32H480", "X: at most 4"},
		{[]uint32{0, 4, 4, 0}, "M0 62H120V2H360V62H480", "X: at most 4"},
		{[]uint32{4, none}, "M0 2H240", "X: at most 4"},
	} {
		if got := newSpark("X", c.values, plain32); got.Line != c.line || got.Label != c.label {
			t.Errorf("%v: got %+v, want %s %s", c.values, got, c.line, c.label)
		}
	}
}

func TestStripShowsWhoHeld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ago := func(m int) time.Time { return now.Add(stripStep - time.Duration(m)*time.Minute) }
	past := &ensemble.Past{Changes: 2, Last: []ensemble.Change{
		{At: ago(4), From: "ann", To: ""}, {At: ago(2), From: "", To: "bob"},
	}}
	want := []stripPart{{60, 300, "two", "ann"}, {360, 120, "free", "nobody"}, {480, 120, "one", "bob"}}
	if got := newStrip(past, "bob", ago(9), now).Parts; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := newStrip(nil, "ann", ago(30), now).Parts; len(got) != 1 || got[0].X != 0 || got[0].Width != stripWidth {
		t.Errorf("got %v", got)
	}
	past.Changes = 60 // what was before is not known any more
	if got := newStrip(past, "bob", ago(9), now).Parts; len(got) != 2 || got[0].X != 360 {
		t.Errorf("got %v", got)
	}
}

func TestLargeDeadlocksAreDrawnInPart(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	w.deadlocks = []lock.FoundDeadlock{{Steps: make([]lock.DeadlockStep, 30)}, {Steps: make([]lock.DeadlockStep, 1)}}
	body := get(board(t, w, s, Config{}), "/waits").Body.String()
	if n := strings.Count(body, "<circle"); n != maxCircle+2 || !strings.Contains(body, "and 18 more") {
		t.Errorf("%d circles:\n%s", n, body)
	}
	if strings.Contains(body, "NaN") {
		t.Error(body)
	}
}

// A line that is too long is not read, and what is read of all lines is bounded.
func TestLongLinesAreLeftOut(t *testing.T) {
	t.Parallel()
	const maxLine = 5000 // see ensemble.TooLong
	w, s := new(world), &survey.Snapshot{Mode: survey.Live, Listed: 1}
	for i, n := range []int{maxLine + 1, maxLine, 3} {
		w.add(s, "/"+string(rune('a'+i)), survey.Lock, slices.Repeat([]string{"x"}, n)...)
	}
	for i := range 12 {
		w.add(s, "/z/"+string(rune('a'+i)), survey.Lock, slices.Repeat([]string{"y"}, maxLine)...)
	}
	d := board(t, w, s, Config{})
	for path, want := range map[string]string{
		"/waits": "5 more locks", "/lock?path=/a": "Only those in front", "/lock?path=/b": "4799 more wait",
	} {
		body := get(d, path).Body.String()
		if !strings.Contains(body, want) || len(body) > 1_000_000 {
			t.Errorf("%s, %d bytes, does not show %q: %.3000s", path, len(body), want, body)
		}
	}
	if w.asked["line"] > 11 {
		t.Errorf("%d lines were read", w.asked["line"])
	}
}
