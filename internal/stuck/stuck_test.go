package stuck_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/stuck"
)

// hold returns a hold of one path, whose token is its number.
func hold(path string, token int64, kind string) stuck.Hold {
	return stuck.Hold{Paths: []string{path}, Node: fmt.Sprint(path, "/", token), Token: token, Kind: kind}
}

// wait returns a wait for a path, inside of holds.
func wait(record, path string, czxid int64, kind string, holds ...stuck.Hold) *stuck.Wait {
	return &stuck.Wait{
		Record: record, ID: uint64(czxid), Paths: []string{path}, Czxid: czxid, Kind: kind, Holds: holds,
		Node: fmt.Sprint(path, "/", czxid),
	}
}

func permits(w *stuck.Wait, wanted, limit int) *stuck.Wait {
	w.Permits, w.Limit = wanted, limit
	return w
}

func held(h stuck.Hold, permits int) stuck.Hold {
	h.Permits = permits
	return h
}

func TestDeadlocksAreFound(t *testing.T) {
	t.Parallel()
	const x, r, w, p = stuck.Exclusive, stuck.Reader, stuck.Writer, stuck.Permit
	set := wait("c", "/a", 20, x, hold("/c", 3, x))
	set.Paths = []string{"/a", "/b"}
	for name, test := range map[string]struct {
		waits []*stuck.Wait
		want  []string // the records of each deadlock, in the order of the cycle
	}{
		"nothing": {},
		"a chain": {waits: []*stuck.Wait{
			wait("a", "/b", 10, x, hold("/a", 1, x)), wait("b", "/c", 11, x, hold("/b", 2, x)),
		}},
		"itself": {waits: []*stuck.Wait{wait("a", "/a", 10, x, hold("/a", 1, x))}, want: []string{"[a]"}},
		"two": {waits: []*stuck.Wait{
			wait("a", "/b", 10, x, hold("/a", 1, x)), wait("b", "/a", 11, x, hold("/b", 2, x)),
		}, want: []string{"[b a]"}},
		"a mutex and a writer": {waits: []*stuck.Wait{
			wait("a", "/b", 10, w, hold("/a", 1, x)), wait("b", "/a", 11, x, hold("/b", 2, x)),
		}, want: []string{"[b a]"}},
		"another recipe at the path": {waits: []*stuck.Wait{
			wait("a", "/b", 10, p, hold("/a", 1, x)), wait("b", "/a", 11, x, hold("/b", 2, x)),
		}},
		"three, and one that waits for them": {waits: []*stuck.Wait{
			wait("c", "/a", 13, x, hold("/c", 3, x)), wait("a", "/b", 10, x, hold("/a", 1, x)),
			wait("b", "/c", 11, x, hold("/b", 2, x)), wait("d", "/a", 14, x, hold("/d", 4, x)),
		}, want: []string{"[c a b]"}},
		"two of them at a time": {waits: []*stuck.Wait{
			wait("a", "/b", 10, x, hold("/a", 1, x)), wait("b", "/a", 11, x, hold("/b", 2, x)),
			wait("c", "/d", 12, x, hold("/c", 3, x)), wait("d", "/c", 13, x, hold("/d", 4, x)),
		}, want: []string{"[b a]", "[d c]"}},
		"a reader does not wait for a reader": {waits: []*stuck.Wait{
			wait("a", "/b", 10, r, hold("/a", 1, x)), wait("b", "/a", 11, x, hold("/b", 2, r)),
		}},
		"a reader waits for a writer, a writer for a reader": {waits: []*stuck.Wait{
			wait("a", "/b", 10, w, hold("/a", 1, w)), wait("b", "/a", 11, r, hold("/b", 2, r)),
		}, want: []string{"[b a]"}},
		"a reader behind a writer that is stuck": {waits: []*stuck.Wait{
			wait("a", "/b", 9, x, hold("/r", 1, r)), wait("b", "/r", 10, w, hold("/c", 2, x)),
			wait("c", "/r", 11, r, hold("/b", 3, x)),
		}, want: []string{"[c b a]"}},
		"a hold with another wait that goes on": {waits: []*stuck.Wait{
			wait("a", "/b", 10, x, hold("/a", 1, x)), wait("a", "/free", 12, x, hold("/a", 1, x)),
			wait("b", "/a", 11, x, hold("/b", 2, x)),
		}},
		"a free permit": {waits: []*stuck.Wait{
			permits(wait("a", "/s", 10, p, hold("/a", 1, x)), 1, 3), wait("b", "/a", 11, x, held(hold("/s", 2, p), 2)),
		}},
		"too few permits": {waits: []*stuck.Wait{
			permits(wait("a", "/s", 10, p, hold("/a", 1, x)), 2, 3), wait("b", "/a", 11, x, held(hold("/s", 2, p), 2)),
		}, want: []string{"[b a]"}},
		"permits of two holds": {waits: []*stuck.Wait{
			permits(wait("a", "/s", 10, p, hold("/a", 1, x)), 1, 3), wait("b", "/a", 11, x, held(hold("/s", 2, p), 2)),
			wait("c", "/a", 12, x, held(hold("/s", 3, p), 1)),
		}, want: []string{"[c a]"}},
		"a limit that may change": {waits: []*stuck.Wait{
			permits(wait("a", "/s", 10, p, hold("/a", 1, x)), 2, 0), wait("b", "/a", 11, x, held(hold("/s", 2, p), 2)),
		}},
		"a set that stands before another": {waits: []*stuck.Wait{
			set, wait("b", "/c", 12, x, hold("/b", 2, x)), wait("d", "/c", 30, x, hold("/d", 9, x)),
		}, want: []string{"[c b]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				found := stuck.Find(test.waits)
				var got []string
				for _, d := range found {
					var way []string
					for _, s := range d.Cycle {
						way = append(way, s.Wait.Record)
					}
					got = append(got, fmt.Sprint(way))
				}
				slices.Sort(got)
				if !slices.Equal(got, test.want) {
					t.Fatalf("got %v, want %v", got, test.want)
				}
				if len(test.waits) > 1 { // the order is of no importance
					test.waits = append(test.waits[1:], test.waits[0])
				}
			}
		})
	}
}

