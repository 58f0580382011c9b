package line_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/line"
)

var everyMarker = []line.Marker{
	line.CuratorLock, line.KazooLock, line.CuratorRead, line.CuratorWrite, line.KazooRead, line.CuratorLatch,
}

func TestContendersAreToldFromForeignChildrenByTheirMarkers(t *testing.T) {
	t.Parallel()
	const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e-"
	for _, c := range []struct {
		name   string
		marker line.Marker
		seq    int32
	}{
		{guid + "lock-0000000001", line.CuratorLock, 1}, // not -1: the dash is the marker's
		{guid + "lock-2147483647", line.CuratorLock, math.MaxInt32},
		{guid + "lock--2147483648", line.CuratorLock, math.MinInt32},
		{guid + "lock--999999999", line.CuratorLock, -999999999},
		{guid + "lock--000000005", line.CuratorLock, -5},
		{"_c_0f8fad5bd9cb469fa16570867728950e-lock-0000000012", line.CuratorLock, 12}, // go-zookeeper
		{"0f8fad5bd9cb469fa16570867728950e__lock__0000000003", line.KazooLock, 3},
		{guid + "__lock__0000000003", line.KazooLock, 3}, // Curator with a driver of its own
		{"0f8fad5bd9cb469fa16570867728950e__rlock__0000000004", line.KazooRead, 4},
		{guid + "__READ__0000000005", line.CuratorRead, 5},
		{guid + "__WRIT__0000000006", line.CuratorWrite, 6},
		{guid + "latch-0000000007", line.CuratorLatch, 7},
		{"lock-0000000001", line.CuratorLock, 1},
		{"lock-lock-0000000001", line.CuratorLock, 1},
	} {
		got, ok := line.ParseContender(c.name, everyMarker)
		if !ok || got.Marker != c.marker || got.Seq != c.seq || got.Name != c.name {
			t.Errorf("ParseContender(%q): got %+v, %t, want marker %q, number %d", c.name, got, ok, c.marker, c.seq)
		}
	}
	for _, name := range []string{
		"", "lock-", "00-first", "zzz", "x-1234-0000000001", "ready", "lock-1", "lock-+000000001", "lock-000000001x",
		"lock-99999999999", "lock-9999999999", "lock--99999999999", "lock- 000000001", "lock-0000000001-",
		"lock-00000000012",
		"lock--0000000005", "0000000001", "lease_holder",
	} {
		if got, ok := line.ParseContender(name, everyMarker); ok {
			t.Errorf("ParseContender(%q): got %+v, want a foreign child", name, got)
		}
	}
	if got, ok := line.ParseContender("a__lock__0000000001", []line.Marker{line.CuratorLock}); ok {
		t.Errorf("a marker that was not asked for: got %+v", got)
	}
}

func TestUnlistedContendersAreKnownByTheirWholeNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"x-72057594037927936-0000000012": true, "x-7--000000012": true, "x--7-0000000012": true,
		"x-7-12": false, "x-0000000012": false, "x--0000000012": false, "x-report-2026112907": false, "x-7-": false,
		"yx-7-0000000012": false, "x-": false, "": false,
		"_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000001": false,
	} {
		if got := line.Unlisted(name); got != want {
			t.Errorf("Unlisted(%q): got %t, want %t", name, got, want)
		}
	}
}

