//go:build unix

package lin_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// enoughEpochs is after how many epochs each kind of fault must have hit something. Each is drawn so often that one run
// in 10,000 fails by bad luck.
const enoughEpochs = 40

// tally counts the faults of a run that have hit something: a request, a process, a server, or what servers said to
// each other.
type tally struct {
	mu   sync.Mutex // guards hits
	hits map[string]int
}

func newTally() *tally { return &tally{hits: make(map[string]int)} }

// faultKinds are all kinds of faults.
func faultKinds() []string {
	kinds := slices.Concat(blipNames, stalls, outages)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func (y *tally) hit(what string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.hits[what]++
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	counts := make([]string, 0, len(y.hits))
	for _, what := range faultKinds() {
		counts = append(counts, fmt.Sprintf("%d × %s", y.hits[what], what))
	}
	return strings.Join(counts, ", ")
}

// missing returns the kinds of faults that have hit nothing.
func (y *tally) missing() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.DeleteFunc(faultKinds(), func(what string) bool { return y.hits[what] > 0 })
}

// Promise: 1
func TestLocksAreNotProvedByFaultsThatHitNothing(t *testing.T) {
	t.Parallel()
	y := newTally()
	if got, want := y.missing(), faultKinds(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, what := range faultKinds() {
		if what != zombieLeader {
			y.hit(what)
		}
	}
	if got, want := y.missing(), []string{zombieLeader}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
