package interop_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A pair is one of our recipes and one of a peer's on the same path, and whether they exclude each other.
type pair struct {
	ours  string // recipe and layout: "mutex-curator"
	peer  string // the language and the recipe: "java mutex"
	limit int    // how many permits there are; 0 for locks

	why     reason   // why they do not exclude each other; empty if they do
	intrude []string // which sides enter although the other one is inside: oursSide, peerSide
}

// The names of the two sides.
const (
	oursSide = "ours"
	peerSide = "theirs"
)

// A reason is a note below a table: why two do not exclude each other, or how a column was tested.
type reason string

const (
	kazoosNames  reason = "kazoo counts only nodes with its own names, so it does not wait for ours"
	curatorNames reason = "Curator sorts names without its own marker last, so it does not wait for ours"
	renamed      reason = "kazoo under Curator's names counts only those, so it does not wait for ours"
	noNumber     reason = "`WriteLock` reads a number after the last dash of a name, which kazoo's names lack, and " +
		"no other lock knows its names: neither waits"
	sessionNames reason = "`WriteLock` waits for ours, but no other lock takes its names, `x-SESSION-SEQ`, for a " +
		"contender's, so we do not wait for it"
	mendedReader reason = "Tested with one method of `ReadLock` corrected: before kazoo 2.9.0 a reader and a writer " +
		"may [wait for each other for ever](#what-to-know-of-the-peers)"
)

// A family is the recipes of ours and of others that have a path in common: a table of docs/interop.md.
type family struct {
	title string
	rows  []named           // ours
	cols  []named           // theirs
	notes map[string]reason // notes on columns, by their kinds
	pairs []pair
}

type named struct{ kind, name string }

