// Package survey finds out what a part of the tree is used for: which paths are locks, elections, semaphores and
// queues, whichever program made them, who holds them and who waits.
package survey

// What a path is used for.

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Kind is what a path is used for, as far as its node and its children tell.
type Kind string

// The kinds, as "turnstile who --json" calls them.
const (
	Absent       Kind = "absent"           // the path does not exist: it was never used, or its last user has left
	Free         Kind = "free"             // nothing is below it
	Lock         Kind = "lock"             // contenders of a lock, or of an election that has a lock's names
	Election     Kind = "election"         // candidates of a LeaderLatch
	Support      Kind = "election-support" // candidates of a LeaderElectionSupport
	Permits      Kind = "permits"          // of our semaphore, and of Curator's
	Queue        Kind = "queue"            // of ours
	ClassicQueue Kind = "classic-queue"    // of another program, or of package queue/classic
	KazooPermits Kind = "kazoo-semaphore"  // which has a layout of its own
	Other        Kind = "other"            // nodes of another kind; may be paths of locks
	named        Kind = "named"            // the same, though some have names of contenders or items; never shown
)

// Contended reports whether contenders stand at a path of this kind.
func (k Kind) Contended() bool {
	return slices.Contains([]Kind{Lock, Election, Support, Permits, KazooPermits}, k)
}

// covers reports whether a child of this name, and what is below it, is a part of a path of this kind: it is not looked
// into for further locks.
func (k Kind) covers(name string) bool {
	switch k {
	case Permits:
		return permitsDir(name)
	case KazooPermits: // and others may be beside its permits: a program that has registered, say
		return line.KazooPermit(name)
	case Queue, ClassicQueue:
		return true
	case Lock, Election, Support, Absent, Free, Other, named:
	}
	return false
}

// hides reports whether a child of this name is not looked into: it is a contender, or covered.
func (k Kind) hides(name string) bool { return k.covers(name) || k != named && contender(name) }

// permitsDir reports whether semaphores have a directory of this name.
func permitsDir(name string) bool { return name == leases || name == locks }

const leases, locks = "leases", "locks" // the directories of Curator's semaphore, and of ours

// classicItem is the name of an item of a classic queue.
var classicItem = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(qn-|queue-|entry-\d{3}-).*\d{10}$`)
})

// beside are the ends of the names of nodes that belong to the lock beside them: recorded revocations, marks of holders
// with a delay.
var beside = []string{"-__revoked__", "-__delay__"}

// Beside reports whether the node with this name belongs to the lock at a path beside it.
func Beside(name string) bool {
	_, ok := besideOf(name)
	return ok
}

// besideOf returns the path of the lock to which the node at a path belongs that is beside it.
func besideOf(path string) (string, bool) {
	for _, end := range beside {
		if of, ok := strings.CutSuffix(path, end); ok {
			return of, true
		}
	}
	return "", false
}

// Recognise returns what a path is used for that has these children and this data. Only the children's names are
// known: that those in the form of kazoo's permits are ephemeral is not checked.
func Recognise(children []string, data []byte) Kind {
	var queue struct {
		Recipe string `json:"recipe"`
	}
	if json.Unmarshal(data, &queue) == nil && queue.Recipe == "turnstile queue" {
		return Queue
	}
	contenders := slices.DeleteFunc(line.Contenders(children, line.Every), inWord)
	of := func(m line.Marker) bool {
		return slices.ContainsFunc(contenders, func(c line.Contender) bool { return c.Marker == m })
	}
	switch {
	case slices.Contains(children, leases):
		return Permits
	case len(contenders) == 0 && slices.ContainsFunc(children, line.KazooPermit):
		return KazooPermits
	case of(line.SupportOffer):
		return Support
	case of(line.CuratorLatch):
		return Election
	case len(contenders) > 0:
		return Lock
	case len(children) == 0:
		return Free
	case !slices.ContainsFunc(children, func(name string) bool { return !classicItem().MatchString(name) }):
		return ClassicQueue
	}
	return Other
}

// inWord reports whether the marker of a contender's name is the end of a longer word, as in block-0000000001: no
// program has such names for its locks.
func inWord(c line.Contender) bool {
	before := c.Name[:strings.LastIndex(c.Name, string(c.Marker))]
	last, _ := utf8.DecodeLastRuneInString(before)
	return c.Marker[0] != '_' && unicode.IsLetter(last)
}

// Layout returns in which layout the contenders among these children of a path of the kind stand, in the words that
// --layout takes; "mixed" if in several, empty if there are none.
func Layout(kind Kind, children []string) string {
	switch kind {
	case Permits:
		return "curator"
	case KazooPermits:
		return "kazoo"
	case Lock, Election, Support, Absent, Free, Queue, ClassicQueue, Other, named:
	}
	contenders, second := line.Fold(line.Contenders(children, line.Every))
	layout := ""
	for _, c := range contenders {
		mine := layouts[c.Marker]
		if second[c.Name] != "" {
			mine = "both"
		}
		if layout != "" && layout != mine {
			return "mixed"
		}
		layout = mine
	}
	return layout
}

// Unlisted reports whether a name is that of a contender of a program that no other looks for, and that is not listed.
func Unlisted(name string) bool { return line.Unlisted(name) }

// layouts are the words for the markers of contenders.
var layouts = map[line.Marker]string{
	line.CuratorLock: "curator", line.CuratorRead: "curator-rw", line.CuratorWrite: "curator-rw",
	line.KazooLock: "kazoo", line.KazooRead: "kazoo", line.CuratorLatch: "latch", line.SupportOffer: "support",
}

// contender reports whether a name is one of a contender: it has no children.
func contender(name string) bool {
	_, ok := line.ParseContender(name, line.Every)
	return ok
}
