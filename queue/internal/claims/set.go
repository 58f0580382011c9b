// Package claims keeps what a consumer of a queue has claimed: which items are buffered, delivered and marked, and what
// the consumer knows of items that come before them. It is a state machine in memory: it asks no server, never waits,
// and calls nothing that could call back. What it decides package queue writes to the servers, and tells it what came
// of that.
package claims

// What a consumer has claimed.

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Set is what one consumer has claimed. The methods of a Set, its Leases and its Acks may be called from any goroutine.
// Each is one step: it takes the Set's mutex, and has released it when it returns.
type Set struct {
	own      Ownership
	prefetch int           // the most items to claim at once
	changed  chan struct{} // one slot: a claim's node was written, or a goroutine has stopped waiting to write one

	mu         sync.Mutex  // guards what follows, what changes of leases, and which watches have fired
	leases     []*Lease    // those with buffered items, in the order of their places
	unreturned []*Lease    // claims without buffered items that the server has refused to take back
	open       int         // items that were delivered and are not finished
	pace       int         // how many items to claim at once
	used       time.Time   // when something was last claimed or delivered
	dirty      bool        // something was given back that may come before the buffered items
	fetching   bool        // the consumer is looking for something that comes before them
	nextDue    int64       // when the next delayed item is due, as far as known; 0: none
	free       int         // free claims at the last listing, plus items given back one by one since
	seen       map[int]int // the last segment of each priority that it knows of
	closing    bool        // the queue is closed; the consumer's node goes when no item is open
	dropped    bool        // the consumer has ended, and has no claims any more
	watches
}

// Ownership begins when a Set has claims, and ends when it has none: it is a *zk.Ownership.
type Ownership interface {
	Begin()
	End()
}

// Item is a claimed item.
type Item struct {
	Seq     int
	Record  *segment.Record
	Created int64 // ms since 1970
}

// Buffered are items of a lease.
type Buffered struct {
	Lease *Lease
	Items []Item
}

// New returns the Set of a consumer that has claimed nothing, and will claim at most prefetch items at once, ahead of
// its callers.
func New(own Ownership, prefetch int) *Set {
	s := &Set{own: own, prefetch: prefetch, changed: make(chan struct{}, 1), pace: 1, seen: make(map[int]int)}
	s.lists = make(map[int]*Watch)
	return s
}

// best returns the place of the next item that can be delivered without asking a server.
func (s *Set) best() (Place, bool) {
	if len(s.leases) == 0 {
		return Place{}, false
	}
	return s.leases[0].next(), true
}

// last returns the place of the last buffered item. There is one.
func (s *Set) last() Place {
	var last Place
	for i, l := range s.leases {
		if at := l.At(l.buffer[len(l.buffer)-1].Seq); i == 0 || at.Compare(last) > 0 {
			last = at
		}
	}
	return last
}

// MustFetch reports that a server must be asked before the next item is delivered: nothing is buffered, or something
// that comes first may have arrived. Now is the servers' time in ms since 1970, 0 if it is not known.
func (s *Set) MustFetch(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mustFetch(now)
}

func (s *Set) mustFetch(now int64) bool {
	best, ok := s.best()
	return !ok || s.paused || s.on[Gate].hasFired() || s.fetching || s.dirty || s.urgent(best.Priority) ||
		s.nextDue > 0 && now >= s.nextDue
}

// Pop takes out the next item, and returns it with its lease. It returns nil if there is none that may be delivered,
// see MustFetch. Few reports that a fast consumer has just so few items left that it is to claim the next.
func (s *Set) Pop(now int64) (l *Lease, it Item, few bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mustFetch(now) {
		return nil, Item{}, false
	}
	l = s.leases[0]
	it = l.buffer[0]
	if it.Seq > l.claimed.Delivered {
		return nil, Item{}, false
	}
	l.buffer = l.buffer[1:]
	l.open++
	s.open++
	s.used = time.Now()
	switch {
	case len(l.buffer) == 0:
		s.leases = s.leases[1:]
		s.learnPace(l)
	case len(s.leases) > 1:
		s.leases = s.leases[1:]
		s.insert(l) // in its new place: what others have left behind may come between its items
	}
	return l, it, s.fewLeft()
}

