package lincheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// A checker that cannot fail proves nothing. The tables below have histories that it must refuse beside those that it
// must accept.

// verdict is a history, and whether the checker must accept it.
type verdict struct {
	why   string
	holds []lincheck.Hold
	ok    bool
}

func expect(t *testing.T, check func([]lincheck.Hold, string) error, cases []verdict) {
	t.Helper()
	for _, c := range cases {
		dir := filepath.Join(t.TempDir(), "kept")
		err := check(c.holds, dir)
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.why, err, c.ok)
		}
		if err == nil {
			continue
		}
		page := filepath.Join(dir, "history.html")
		if !strings.Contains(err.Error(), page) {
			t.Errorf("%s: got %v, want the page's name in the error", c.why, err)
		}
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<html") {
			t.Errorf("%s: read the page: %v", c.why, err)
		}
	}
}

// base is larger than the tokens of after, and smaller than those of the cases.
const base = 1_000_000

// after returns a history of n holds, one after the other, followed by more.
func after(n int, more ...lincheck.Hold) []lincheck.Hold {
	var holds []lincheck.Hold
	for i := range int64(n) {
		at := -1000 * (int64(n) - i)
		holds = append(holds,
			lincheck.Hold{
				Client: 3, Node: "z", Token: base + at, Got: at + 100, Alive: at + 200, Ended: at + 300,
				Permits: 1,
			})
	}
	return append(holds, more...)
}

var exclusive = []verdict{
	{"nobody", nil, true},
	{"one after the other", after(0, hold(1, 10, 100, 110, 120), hold(2, 20, 130, 140, 150)), true},
	{"two at once", after(0, hold(1, 10, 100, 140, 150), hold(2, 20, 130, 135, 160)), false},
	{"two at once, within", after(0, hold(1, 10, 100, 180, 190), hold(2, 20, 130, 135, 140)), false},
	{"the end was not seen at once", after(0, hold(1, 10, 100, 110, 150), hold(2, 20, 130, 140, 160)), true},
	{"a killed holder may have ended", after(0, hold(1, 10, 100, 0, 0), hold(2, 20, 130, 140, 160)), true},
	{"a killed holder was seen alive", after(0, hold(1, 10, 100, 135, 0), hold(2, 20, 130, 132, 134)), false},
	{"a token falls", after(0, hold(1, 20, 100, 110, 120), hold(2, 10, 130, 140, 150)), false},
	{
		"a token falls after others",
		after(0, hold(1, 20, 100, 110, 120), hold(2, 30, 130, 140, 150), hold(1, 15, 160, 170, 180)), false,
	},
	{"a token repeats", after(0, hold(1, 20, 100, 110, 120), hold(2, 20, 130, 140, 150)), false},
}

func hold(client int, token, got, alive, ended int64) lincheck.Hold {
	return lincheck.Hold{
		Client: client, Node: "n", Token: base + token, Got: got, Alive: alive, Ended: ended,
		Permits: 1,
	}
}

// Promise: 1
func TestHistoriesThatNoMutexHasAreRefused(t *testing.T) {
	t.Parallel()
	expect(t, lincheck.CheckMutex, exclusive)
}

// Promise: 1
func TestHistoriesThatNoElectionHasAreRefused(t *testing.T) {
	t.Parallel()
	expect(t, lincheck.CheckElection, exclusive)
}

// Promise: 1
func TestOneOffenceAmongManyHoldsIsFoundAndShown(t *testing.T) {
	t.Parallel()
	var cases []verdict
	for _, c := range exclusive {
		cases = append(cases, verdict{c.why + ", behind many", after(500, c.holds...), c.ok})
	}
	expect(t, lincheck.CheckMutex, cases)
	dir := t.TempDir()
	if err := lincheck.CheckMutex(after(500, hold(1, 10, 100, 140, 150), hold(2, 20, 130, 135, 160)), dir); err == nil {
		t.Fatal("got two holders at once accepted behind many others")
	}
	page, err := os.ReadFile(filepath.Join(dir, "history.html"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"acquire 1000010 (n)": true, "acquire 1000020 (n)": true,
		"acquire 999000 (z)": true, "acquire 600000 (z)": false,
	} {
		if got := strings.Contains(string(page), text); got != want {
			t.Errorf("page contains %q: got %t, want %t", text, got, want)
		}
	}
}

// Promise: 3
func TestObserverThatSeesAnEarlierLeaderAgainIsRefused(t *testing.T) {
	t.Parallel()
	see := func(observer int, token int64) lincheck.Sighting {
		return lincheck.Sighting{Observer: observer, Token: token}
	}
	for _, c := range []struct {
		why  string
		seen []lincheck.Sighting
		ok   bool
	}{
		{"each later than the other", []lincheck.Sighting{see(1, 10), see(1, 20), see(1, 40)}, true},
		{"one is slower", []lincheck.Sighting{see(1, 10), see(1, 20), see(2, 10), see(1, 30), see(2, 30)}, true},
		{"an old one again", []lincheck.Sighting{see(1, 10), see(1, 20), see(1, 10)}, false},
	} {
		if err := lincheck.CheckSightings(c.seen); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.why, err, c.ok)
		}
	}
}

// Promise: 3
func TestLateWriteWithAnOldTokenIsRefused(t *testing.T) {
	t.Parallel()
	write := func(token int64, version int32) lincheck.Write { return lincheck.Write{Token: token, Version: version} }
	for _, c := range []struct {
		why    string
		writes []lincheck.Write
		ok     bool
	}{
		{
			"in order, reported in another",
			[]lincheck.Write{write(20, 3), write(10, 1), write(10, 2), write(30, 7)},
			true,
		},
		{"an old token after a new one", []lincheck.Write{write(10, 1), write(20, 2), write(10, 3)}, false},
		{"one version from two writes", []lincheck.Write{write(10, 1), write(20, 1)}, false},
	} {
		if err := lincheck.CheckWrites(c.writes); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.why, err, c.ok)
		}
	}
}