// Promise: 6
func TestTheNearestContenderAheadThatBlocksIsTheOneToWaitFor(t *testing.T) {
	t.Parallel()
	all := func(line.Contender) bool { return true }
	writers := func(s line.Contender) bool { return s.Marker == line.CuratorWrite }
	at := func(m line.Marker, seq int32) line.Contender {
		return line.Contender{Name: fmt.Sprintf("%s%010d", m, seq), Marker: m, Seq: seq}
	}
	w := func(seq int32) line.Contender { return at(line.CuratorWrite, seq) }
	r := func(seq int32) line.Contender { return at(line.CuratorRead, seq) }
	for _, c := range []struct {
		why        string
		contenders []line.Contender
		mine       line.Contender
		blocks     func(line.Contender) bool
		want       string
		n          int
	}{
		{"alone", []line.Contender{w(5)}, w(5), all, "", 0},
		{"first of many, listed in disorder", []line.Contender{w(9), w(5), w(7)}, w(5), all, "", 0},
		{"directly behind the head", []line.Contender{w(9), w(5), w(7)}, w(7), all, w(5).Name, 1},
		{"deeper: the nearest, not the head", []line.Contender{w(9), w(5), w(7)}, w(9), all, w(7).Name, 2},
		{"a reader passes readers", []line.Contender{r(1), r(2), r(3)}, r(3), writers, "", 0},
		{
			"a reader waits for the nearest writer ahead",
			[]line.Contender{w(1), r(2), w(3), r(4), w(5)},
			r(4), writers, w(3).Name, 2,
		},
		{"a reader does not wait for a later writer (kazoo#649)", []line.Contender{r(1), w(2)}, r(1), writers, "", 0},
		{"a writer waits for every contender ahead", []line.Contender{r(1), r(2), w(3)}, w(3), all, r(2).Name, 2},
		{
			"across the wrap",
			[]line.Contender{w(math.MinInt32), w(math.MaxInt32), w(math.MaxInt32 - 1)},
			w(math.MinInt32), all, w(math.MaxInt32).Name, 2,
		},
		{
			"the oldest across the wrap",
			[]line.Contender{w(math.MinInt32), w(math.MaxInt32)},
			w(math.MaxInt32),
			all, "", 0,
		},
		{"negative numbers in their own order", []line.Contender{w(-5), w(-1), w(0)}, w(0), all, w(-1).Name, 2},
	} {
		got, n := line.Ahead(c.contenders, c.mine, c.blocks)
		if got.Name != c.want || n != c.n {
			t.Errorf("%s: got %q and %d ahead, want %q and %d", c.why, got.Name, n, c.want, c.n)
		}
	}
}

// This is the argument for mutual exclusion, tried on every pair of interest: whatever the numbers, one of two is
// first.
//
// Promise: 1
func TestOfTwoContendersExactlyOneIsAhead(t *testing.T) {
	t.Parallel()
	edge := []int32{
		math.MinInt32, math.MinInt32 + 1, -1 << 30, -2, -1, 0, 1, 2, 1 << 30, math.MaxInt32 - 1, math.MaxInt32,
	}
	check := func(a, b line.Contender) {
		t.Helper()
		if line.Before(a, b) == line.Before(b, a) {
			t.Errorf("%+v and %+v: both or neither is first", a, b)
		}
	}
	for _, x := range edge {
		for _, y := range edge {
			check(line.Contender{Name: "a", Seq: x}, line.Contender{Name: "b", Seq: y})
		}
	}
	for range 10_000 {
		check(line.Contender{Name: "a", Seq: int32(rand.Uint32())},
			line.Contender{Name: "b", Seq: int32(rand.Uint32())})
	}
	if s := (line.Contender{Name: "a", Seq: 1}); line.Before(s, s) {
		t.Error("a contender is ahead of itself")
	}
}

func TestSortFollowsTheServersOrderAcrossTheWrap(t *testing.T) {
	t.Parallel()
	var want []line.Contender
	for d := range int32(100) {
		seq := math.MaxInt32 - 50 + d // wraps
		want = append(want, line.Contender{Name: fmt.Sprintf("lock-%010d", seq), Seq: seq})
	}
	got := append([]line.Contender(nil), want...)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	line.Sort(got)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("place %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// Promise: 9
func FuzzParseContender(f *testing.F) {
	for _, s := range []string{
		"lock-0000000001", "lock--2147483648", "__lock__0000000001", "a-__WRIT__-000000001", "lock-",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, ok := line.ParseContender(name, everyMarker)
		if ok && !strings.HasSuffix(name, fmt.Sprintf("%s%010d", c.Marker, c.Seq)) {
			t.Errorf("%q was read as %+v, which prints otherwise", name, c)
		}
	})
}
