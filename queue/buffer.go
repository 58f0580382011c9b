package queue

// Claimed items that are not delivered yet.

import (
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
)

// buffer is what a consumer has claimed and not delivered yet, and what it knows of items that come before it. The
// dispatcher's mutex guards it, and is held while its methods are called. None of them waits.
type buffer struct {
	clock    *clock
	takers   *takers
	prefetch int // the most items to claim at once

	leases   []*lease // those with buffered items, in the order of their places
	open     int      // items that were delivered and are not finished
	pace     int      // how many items to claim at once
	dirty    bool     // something was given back that may come before the buffered items
	fetching bool     // serve is looking for something that comes before them
	nextDue  int64    // when the next delayed item is due, as far as known; 0: none
	watches
}

// best returns the place of the next item that can be delivered without asking a server.
func (b *buffer) best() (claims.Place, bool) {
	if len(b.leases) == 0 {
		return claims.Place{}, false
	}
	l := b.leases[0]
	return l.At(l.buffer[0].seq), true
}

// last returns the place of the last buffered item. There is one.
func (b *buffer) last() claims.Place {
	var last claims.Place
	for i, l := range b.leases {
		if at := l.At(l.buffer[len(l.buffer)-1].seq); i == 0 || at.Compare(last) > 0 {
			last = at
		}
	}
	return last
}

// mustFetch reports that a server must be asked before the next item is delivered: nothing is buffered, or something
// that comes first may have arrived.
func (b *buffer) mustFetch() bool {
	best, ok := b.best()
	return !ok || b.paused || b.gate.hasFired() || b.fetching || b.dirty || b.urgent(best.Priority) ||
		b.nextDue > 0 && b.clock.now() >= b.nextDue
}

// pop takes out the next item, and returns it with its lease. It returns nil if there is none that may be delivered.
func (b *buffer) pop() (*lease, bufferedItem) {
	if b.mustFetch() {
		return nil, bufferedItem{}
	}
	l := b.leases[0]
	s := l.buffer[0]
	if s.seq > l.claimed.Delivered {
		return nil, bufferedItem{}
	}
	l.buffer = l.buffer[1:]
	l.open++
	b.open++
	switch {
	case len(l.buffer) == 0:
		b.leases = b.leases[1:]
		b.learnPace(l)
	case len(b.leases) > 1:
		b.leases = b.leases[1:]
		b.add(l) // in its new place: what others have left behind may come between its items
	}
	return l, s
}

// add adds a lease to those with buffered items.
func (b *buffer) add(l *lease) {
	at, _ := slices.BinarySearchFunc(b.leases, l, func(a, b *lease) int {
		return a.At(a.buffer[0].seq).Compare(b.At(b.buffer[0].seq))
	})
	b.leases = slices.Insert(b.leases, at, l)
}

// fewLeft reports whether a fast consumer has just so few items left that it is to claim the next.
func (b *buffer) fewLeft() bool {
	const fast = 16
	return b.pace >= fast && len(b.leases) == 1 && len(b.leases[0].buffer) == b.pace/4
}

// How long a lease is to last: one that is used up faster makes the next one larger, one that takes four times as
// long makes it smaller. If the servers are slow, or far away, that is a few times as long as a claim takes.
const (
	leaseShort = 200 * time.Millisecond
	leaseCosts = 4
	slowClaim  = time.Second // a claim that takes longer counts as this
)

func (b *buffer) learnPace(l *lease) {
	short := max(leaseShort, leaseCosts*min(l.filled.Sub(l.asked), slowClaim))
	switch took := time.Since(l.filled); {
	case took < short && l.size >= b.pace:
		b.pace = max(1, min(2*b.pace, b.prefetch))
	case took > 4*short:
		b.pace = max(1, b.pace/2)
	}
}

// room returns how many items to claim at once.
func (b *buffer) room() int { return max(1, min(maxPrefetch, max(b.pace, b.takers.demand()))) }

// ahead returns how many items to mark as delivered when the next is: as many as are open, because each goroutine
// that works on one will want another.
func (b *buffer) ahead() int { return max(1, b.open, b.takers.demand()) }

// markAt returns how many items to mark in the transaction that claims from a place: none if other items are
// delivered before those.
func (b *buffer) markAt(at claims.Place) int {
	if best, ok := b.best(); ok && best.Compare(at) < 0 {
		return 0
	}
	return b.ahead()
}

// unmarked returns the lease whose node is to be written next, and through which item, so that as many items are
// marked as are open; nil if so many are.
func (b *buffer) unmarked() (*lease, int) {
	want, have := b.ahead(), 0
	for _, l := range b.leases {
		n := l.markedAhead()
		if have+n >= want {
			break
		}
		if n < len(l.buffer) {
			return l, l.buffer[min(want-have, len(l.buffer))-1].seq
		}
		have += n
	}
	return nil, 0
}
