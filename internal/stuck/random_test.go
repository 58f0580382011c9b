package stuck_test

// Random programs whose records are late, and members that confirm what they find.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/stuck"
)

// world is some tasks that take mutexes, read/write locks and permits, and what their records show of that: each write
// takes some time, and some tasks are cut off for a while.
type world struct {
	*rand.Rand
	now     int
	next    int64 // the next transaction
	tasks   []*task
	locks   []*resource
	pending []write
	stuck   map[*stuck.Wait][]int // when each wait was stuck

	confirmed, phantoms int
}

type resource struct {
	path    string
	kinds   []string // that are taken here
	limit   int
	holders []*grant
	queue   []*stuck.Wait // in line
}

type grant struct {
	hold stuck.Hold
	by   *task
}

type task struct {
	name   string
	holds  []*grant
	wait   *stuck.Wait
	at     *resource
	record shown // what others see
	last   int   // when its last write takes effect
	cutOff int   // until when its writes wait
	seen   map[string]bool
	own    map[string]bool // what it confirms
	reads  []shown         // a look that is under way: a record at a time
}

type shown struct {
	wait      *stuck.Wait
	confirmed []string
}

type write struct {
	at   int
	task *task
	shown
}

func (w *world) publish(t *task) {
	at := max(w.now+1+w.IntN(4), t.last+1, t.cutOff)
	t.last = at
	var keys []string
	for k := range t.own {
		keys = append(keys, k)
	}
	w.pending = append(w.pending, write{at, t, shown{t.wait, keys}})
}

func excludes(a, b string) bool { return a != stuck.Reader || b != stuck.Reader }

// free reports whether a wait can be served: nothing that it excludes is held, and nothing stands before it.
func (r *resource) free(wait *stuck.Wait) bool {
	permits := 0
	for _, h := range r.holders {
		if wait.Kind == stuck.Permit {
			permits += h.hold.Permits
		} else if excludes(wait.Kind, h.hold.Kind) {
			return false
		}
	}
	if wait.Kind == stuck.Permit && permits+wait.Permits > r.limit {
		return false
	}
	for _, other := range r.queue {
		if other == wait {
			return true
		}
		if excludes(wait.Kind, other.Kind) {
			return false
		}
	}
	return false
}

func (w *world) serve() {
	for served := true; served; {
		served = false
		for _, t := range w.tasks {
			if t.wait == nil || !t.at.free(t.wait) {
				continue
			}
			w.next++
			g := &grant{stuck.Hold{
				Paths: []string{t.at.path}, Node: t.wait.Node, Token: w.next,
				Kind: t.wait.Kind, Permits: t.wait.Permits,
			}, t}
			t.at.holders, t.holds = append(t.at.holders, g), append(t.holds, g)
			w.leave(t)
			served = true
		}
	}
}

// leave ends a task's wait.
func (w *world) leave(t *task) {
	i := slices.Index(t.at.queue, t.wait)
	t.at.queue = slices.Delete(t.at.queue, i, i+1)
	t.wait, t.at = nil, nil
	w.publish(t)
}

func (w *world) unlock(t *task, i int) {
	g := t.holds[i]
	t.holds = slices.Delete(t.holds, i, i+1)
	for _, r := range w.locks {
		r.holders = slices.DeleteFunc(r.holders, func(h *grant) bool { return h == g })
	}
}

func (w *world) act(t *task) {
	if w.IntN(500) == 0 {
		t.cutOff = w.now + 20 + w.IntN(200)
	}
	switch x := w.IntN(100); {
	case t.wait != nil && x < 2: // its time is over: it gives up, and what it holds
		w.leave(t)
		for len(t.holds) > 0 {
			w.unlock(t, 0)
		}
	case t.wait == nil && x < 10 && len(t.holds) < len(w.locks):
		r := w.locks[w.IntN(len(w.locks))]
		w.next++
		wait := &stuck.Wait{
			Record: t.name, ID: uint64(w.next), Paths: []string{r.path}, Node: fmt.Sprint(r.path, w.next),
			Czxid: w.next, Kind: r.kinds[w.IntN(len(r.kinds))], Limit: r.limit,
		}
		if r.limit > 0 {
			wait.Permits = 1 + w.IntN(r.limit)
		}
		for _, g := range t.holds {
			wait.Holds = append(wait.Holds, g.hold)
		}
		t.wait, t.at = wait, r
		r.queue = append(r.queue, wait)
		if wait.Holds != nil {
			w.publish(t)
		}
	case t.wait == nil && x < 20 && len(t.holds) > 0:
		w.unlock(t, w.IntN(len(t.holds)))
	}
}

