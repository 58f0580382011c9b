package lincheck_test

import (
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// A checker that cannot fail proves nothing: these are histories that it must refuse.
func TestHistoriesThatNoMutexHasAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		holds []lincheck.Hold
		ok    bool
	}{
		{"one after the other", []lincheck.Hold{{1, "a", 10, 100, 110, 120}, {2, "b", 20, 130, 140, 150}}, true},
		{"two at once", []lincheck.Hold{{1, "a", 10, 100, 140, 150}, {2, "b", 20, 130, 135, 160}}, false},
		{"the end was not seen at once", []lincheck.Hold{{1, "a", 10, 100, 110, 150}, {2, "b", 20, 130, 140, 160}}, true},
		{"a killed holder may have ended", []lincheck.Hold{{1, "a", 10, 100, 0, 0}, {2, "b", 20, 130, 140, 160}}, true},
		{"a killed holder was seen alive", []lincheck.Hold{{1, "a", 10, 100, 135, 0}, {2, "b", 20, 130, 132, 134}}, false},
		{"a token falls", []lincheck.Hold{{1, "a", 20, 100, 110, 120}, {2, "b", 10, 130, 140, 150}}, false},
		{"a token repeats", []lincheck.Hold{{1, "a", 20, 100, 110, 120}, {2, "b", 20, 130, 140, 150}}, false},
	} {
		err := lincheck.CheckMutex(c.holds, t.TempDir())
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.why, err, c.ok)
		}
		if err != nil && !strings.Contains(err.Error(), "history.html") {
			t.Errorf("%s: the error does not say where the history is: %v", c.why, err)
		}
	}
}
