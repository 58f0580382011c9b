package server

// The queue of messages to the owner.

import (
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// itemKind is what an item asks the owner to do.
type itemKind uint8

const (
	itemRequest itemKind = iota // a request after the handshake
	itemConnect                 // the handshake
	itemGone                    // the connection has ended
	itemResume                  // the connection has room for replies again
	itemCall                    // run a function on the owner's goroutine
)

// item is one message to the owner.
type item struct {
	kind itemKind
	op   wire.Op
	xid  int32
	code wire.Code // not OK if the request could not be decoded
	size int       // of the frame in bytes
	more bool      // only a part has been served, see turns.go
	tail bool      // the last of a batch; when it is served the reader may give another batch
	at   time.Duration
	conn *conn
	req  wire.Record
	walk *tree.Walk // of a request that counts nodes, once it has begun
	call func()
}

// queue carries items from many goroutines to the owner, which takes all of them at a time.
type queue struct {
	wake chan struct{} // has a token when there are items

	mu     sync.Mutex // guards the fields below; nothing blocks under it
	items  []item
	closed bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push appends items in order. It reports false if the owner has ended.
func (q *queue) push(items ...item) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	first := len(q.items) == 0
	q.items = append(q.items, items...)
	q.mu.Unlock()
	if first {
		signal(q.wake)
	}
	return true
}

// empty reports whether there are no items.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// take returns all items and gives the queue buf's memory for the next ones.
func (q *queue) take(buf []item) []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = buf[:0]
	return items
}

// close makes push fail and drops all items, calls included: do waits for the owner's end as well.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.items = nil
}
