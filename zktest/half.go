package zktest

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// halfCapacity is how many bytes may be under way in one direction before a write waits for the reader.
const halfCapacity = 256 << 10

// half is one direction of an in-memory connection: what one end writes and the other reads.
//
// Everything that waits here waits on a channel or a timer, with no lock held, because in a synctest bubble time only
// passes while all goroutines do that.
type half struct {
	road *road // the faults of the way that the bytes take

	mu      sync.Mutex // guards the fields below
	chunks  []chunk
	size    int       // bytes in chunks
	ended   bool      // the writer has closed its end
	broken  error     // the connection is no more: every read and write fails with it
	deaf    bool      // the reader has closed its end
	lost    bool      // something vanished on the road
	readBy  time.Time // deadlines, zero if there is none
	writeBy time.Time
	changed chan struct{} // closed at the next change; nil while nobody waits for one
}

// chunk is one write under way. The last one of a direction has no data and says that the writer has closed.
type chunk struct {
	arrives time.Time // zero: at once
	data    []byte
	last    bool
}

func (h *half) signalLocked() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// awaitLocked gives up the lock until something changes or the earliest of the instants that are not zero.
func (h *half) awaitLocked(instants ...time.Time) {
	var until time.Time
	for _, t := range instants {
		if !t.IsZero() && (until.IsZero() || t.Before(until)) {
			until = t
		}
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	changed := h.changed
	h.mu.Unlock()
	defer h.mu.Lock()
	if until.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		var arrives time.Time
		switch {
		case h.deaf:
			return 0, io.ErrClosedPipe
		case passed(h.readBy):
			return 0, os.ErrDeadlineExceeded
		case h.broken != nil:
			return 0, h.broken
		case len(h.chunks) > 0:
			c := &h.chunks[0]
			if c.arrives.IsZero() || passed(c.arrives) {
				if c.last {
					return 0, io.EOF
				}
				return h.consumeLocked(p), nil
			}
			arrives = c.arrives
		}
		if len(p) == 0 {
			return 0, nil
		}
		h.awaitLocked(h.readBy, arrives)
	}
}

// consumeLocked copies what has arrived to p.
func (h *half) consumeLocked(p []byte) int {
	n := 0
	for n < len(p) && len(h.chunks) > 0 {
		c := &h.chunks[0]
		if c.last || !c.arrives.IsZero() && !passed(c.arrives) {
			break
		}
		took := copy(p[n:], c.data)
		n += took
		c.data = c.data[took:]
		if len(c.data) == 0 {
			h.chunks = h.chunks[1:]
		}
	}
	if len(h.chunks) == 0 {
		h.chunks = nil
	}
	h.size -= n
	h.signalLocked()
	return n
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for {
		switch {
		case h.ended:
			return n, io.ErrClosedPipe
		case passed(h.writeBy):
			return n, os.ErrDeadlineExceeded
		case h.broken != nil:
			return n, h.broken
		case h.road.isDark():
			h.lost = h.lost || n < len(p)
			return len(p), nil
		case h.deaf:
			return n, syscall.EPIPE
		case n == len(p):
			return n, nil
		}
		if room := halfCapacity - h.size; room > 0 {
			took := min(room, len(p)-n)
			h.appendLocked(chunk{data: append([]byte(nil), p[n:n+took]...)})
			n += took
			continue
		}
		h.awaitLocked(h.writeBy)
	}
}

func (h *half) appendLocked(c chunk) {
	if d := h.road.latency(); d > 0 {
		c.arrives = time.Now().Add(d)
	}
	if k := len(h.chunks); k > 0 && h.chunks[k-1].arrives.After(c.arrives) {
		c.arrives = h.chunks[k-1].arrives // a shorter delay does not let bytes overtake
	}
	h.size += len(c.data)
	h.chunks = append(h.chunks, c)
	h.signalLocked()
}

// end closes the writer's end: the reader gets what is under way and then io.EOF.
func (h *half) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.ended = true
	if h.road.isDark() {
		h.lost = true
	} else {
		h.appendLocked(chunk{last: true})
	}
	h.signalLocked()
}

// stop closes the reader's end: what is under way is dropped and the writer's next write fails.
func (h *half) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf = true
	h.chunks, h.size = nil, 0
	h.signalLocked()
}

// fail breaks the direction at once.
func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = err
	}
	h.chunks, h.size = nil, 0
	h.signalLocked()
}

// darken drops what has not arrived yet.
func (h *half) darken() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range h.chunks {
		if c.arrives.IsZero() || passed(c.arrives) {
			continue
		}
		for _, c := range h.chunks[i:] {
			h.size -= len(c.data)
		}
		h.chunks = h.chunks[:i]
		h.lost = true
		h.signalLocked()
		return
	}
}

func (h *half) hasLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

func (h *half) setReadDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readBy = t
	h.signalLocked()
}

func (h *half) setWriteDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writeBy = t
	h.signalLocked()
}