// insert adds a lease to those with buffered items.
func (s *Set) insert(l *Lease) {
	at, _ := slices.BinarySearchFunc(s.leases, l, func(a, b *Lease) int { return a.next().Compare(b.next()) })
	s.leases = slices.Insert(s.leases, at, l)
}

func (s *Set) fewLeft() bool {
	const fast = 16
	return s.pace >= fast && len(s.leases) == 1 && len(s.leases[0].buffer) == s.pace/4
}

// How long a lease is to last: one that is used up faster makes the next one larger, one that takes four times as
// long makes it smaller. If the servers are slow, or far away, that is a few times as long as a claim takes.
const (
	leaseShort = 200 * time.Millisecond
	leaseCosts = 4
	slowClaim  = time.Second // a claim that takes longer counts as this
)

func (s *Set) learnPace(l *Lease) {
	short := max(leaseShort, leaseCosts*min(l.filled.Sub(l.asked), slowClaim))
	switch took := time.Since(l.filled); {
	case took < short && l.Size >= s.pace:
		s.pace = max(1, min(2*s.pace, s.prefetch))
	case took > 4*short:
		s.pace = max(1, s.pace/2)
	}
}

// Pace returns how many items to claim at once, if callers do not want more.
func (s *Set) Pace() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace
}

// SetPace sets how many items to claim at once, from which the Set learns what is right.
func (s *Set) SetPace(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace = n
}

// Open returns how many items were delivered and are not finished.
func (s *Set) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Empty reports whether no items are buffered.
func (s *Set) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases) == 0
}

// Leases returns the leases with buffered items, in the order of their places. Only tests need it.
func (s *Set) Leases() []*Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.leases)
}

// ahead returns how many items to mark as delivered when the next is: as many as are open, because each goroutine
// that works on one will want another. Demand is how many items callers wait for.
func (s *Set) ahead(demand int) int { return max(1, s.open, demand) }

// unmarked returns the lease whose node is to be written next, and through which item, so that as many items are
// marked as are open; nil if so many are.
func (s *Set) unmarked(demand int) (*Lease, int) {
	want, have := s.ahead(demand), 0
	for _, l := range s.leases {
		n := l.markedAhead()
		if have+n >= want {
			break
		}
		if n < len(l.buffer) {
			return l, l.buffer[min(want-have, len(l.buffer))-1].Seq
		}
		have += n
	}
	return nil, 0
}

// BeginFetch records that the consumer looks for items that come before the buffered ones, until EndFetch; if more is
// set, only for what comes behind those. It returns the places of the first and the last buffered item, and false if
// none are.
func (s *Set) BeginFetch(more bool) (first, last Place, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok = s.best(); ok {
		last = s.last()
	}
	if !more {
		s.fetching, s.dirty = true, false
	}
	return first, last, ok
}

// EndFetch records that the consumer has looked, or, if failed is set, that it still has to.
func (s *Set) EndFetch(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetching = false
	s.dirty = s.dirty || failed
}

// LookFirst records that there may be something that comes before the buffered items.
func (s *Set) LookFirst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = true
}

// NextDue returns when the next delayed item is due, as far as known, in ms since 1970 by the servers' clock; 0: none.
func (s *Set) NextDue() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextDue
}

// SetNextDue sets what NextDue returns.
func (s *Set) SetNextDue(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextDue = ms
}

// FreeClaims returns how many free claims the queue has, as far as known.
func (s *Set) FreeClaims() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// SetFreeClaims sets what FreeClaims returns.
func (s *Set) SetFreeClaims(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = n
}

// CountFreeClaim counts one more free claim, and returns how many there are.
func (s *Set) CountFreeClaim() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	return s.free
}

// Close records that the queue is closed, and reports whether no item is open: otherwise Finish tells.
func (s *Set) Close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	return s.open == 0
}

// Drop forgets all claims, and those that would be buffered later: the consumer has ended. It returns the watches that
// were set, for the caller to close.
func (s *Set) Drop() []*zk.Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases, s.unreturned, s.dropped = nil, nil, true
	s.updateOwnership()
	return s.forget()
}

// updateOwnership begins or ends the ownership: a consumer without claims owns nothing.
func (s *Set) updateOwnership() {
	if !s.dropped && (s.open > 0 || len(s.leases) > 0) {
		s.own.Begin()
	} else {
		s.own.End()
	}
}