// note notes which waits are stuck now, by what is really held and who really stands in line: first all are, and then
// those are not that could be served if what is not stuck were gone.
func (w *world) note() {
	held := make(map[*task]bool)
	for _, t := range w.tasks {
		held[t] = t.wait != nil
	}
	for changed := true; changed; {
		changed = false
		for _, t := range w.tasks {
			if held[t] && w.canGoOn(t, held) {
				held[t], changed = false, true
			}
		}
	}
	for t, yes := range held {
		if yes {
			w.stuck[t.wait] = append(w.stuck[t.wait], w.now)
		}
	}
}

func (w *world) canGoOn(t *task, held map[*task]bool) bool {
	rest := &resource{limit: t.at.limit}
	for _, h := range t.at.holders {
		if held[h.by] {
			rest.holders = append(rest.holders, h)
		}
	}
	for _, other := range w.tasks {
		if other.at == t.at && (other == t || held[other]) {
			rest.queue = append(rest.queue, other.wait)
		}
	}
	slices.SortFunc(rest.queue, func(a, b *stuck.Wait) int { return int(a.Czxid - b.Czxid) })
	return rest.free(t.wait)
}

// existed reports whether there was a moment in which all waits of a deadlock were stuck.
func (w *world) existed(d *stuck.Deadlock) bool {
	common := slices.Clone(w.stuck[d.Waits[0]])
	for _, other := range d.Waits[1:] {
		common = slices.DeleteFunc(common, func(at int) bool { return !slices.Contains(w.stuck[other], at) })
	}
	return len(common) > 0
}

// look reads one more record, and when it has read all of them confirms what it finds.
func (w *world) look(t *task) {
	t.reads = append(t.reads, w.tasks[len(t.reads)].record)
	if len(t.reads) < len(w.tasks) {
		return
	}
	records := t.reads
	t.reads = nil
	var waits []*stuck.Wait
	for _, r := range records {
		if r.wait != nil && r.wait.Holds != nil {
			waits = append(waits, r.wait)
		}
	}
	own := make(map[string]bool)
	for _, d := range stuck.Find(waits) {
		if !slices.Contains(d.Records(), t.name) || t.wait == nil ||
			!slices.ContainsFunc(d.Waits, func(w *stuck.Wait) bool { return w.Same(t.wait) }) {
			continue
		}
		own[d.Key] = true
		all := t.own[d.Key]
		for i, other := range w.tasks {
			member := slices.Contains(d.Records(), other.name)
			all = all && (!member || other == t || slices.Contains(records[i].confirmed, d.Key))
		}
		if !all || t.seen[d.Key] {
			continue
		}
		t.seen[d.Key] = true
		w.confirmed++
		if !w.existed(d) {
			w.phantoms++
		}
	}
	changed := len(own) != len(t.own)
	for k := range own {
		changed = changed || !t.own[k]
	}
	if t.own = own; changed {
		w.publish(t)
	}
}

// run lets the tasks work for some time.
func (w *world) run(steps int) {
	for ; w.now < steps; w.now++ {
		w.pending = slices.DeleteFunc(w.pending, func(p write) bool {
			if p.at > w.now {
				return false
			}
			p.task.record = p.shown
			return true
		})
		for _, t := range w.tasks {
			w.act(t)
			w.serve()
		}
		w.note()
		for _, t := range w.tasks {
			w.look(t)
		}
	}
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), stuck: make(map[*stuck.Wait][]int)} //nolint:gosec // a test
	for i, kinds := range [][]string{
		{stuck.Exclusive}, {stuck.Reader, stuck.Reader, stuck.Writer}, {stuck.Permit}, {stuck.Exclusive, stuck.Reader},
	} {
		r := &resource{path: fmt.Sprint("/", i), kinds: kinds}
		if kinds[0] == stuck.Permit {
			r.limit = 2
		}
		w.locks = append(w.locks, r)
	}
	for i := range 5 {
		w.tasks = append(w.tasks, &task{name: fmt.Sprint("t", i), seen: make(map[string]bool)})
	}
	return w
}

// No deadlock is confirmed that has never existed, although the records are late, members are cut off and
// waits end at any time. TURNSTILE_STUCK says how many
// random worlds to try.
//
// Promise: 21
func TestNoDeadlockIsConfirmedThatHasNotExisted(t *testing.T) {
	t.Parallel()
	runs := 30
	if text := os.Getenv("TURNSTILE_STUCK"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		runs = n
	}
	confirmed := 0
	for seed := range runs {
		w := newWorld(uint64(seed)) //nolint:gosec // it is small
		w.run(1500)
		if w.phantoms > 0 {
			t.Fatalf("seed %d: %d of %d confirmed deadlocks have never existed", seed, w.phantoms, w.confirmed)
		}
		confirmed += w.confirmed
	}
	t.Logf("%d deadlocks confirmed in %d worlds", confirmed, runs)
	if confirmed < runs {
		t.Errorf("only %d deadlocks were confirmed in %d worlds", confirmed, runs)
	}
}