func families() []family {
	return []family{
		{
			title: "Locks",
			rows: []named{
				{"mutex-curator", "`lock.Mutex`, `Curator`"},
				{"mutex-kazoo", "`lock.Mutex`, `Kazoo`"},
				{"mutex-both", "`lock.Mutex`, `Both`"},
			},
			cols: []named{
				{"java mutex", "Curator `InterProcessMutex`"},
				{"gozk lock", "go-zookeeper `Lock`"},
				{"java writelock", "zookeeper-recipes `WriteLock`"},
				{"kazoo lock", "kazoo `Lock`"},
				{"kazoo lock+pattern", "kazoo `Lock` with `extra_lock_patterns`"},
				{"kazoo lock-as-mutex", "kazoo `Lock` under Curator's name"},
			},
			pairs: []pair{
				{ours: "mutex-curator", peer: "java mutex"},
				{ours: "mutex-curator", peer: "gozk lock"},
				{ours: "mutex-curator", peer: "java writelock", why: sessionNames, intrude: []string{oursSide}},
				{ours: "mutex-curator", peer: "kazoo lock", why: kazoosNames, intrude: []string{peerSide}},
				{ours: "mutex-curator", peer: "kazoo lock+pattern"},
				{ours: "mutex-curator", peer: "kazoo lock-as-mutex"},
				{ours: "mutex-kazoo", peer: "java mutex", why: curatorNames, intrude: []string{peerSide}},
				{ours: "mutex-kazoo", peer: "gozk lock"},
				{ours: "mutex-kazoo", peer: "java writelock", why: noNumber, intrude: []string{oursSide, peerSide}},
				{ours: "mutex-kazoo", peer: "kazoo lock"},
				{ours: "mutex-kazoo", peer: "kazoo lock+pattern"},
				{ours: "mutex-kazoo", peer: "kazoo lock-as-mutex", why: renamed, intrude: []string{peerSide}},
				{ours: "mutex-both", peer: "java mutex"},
				{ours: "mutex-both", peer: "gozk lock"},
				{ours: "mutex-both", peer: "java writelock", why: sessionNames, intrude: []string{oursSide}},
				{ours: "mutex-both", peer: "kazoo lock"},
				{ours: "mutex-both", peer: "kazoo lock+pattern"},
				{ours: "mutex-both", peer: "kazoo lock-as-mutex"},
			},
		},
		{
			title: "Read/write locks",
			rows: []named{
				{"rwlock-curator", "`lock.RWMutex`, `Curator`"},
				{"rwlock-kazoo", "`lock.RWMutex`, `Kazoo`"},
				{"rwlock-both", "`lock.RWMutex`, `Both`"},
			},
			cols: []named{
				{"java rwlock", "Curator `InterProcessReadWriteLock`"},
				{"kazoo rwlock", "kazoo `WriteLock`, `ReadLock`"},
				{"kazoo rwlock-as-curator", "kazoo `WriteLock`, `ReadLock` under Curator's names"},
			},
			notes: map[string]reason{"kazoo rwlock": mendedReader, "kazoo rwlock-as-curator": mendedReader},
			pairs: []pair{
				{ours: "rwlock-curator", peer: "java rwlock"},
				{ours: "rwlock-curator", peer: "kazoo rwlock", why: kazoosNames, intrude: []string{peerSide}},
				{ours: "rwlock-curator", peer: "kazoo rwlock-as-curator"},
				{ours: "rwlock-kazoo", peer: "java rwlock", why: curatorNames, intrude: []string{peerSide}},
				{ours: "rwlock-kazoo", peer: "kazoo rwlock"},
				{ours: "rwlock-kazoo", peer: "kazoo rwlock-as-curator", why: renamed, intrude: []string{peerSide}},
				{ours: "rwlock-both", peer: "java rwlock"},
				{ours: "rwlock-both", peer: "kazoo rwlock"},
				{ours: "rwlock-both", peer: "kazoo rwlock-as-curator"},
			},
		},
		{
			title: "Semaphores",
			rows: []named{
				{"semaphore-curator", "`lock.Semaphore`, `AgreedLimit`"},
				{"semaphore-curator:1", "`lock.Semaphore`, `AgreedLimit(1)`"},
				{"semaphore-stored", "`lock.Semaphore`, `StoredLimit`"},
				{"semaphore-kazoo", "`lock.Semaphore`, `StoredLimit`, `Kazoo`"},
			},
			cols: []named{
				{"java semaphore", "Curator `InterProcessSemaphoreV2`"},
				{"java semaphoremutex", "Curator `InterProcessSemaphoreMutex`"},
				{"kazoo semaphore", "kazoo `Semaphore`"},
			},
			// Contenders want one permit or two. With three permits, two of Curator's contenders that each have one
			// of two, and ours that waits for two, would be stuck:
			// TestThirdWhoWantsTwoOfThreePermitsStandsBehindTwoHalfServed.
			pairs: []pair{
				{ours: "semaphore-curator", peer: "java semaphore", limit: 4},
				{ours: "semaphore-curator:1", peer: "java semaphoremutex", limit: 1},
				{ours: "semaphore-stored", peer: "java semaphore", limit: 4},
				{ours: "semaphore-kazoo", peer: "kazoo semaphore", limit: 3},
			},
		},
		{
			title: "Elections",
			rows: []named{
				{"elect-latch", "`elect.Candidate`, `LeaderLatch`"},
				{"elect-selector", "`elect.Candidate`, `LeaderSelector`"},
				{"elect-kazoo", "`elect.Candidate`, `KazooElection`"},
				{"elect-both", "`elect.Candidate`, `Both`"},
				{"elect-support", "`elect.Candidate`, `LeaderElectionSupport`"},
				{"mutex-curator", "`lock.Mutex`, `Curator`"},
				{"mutex-both", "`lock.Mutex`, `Both`"},
			},
			cols: []named{
				{"java latch", "Curator `LeaderLatch`"},
				{"java selector", "Curator `LeaderSelector`"},
				{"java mutex", "Curator `InterProcessMutex`"},
				{"kazoo election", "kazoo `Election`"},
				{"kazoo election-as-latch", "kazoo `Election` under `LeaderLatch`'s name"},
				{"kazoo election-as-selector", "kazoo `Election` under `LeaderSelector`'s name"},
				{"java support", "zookeeper-recipes `LeaderElectionSupport`"},
			},
			pairs: []pair{
				{ours: "elect-latch", peer: "java latch"},
				{ours: "elect-latch", peer: "kazoo election-as-latch"},
				{ours: "elect-selector", peer: "java selector"},
				{ours: "elect-selector", peer: "java mutex"},
				{ours: "elect-selector", peer: "kazoo election", why: kazoosNames, intrude: []string{peerSide}},
				{ours: "elect-selector", peer: "kazoo election-as-selector"},
				{ours: "elect-kazoo", peer: "java selector", why: curatorNames, intrude: []string{peerSide}},
				{ours: "elect-kazoo", peer: "kazoo election"},
				{ours: "elect-both", peer: "java selector"},
				{ours: "elect-both", peer: "java mutex"},
				{ours: "elect-both", peer: "kazoo election"},
				{ours: "elect-both", peer: "kazoo election-as-selector"},
				{ours: "elect-support", peer: "java support"},
				{ours: "mutex-curator", peer: "java selector"},
				{ours: "mutex-curator", peer: "kazoo election", why: kazoosNames, intrude: []string{peerSide}},
				{ours: "mutex-both", peer: "java selector"},
				{ours: "mutex-both", peer: "kazoo election"},
			},
		},
	}
}

