package conformance_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

var (
	seedFlag  = flag.Uint64("seed", 1, "the first random program to run; 0 takes one by the clock")
	seedsFlag = flag.Int("seeds", 4, "how many random programs to run, with seeds that follow each other")
	stepsFlag = flag.Int("steps", 250, "how many steps a random program has")
)

// TestRandomPrograms runs random programs of several sessions on Apache ZooKeeper and on our server. After each step
// all answers, and all events of the step in any session, must be equal. A failure names the seed that repeats it,
// and shows the program without the steps that it does not need.
//
// Promise: 11
func TestRandomPrograms(t *testing.T) { //nolint:tparallel // programs count the zxids of the servers that they share
	t.Parallel()
	if !peer.Installed() && os.Getenv("CI") != "true" {
		t.Skip("Apache ZooKeeper is not installed; run `make peers`")
	}
	main := profiles()[0]
	targets := targetsOf(t, main)
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for _, other := range targets[1:] {
		for i := range *seedsFlag {
			seed := first + uint64(i)
			t.Run(fmt.Sprintf("%s/seed_%d", strings.ReplaceAll(other.name, " ", "_"), seed), func(t *testing.T) {
				p := newProgram(seed, *stepsFlag)
				r := &runner{t: t, seed: seed, apache: targets[0], ours: other}
				at, why := r.run(p)
				if at < 0 {
					return
				}
				p, why = r.shrink(p[:at+1], why)
				t.Fatalf("seed %d: %s differs from Apache ZooKeeper; repeat with -seed %d -seeds 1; shortened:\n%s\n%s",
					seed, other.name, seed, p, why)
			})
		}
	}
}

// A runner runs a program on two servers.
type runner struct {
	t            *testing.T
	seed         uint64
	runs         int
	apache, ours *target
}

// run returns the first step after which the servers differ, and how; -1 if they do not.
func (r *runner) run(p program) (int, string) {
	r.t.Helper()
	r.runs++
	root := fmt.Sprintf("/random-%d-%d-%s", r.seed, r.runs, strings.ReplaceAll(r.ours.name, " ", "-"))
	a, b := newWorld(r.t, r.apache, root), newWorld(r.t, r.ours, root)
	defer a.s.finish()
	defer b.s.finish()
	for i, st := range p {
		want, got := a.do(st), b.do(st)
		if !slices.Equal(want, got) {
			return i, fmt.Sprintf("step %d, %s:\n%s", i, st, diff(want, got))
		}
	}
	return -1, ""
}

// shrink drops steps, in ever smaller pieces, as long as the servers still differ.
func (r *runner) shrink(p program, why string) (program, string) {
	r.t.Helper()
	for size := len(p) / 2; size >= 1 && r.runs < 150; {
		shorter := false
		for at := 0; at+size <= len(p) && r.runs < 150; {
			q := slices.Concat(p[:at], p[at+size:])
			if i, w := r.run(q); i >= 0 {
				p, why, shorter = q[:i+1], w, true
			} else {
				at += size
			}
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	return p, why
}

// A world is the sessions of a program on one server.
type world struct {
	s     *script
	links []*link
	root  string
	seen  int64 // an earlier zxid, for setWatches
}

// Sessions of a program. In 3.8.0 a one-shot watch and a persistent one on the same path and connection destroy each
// other, which is a declared difference, so each session uses one kind.
const (
	oneShotSessions  = 2
	persistentSlot   = 2
	recursiveSlot    = 3
	sessionsOfOne    = 4
	persistentMode   = 0
	recursiveMode    = 1
	resumeAfterSteps = 40
)

func newWorld(t *testing.T, tg *target, root string) *world {
	t.Helper()
	w := &world{s: newScript(t, tg, root), root: root}
	for i := range sessionsOfOne {
		w.links = append(w.links, w.s.open(fmt.Sprintf("s%d", i)))
	}
	w.seen = w.s.maxZxid
	return w
}

// do runs one step and returns its transcript.
func (w *world) do(st step) []string {
	w.s.Helper()
	before := len(w.s.lines)
	l := w.links[st.session]
	switch st.kind {
	case requests:
		l.together(st.build(w.root, w.seen)...)
	case reopen:
		l.each(closeSession())
		l.next()
		w.links[st.session] = w.s.open(l.name)
	case resume:
		l.cut()
		w.links[st.session] = w.s.resume(l.name, l)
	case remember:
		w.seen = w.s.maxZxid
	}
	for _, other := range w.links {
		other.each(ping()) // all events of the step come before this answer
	}
	lines := slices.Clone(w.s.lines[before:])
	if st.kind == reopen {
		slices.Sort(lines) // a closing session deletes its nodes in any order
	}
	return lines
}

// A program is a list of steps that depends only on its seed.
type program []step

func (p program) String() string {
	var b strings.Builder
	for i, st := range p {
		fmt.Fprintf(&b, "  %3d %s\n", i, st)
	}
	return b.String()
}

func newProgram(seed uint64, n int) program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x7475726e))}
	g.private = g.IntN(3) == 0
	p := program{quotaStep(g)}
	for len(p) < n {
		p = append(p, randomStep(g))
	}
	return p
}
