package interop_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A script is what two sides do to one queue: in each line a side, a command of queuePeer, and the answer if that is
// not "ok". A number stands for an argument of the queue's kind: 0 puts before 1, and 1 before 2. An item that is put
// with "soon" is due in a second.
type script struct {
	name  string
	of    []string // the names of the kinds
	locks bool     // only kinds with locks
	bare  bool     // only kinds without locks
	a     string   // who is A, if B cannot do what A does; otherwise it runs with either side as A
	lines string
}

var (
	asked   = []string{"simple", "zookeeper"}
	curator = []string{"plain", "priority", "delay", "id"}
)

func scripts() []script {
	return []script{
		{name: "asking", of: asked, lines: `
			A peek     = none
			B element  = empty
			A remove   = empty
			B poll     = none
			A put 0 one
			B put 0 two
			A put 0 three
			B put 0 four
			A put 0 five
			B peek     = item one
			A peek     = item one
			A element  = item one
			B element  = item one
			B poll     = item one
			A peek     = item two
			A remove   = item two
			B remove   = item three
			A poll     = item four
			B element  = item five
			B take     = item five
			A element  = empty
			B peek     = none
			A poll     = none
			B remove   = empty`},
		{name: "asking for a while", of: []string{"simple"}, lines: `
			A pollbriefly = none
			A put 0 one
			B pollfor     = item one
			B pollbriefly = none
			B put 0 two
			A pollfor     = item two`},
		{name: "priorities", of: []string{"queue"}, lines: `
			A len  = 0
			B poll = none
			A put 2 late
			B put 0 early
			A put 1 usual
			B len  = 3
			A len  = 3
			B poll = item early
			A poll = item usual
			B poll = item late
			A poll = none
			B poll = none
			A len  = 0`},
		{name: "locking", of: []string{"locking"}, lines: `
			A len   = 0
			B holds = no
			A put 1 one two three
			B put 0 zero
			B len   = 4
			A get   = item zero
			B get   = item one
			A holds = yes
			B holds = yes
			B len   = 4
			A release
			A holds = no
			B done
			B holds = no
			B get   = item zero
			A get   = item two
			B done
			A len   = 2
			B get   = item three
			B release
			A done
			A get   = item three
			B poll  = none
			A done
			B len   = 0
			A poll  = none`},
		{name: "failing", of: curator, locks: true, lines: `
			A put 0 one
			B put 1 two
			A get = item one
			B get = item two
			we len = 2
			A requeue
			B done
			we len = 1
			B get = item one
			B done
			A put 0 three
			A get = item three
			A drop
			we len = 0`},
		{name: "failing in its place", of: []string{"priority", "delay"}, locks: true, a: "we", lines: `
			A put 2 late
			A get = item late
			B put 1 usual
			A requeue
			B get = item usual
			B done
			B get = item late
			B done`},
		{name: "failing and coming first", of: []string{"priority", "delay"}, locks: true, a: "they", lines: `
			A put 2 late
			A get = item late
			B put 1 usual
			A requeue
			B get = item late
			B done
			B get = item usual
			B done`},
		{name: "failing under its id", of: []string{"id"}, locks: true, lines: `
			A put 0 one
			A get = item one
			B remove 0 = removed 0
			A requeue
			B remove 0 = removed 1
			we len = 0`},
		{name: "giving back", of: curator, locks: true, a: "we", lines: `
			B put 0 one
			A get   = item one
			A holds = yes
			A put 1 two
			B get   = item two
			A release
			A holds = no
			B done
			B get   = item one
			B done
			A poll  = none`},
		{name: "putting again", of: curator, bare: true, a: "we", lines: `
			B put 0 one
			A get = item one
			A len = 0
			A requeue
			B get = item one
			B done
			A poll = none`},
		{name: "delays", of: []string{"delay"}, lines: `
			A put never three
			A put soon two
			B put 0 one
			B get  = item one
			B done
			B get  = item two
			B done
			we len = 1
			we poll = none`},
		// While the first item is locked, Curator's consumer would look for due items only when the list has changed.
		{name: "delays behind what is in work", of: []string{"delay"}, locks: true, a: "they", lines: `
			A put soon two
			B put 0 one
			A get = item one
			B get = item two
			A done
			B done
			B len = 0`},
		{name: "removing by id", of: []string{"id"}, bare: true, lines: `
			A put 0 one
			B put 0 two
			A put 1 three
			B put 2 four
			B remove 0 = removed 2
			A remove 0 = removed 0
			A remove 2 = removed 1
			B get      = item three
			B remove 1 = removed 0
			B done
			we len     = 0`},
		{name: "removing by id what is in work", of: []string{"id"}, locks: true, lines: `
			A put 0 one
			B put 0 two
			A put 1 three
			A get      = item one
			B remove 0 = removed 1
			A remove 1 = removed 1
			we len     = 1
			A done
			B remove 0 = removed 0
			we len     = 0`},
	}
}