// pairs returns the pairs of all families.
func pairs() []pair {
	var all []pair
	for _, f := range families() {
		all = append(all, f.pairs...)
	}
	return all
}

// name returns the pair's name as a test.
func (p pair) name() string { return strings.ReplaceAll(p.ours+"/"+p.peer, " ", "_") }

// exclusive reports whether the two exclude each other.
func (p pair) exclusive() bool { return p.why == "" }

// TestPageShowsTheTablesThatAreTested checks that docs/interop.md says what the other tests here find out.
func TestPageShowsTheTablesThatAreTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	unwrapped := strings.ReplaceAll(string(page), "\n   ", " ") // make fix wraps long list items
	for _, f := range families() {
		if want := f.markdown(t); !strings.Contains(unwrapped, want) {
			t.Errorf("got docs/interop.md without this:\n\n%s", want)
		}
	}
}

// markdown returns the family's table, followed by notes on some columns and the reasons of the cells that say no.
func (f family) markdown(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	var reasons []reason
	number := func(why reason) int {
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		return 1 + slices.Index(reasons, why)
	}
	fmt.Fprintf(&text, "## %s\n\n| |", f.title)
	for _, c := range f.cols {
		fmt.Fprintf(&text, " %s", c.name)
		if note, ok := f.notes[c.kind]; ok {
			fmt.Fprintf(&text, " (%d)", number(note))
		}
		text.WriteString(" |")
	}
	fmt.Fprintf(&text, "\n|%s\n", strings.Repeat(" --- |", 1+len(f.cols)))
	cells := 0
	for _, r := range f.rows {
		fmt.Fprintf(&text, "| %s |", r.name)
		for _, c := range f.cols {
			i := slices.IndexFunc(f.pairs, func(p pair) bool { return p.ours == r.kind && p.peer == c.kind })
			cell := ""
			switch {
			case i < 0:
			case f.pairs[i].exclusive():
				cell = "excludes "
			default:
				cell = fmt.Sprintf("**no** (%d) ", number(f.pairs[i].why))
			}
			if i >= 0 {
				cells++
			}
			fmt.Fprintf(&text, " %s|", cell)
		}
		text.WriteString("\n")
	}
	if cells != len(f.pairs) {
		t.Fatalf("%s: %d pairs have no cell", f.title, len(f.pairs)-cells)
	}
	for i, why := range reasons {
		fmt.Fprintf(&text, "\n%d. %s.", i+1, why)
	}
	if len(reasons) > 0 {
		text.WriteString("\n")
	}
	return text.String()
}