// What is read again is the same wait; another node, or another hold, makes it another one.
func TestAWaitIsTheSameAfterItWasRead(t *testing.T) {
	t.Parallel()
	w := wait("a", "/ü<\u2028\x7f", 10, stuck.Exclusive, hold("/a", 1, stuck.Reader))
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	read := func() *stuck.Wait {
		again := &stuck.Wait{Record: "a"}
		if err := json.Unmarshal(b, again); err != nil {
			t.Fatal(err)
		}
		return again
	}
	if !w.Same(read()) {
		t.Errorf("%+v is not %+v", w, read())
	}
	for i, change := range []func(*stuck.Wait){
		func(w *stuck.Wait) { w.Record = "b" }, func(w *stuck.Wait) { w.ID++ }, func(w *stuck.Wait) { w.Node += "x" },
		func(w *stuck.Wait) { w.Holds[0].Kind = stuck.Writer }, func(w *stuck.Wait) { w.Holds[0].Token++ },
		func(w *stuck.Wait) { w.Limit++ },
		func(w *stuck.Wait) { w.Holds = append(w.Holds, hold("/b", 2, stuck.Reader)) },
	} {
		other := read()
		if change(other); w.Same(other) {
			t.Errorf("change %d makes no difference", i)
		}
	}
}

// A long chain of waits takes no stack, and not the square of its length.
func TestManyWaits(t *testing.T) {
	t.Parallel()
	const n = 5_000
	waits := make([]*stuck.Wait, n)
	for i := range waits {
		waits[i] = wait(strconv.Itoa(i), fmt.Sprint("/", (i+1)%n), int64(n+i), stuck.Exclusive,
			hold(fmt.Sprint("/", i), int64(i+1), stuck.Exclusive))
	}
	if found := stuck.Find(waits); len(found) != 1 || len(found[0].Cycle) != n {
		t.Fatal(len(found))
	}
	waits[0].Paths = []string{"/free"}
	if found := stuck.Find(waits); len(found) != 0 {
		t.Fatal(len(found))
	}
}

// Half of the calls that wait for permits wait inside of one hold. It ends with the first of them, and all go on.
func TestThousandsOfWaitsGoOnOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const many = 5000
	var waits []*stuck.Wait
	for i := range int64(many) {
		inside := hold("/other", i+2, stuck.Exclusive)
		if i%2 == 0 {
			inside = hold("/permits", 1, stuck.Permit)
		}
		w := wait(strconv.FormatInt(i%9, 10), "/permits", i+10, stuck.Permit, inside)
		waits = append(waits, permits(w, 1, 3))
	}
	rand.Shuffle(len(waits), func(i, k int) { waits[i], waits[k] = waits[k], waits[i] })
	if found := stuck.Find(waits); len(found) > 0 {
		t.Errorf("got %d deadlocks, want none", len(found))
	}
}