func (s script) fits(k classicKind) bool {
	return slices.Contains(s.of, k.name) && (k.lock || !s.locks) && (!k.lock || !s.bare)
}

// TestWhatOneSideDoesToAClassicQueueTheOtherSees runs every operation that both sides have on ours and on the
// original.
//
// Promise: 7
func TestWhatOneSideDoesToAClassicQueueTheOtherSees(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(b *bench) {
		for _, s := range scripts() {
			for _, a := range []string{"we", "they"} {
				if s.fits(b.kind) && (s.a == a || s.a == "") {
					b.Run(s.name+"/"+a+" are A", func(t *testing.T) {
						of := *b
						of.T = t
						of.play(s, a)
					})
				}
			}
		}
	})
}

// play runs a script. A is "we" or "they", and B the other side.
func (b *bench) play(s script, a string) {
	b.Helper()
	roles := map[string]string{"A": a, "B": "they", "we": "we"}
	if a == "they" {
		roles["B"] = "we"
	}
	test := strings.ReplaceAll(s.name, " ", "-") + "-by-" + a
	ours, theirs := b.ours(test), b.kind.tell(b.T, b.peer, test, "")
	due := map[string]time.Time{}
	for line := range strings.Lines(strings.TrimSpace(s.lines)) {
		said, want, asked := strings.Cut(strings.TrimSpace(line), " = ")
		if !asked {
			want = "ok"
		}
		words := strings.Fields(said)
		said = strings.Join(words, " ")
		who, order := roles[words[0]], words[1]
		var arg string
		var bodies []string
		if len(words) > 2 {
			var at time.Time
			arg, at = b.arg(words[2])
			bodies = words[3:]
			for _, body := range bodies {
				due[body] = at
			}
		}
		var answer string
		if who == "we" {
			answer = b.weDo(ours, order, arg, bodies)
		} else {
			answer = b.peer.order(b.T, "%s %s %s %s", order, theirs, arg, strings.Join(bodies, " "))
		}
		if answer != want {
			b.Fatalf("%q, and %s are A: got %q, want %q", said, a, answer, want)
		}
		if body, is := strings.CutPrefix(answer, "item "); is && time.Now().Before(due[body]) {
			b.Errorf("%q, and %s are A: got %s before its time", said, a, body)
		}
	}
}

// arg returns the argument for a word of a script, and the time from which its item is due if that is still to come.
func (b *bench) arg(word string) (string, time.Time) {
	b.Helper()
	in := func(d time.Duration) (string, time.Time) {
		at := time.Now().Add(d).Truncate(time.Millisecond)
		return strconv.FormatInt(at.UnixMilli(), 10), at
	}
	switch word {
	case "soon":
		return in(time.Second)
	case "never":
		return in(time.Hour)
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		b.Fatal(err)
	}
	return b.kind.arg(n), time.Time{}
}

func (b *bench) weDo(q classicQueue, order, arg string, bodies []string) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), queuePatience)
	defer cancel()
	do := q.asks[order]
	if order == "put" {
		do = func(ctx context.Context, arg string) (string, error) { return "ok", q.put(ctx, arg, bodies...) }
	}
	answer, err := do(ctx, arg)
	if err != nil {
		b.Fatalf("we %s: %v", order, err)
	}
	return answer
}
