package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A referee guards a resource that locks protect, and sees whether two contenders use it at once. Workers of every
// language send it lines over TCP, on one connection for each contender:
//
//	hello PARTY        who it is; no answer
//	enter WEIGHT       it has the lock, or WEIGHT permits; 0 is a lock that readers share
//	leave              it is about to release
//
// The answer to enter and leave is "ok", or "bye" if a leaving contender must finish. A contender releases only after
// it has the answer. A connection that breaks is a contender that has left.
//
// So two contenders that are inside at once held at once, in whatever order their lines arrive.
type referee struct {
	listener net.Listener
	limit    int // how many permits there are; 1 for locks
	// apart reports whether these two parties must not be inside together; a party is apart from itself.
	apart func(a, b string) bool

	mu      sync.Mutex // guards the fields below
	news    chan struct{}
	inside  []*occupant
	latest  string // the party that entered last
	seen    score
	held    map[string]bool // parties that stay inside
	closing bool
}

// A score is what the referee has seen.
type score struct {
	handovers int            // entries by another party than the previous one
	entries   map[string]int // by party
	overlaps  []string
}

// An occupant is a contender between its two lines.
type occupant struct {
	party  string
	weight int
}

func newReferee(t *testing.T, limit int) *referee {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &referee{
		listener: ln,
		limit:    limit,
		apart:    func(string, string) bool { return true },
		news:     make(chan struct{}),
		seen:     score{entries: make(map[string]int)},
		held:     make(map[string]bool),
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.attend(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		r.mu.Lock()
		clear(r.held)
		r.tellLocked()
		r.mu.Unlock()
		wg.Wait()
	})
	return r
}

// attend serves one contender until it leaves.
func (r *referee) attend(conn net.Conn) {
	defer conn.Close()
	var party string
	var here *occupant
	defer func() { r.leave(here) }()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		answer := "ok"
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "hello":
			party = rest
			continue
		case "enter":
			weight, err := strconv.Atoi(rest)
			if err != nil {
				return
			}
			here = r.enter(party, weight)
			r.stay(party)
		case "leave":
			if r.leave(here) {
				answer = "bye"
			}
			here = nil
		default:
			return
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			return
		}
	}
}

func (r *referee) enter(party string, weight int) *occupant {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &occupant{party, weight}
	sum := weight
	for _, o := range r.inside {
		if !r.apart(o.party, party) {
			continue
		}
		sum += o.weight
		if r.limit == 1 && (o.weight > 0 || weight > 0) {
			r.seen.overlaps = append(r.seen.overlaps,
				fmt.Sprintf("%s (%d) entered while %s (%d) was inside", party, weight, o.party, o.weight))
		}
	}
	if r.limit > 1 && sum > r.limit {
		r.seen.overlaps = append(r.seen.overlaps,
			fmt.Sprintf("%s entered with %d permits, and %d of %d are in use", party, weight, sum, r.limit))
	}
	if r.latest != party {
		r.seen.handovers++
	}
	r.latest = party
	r.seen.entries[party]++
	r.inside = append(r.inside, v)
	r.tellLocked()
	return v
}

// stay keeps a contender inside: one in eight for a moment, so that others have time to enter where they must not,
// and a held party until its release.
func (r *referee) stay(party string) {
	if rand.IntN(8) == 0 {
		<-time.After(time.Millisecond)
	}
	r.await(func() bool { return !r.held[party] }, nil)
}

// leave reports whether the contender must finish.
func (r *referee) leave(v *occupant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = slices.DeleteFunc(r.inside, func(o *occupant) bool { return o == v })
	r.tellLocked()
	return r.closing
}

// tellLocked wakes the goroutines in await.
func (r *referee) tellLocked() {
	close(r.news)
	r.news = make(chan struct{})
}

// await waits until what, called under r.mu, returns true, or until done. It reports which.
func (r *referee) await(what func() bool, done <-chan time.Time) bool {
	for {
		r.mu.Lock()
		news, ok := r.news, what()
		r.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-news:
		case <-done:
			return false
		}
	}
}

// hold keeps those of a party that enter from now on inside, until release.
func (r *referee) hold(party string) { r.set(func() { r.held[party] = true }) }

func (r *referee) release(party string) { r.set(func() { delete(r.held, party) }) }

// dismiss makes every contender finish after it has been inside once more.
func (r *referee) dismiss() { r.set(func() { r.closing = true }) }

func (r *referee) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.tellLocked()
}

func (r *referee) score() score {
	r.mu.Lock()
	defer r.mu.Unlock()
	return score{r.seen.handovers, maps.Clone(r.seen.entries), slices.Clone(r.seen.overlaps)}
}

// withinLocked reports whether a contender of the party is inside.
func (r *referee) withinLocked(party string) bool {
	return slices.ContainsFunc(r.inside, func(v *occupant) bool { return v.party == party })
}
