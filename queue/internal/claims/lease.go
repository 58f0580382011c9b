package claims

// A claim of this consumer.

import (
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
)

// Lease is a claim of this consumer: a range of a segment's items, of which some are delivered and some still
// buffered. The exported fields do not change, but for Token, which is set before the lease has items.
type Lease struct {
	Path  string // of its node
	List  *segment.List
	Place       // of its first item
	Size  int   // how many items it was made for
	Tries int   // how often earlier owners delivered its items
	Token int64 // the id of the transaction that has created its node

	set     *Set
	asked   time.Time     // when the consumer was about to create its node
	writing chan struct{} // one slot, the write semaphore: held to write the claim's node; pending marks share it

	// The Set's mutex guards what follows.
	filled         time.Time // when its items had been read
	claimed        Range     // as the node says
	pendingMarks   int       // under way
	pendingThrough int       // while there are any: through which item the last one marks
	writers        int       // goroutines that wait to write
	buffer         []Item
	open           int  // delivered and not finished
	nodeGone       bool // its node is deleted, or about to be
	returning      bool // the buffered items are about to be given back: until then the claim's node must stay
}

// NewLease returns what is to be a claim of a range that begins at a place of a list, with its node at path. It marks
// those of its items that are about to be delivered: none if other items are delivered before those. Demand is how many
// items callers wait for.
func (s *Set) NewLease(path string, list *segment.List, at Place, r Range, demand int) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := s.ahead(demand)
	if best, ok := s.best(); ok && best.Compare(at) < 0 {
		marks = 0
	}
	r.Delivered = r.First + min(marks, r.Size()) - 1
	s.seen[at.Priority] = max(s.seen[at.Priority], at.Segment)
	return &Lease{
		Path: path, List: list, Place: at, Size: r.Size(), Tries: r.Tries,
		set: s, asked: time.Now(), writing: make(chan struct{}, 1), claimed: r,
	}
}

// Range returns what the claim's node says.
func (l *Lease) Range() Range {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.claimed
}

// Hold records items of a lease that are not buffered yet: its node stays.
func (l *Lease) Hold(items []Item) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.buffer = items
}

// Buffer adds the items of a lease that are to be delivered. Bad is how many others it has, which the consumer finishes
// without delivering them. If it has neither, its node is the caller's to delete.
func (l *Lease) Buffer(items []Item, bad int) {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	l.filled = time.Now()
	l.buffer, l.open = items, bad
	s.open += bad
	l.nodeGone = len(items)+bad == 0
	s.bufferAgain(l)
}

// bufferAgain adds a lease, if it has items.
func (s *Set) bufferAgain(l *Lease) {
	if len(l.buffer) > 0 && !s.dropped {
		s.insert(l)
		s.used = time.Now()
	}
	s.updateOwnership()
}

// InLastSegment reports whether no later segment of its list is known.
func (l *Lease) InLastSegment() bool {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.Segment >= l.set.seen[l.Priority]
}

// WaitToWrite returns the write semaphore of the claim's node, to which a send takes it: the caller waits to write the
// node, and calls WaitedToWrite when it has the semaphore, or gives up. Meanwhile no mark begins.
func (l *Lease) WaitToWrite() chan<- struct{} {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.writers++
	return l.writing
}

// WaitedToWrite ends what WaitToWrite has begun.
func (l *Lease) WaitedToWrite() {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.writers--
	l.set.wake()
}

// EndWrite gives up the write semaphore.
func (l *Lease) EndWrite() {
	<-l.writing
	l.set.wake()
}

// tryWrite takes the write semaphore if no goroutine has it.
func (l *Lease) tryWrite() bool {
	select {
	case l.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

// Changed returns the channel from which one receives when a claim's node was written, or a goroutine has stopped
// waiting to write one, since the last receive.
func (s *Set) Changed() <-chan struct{} { return s.changed }

func (s *Set) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// tryMark begins a mark, unless another goroutine writes the node otherwise or waits to.
func (l *Lease) tryMark() bool {
	if l.writers > 0 || l.pendingMarks == 0 && !l.tryWrite() {
		return false
	}
	l.pendingMarks++
	return true
}

// endMark ends a mark.
func (l *Lease) endMark(through int, done bool) {
	if done {
		l.claimed.Delivered = max(l.claimed.Delivered, through)
	}
	if l.pendingMarks--; l.pendingMarks == 0 {
		l.EndWrite()
	}
}

// markedAhead returns how many of the buffered items are marked, or will be when all that was sent is done.
func (l *Lease) markedAhead() int {
	through := l.claimed.Delivered
	if l.pendingMarks > 0 {
		through = l.pendingThrough
	}
	n, _ := slices.BinarySearchFunc(l.buffer, through+1, func(it Item, seq int) int { return it.Seq - seq })
	return n
}

// next returns the place of its next item. It has one.
func (l *Lease) next() Place { return l.At(l.buffer[0].Seq) }

// ends reports whether nothing is left of the claim when n more items are finished.
func (l *Lease) ends(n int) bool { return l.open == n && len(l.buffer) == 0 && !l.returning }

// Rest is what is left to do when items are finished.
type Rest struct {
	Delete bool // the claim has no items any more: its node is to be deleted
	Tidy   bool // it has no items, and its node is gone: its segment may be empty
	Leave  bool // the consumer's node is to be removed: its queue is closed, and no item is open
}

// Finish records that n items are finished.
func (l *Lease) Finish(n int) Rest {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.finish(n)
}

func (l *Lease) finish(n int) Rest {
	s := l.set
	l.open -= n
	s.open -= n
	s.updateOwnership()
	r := Rest{Leave: s.closing && s.open == 0}
	if l.ends(0) {
		r.Delete, r.Tidy = !l.nodeGone, l.nodeGone
		l.nodeGone = true
	}
	return r
}
