package zktest

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeCapacity is how many bytes a pipe buffers before a write waits for the reader.
const pipeCapacity = 256 << 10

// pipe is one direction of an in-memory connection: one end writes, the other reads.
type pipe struct {
	endpoint *endpoint // whose faults apply

	mu          sync.Mutex // guards the fields below
	chunks      []chunk
	size        int       // bytes in chunks
	writeClosed bool      // the writer has closed its end
	readClosed  bool      // the reader has closed its end
	broken      error     // every read and write fails with it, if not nil
	lost        bool      // bytes vanished because the endpoint was half-open
	readBy      time.Time // deadlines; zero if there is none
	writeBy     time.Time
	changed     broadcast
}

// chunk is one write on its way. The last chunk of a pipe has no data; it stands for the end of the stream.
type chunk struct {
	arrives time.Time // zero: at once
	data    []byte
	last    bool
}

// awaitLocked unlocks the pipe until something changes or the earliest of the non-zero instants has come.
func (p *pipe) awaitLocked(instants ...time.Time) {
	var until time.Time
	for _, t := range instants {
		if !t.IsZero() && (until.IsZero() || t.Before(until)) {
			until = t
		}
	}
	changed := p.changed.wait()
	p.mu.Unlock()
	defer p.mu.Lock()
	if until.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(max(time.Until(until), time.Nanosecond)) // never zero: golang/go#78156
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (c *chunk) arrived() bool { return c.arrives.IsZero() || passed(c.arrives) }

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var arrives time.Time
		switch {
		case p.readClosed:
			return 0, io.ErrClosedPipe
		case passed(p.readBy):
			return 0, os.ErrDeadlineExceeded
		case p.broken != nil:
			return 0, p.broken
		case len(p.chunks) > 0:
			c := &p.chunks[0]
			if c.arrived() {
				if c.last {
					return 0, io.EOF
				}
				return p.consumeLocked(b), nil
			}
			arrives = c.arrives
		}
		if len(b) == 0 {
			return 0, nil
		}
		p.awaitLocked(p.readBy, arrives)
	}
}

// consumeLocked copies what has arrived to b.
func (p *pipe) consumeLocked(b []byte) int {
	n := 0
	for n < len(b) && len(p.chunks) > 0 {
		c := &p.chunks[0]
		if c.last || !c.arrived() {
			break
		}
		took := copy(b[n:], c.data)
		n += took
		c.data = c.data[took:]
		if len(c.data) == 0 {
			p.chunks = p.chunks[1:]
		}
	}
	if len(p.chunks) == 0 {
		p.chunks = nil
	}
	p.size -= n
	p.changed.signal()
	return n
}

func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for {
		switch {
		case p.writeClosed:
			return n, io.ErrClosedPipe
		case passed(p.writeBy):
			return n, os.ErrDeadlineExceeded
		case p.broken != nil:
			return n, p.broken
		case p.endpoint.now().halfOpen:
			p.lost = p.lost || n < len(b)
			return len(b), nil
		case p.readClosed:
			return n, syscall.EPIPE
		case n == len(b):
			return n, nil
		}
		if room := pipeCapacity - p.size; room > 0 {
			took := min(room, len(b)-n)
			p.appendLocked(chunk{data: append([]byte(nil), b[n:n+took]...)})
			n += took
			continue
		}
		p.awaitLocked(p.writeBy)
	}
}

func (p *pipe) appendLocked(c chunk) {
	if d := p.endpoint.now().delay; d > 0 {
		c.arrives = time.Now().Add(d)
	}
	if n := len(p.chunks); n > 0 && p.chunks[n-1].arrives.After(c.arrives) {
		c.arrives = p.chunks[n-1].arrives // bytes keep their order when the delay gets shorter
	}
	p.size += len(c.data)
	p.chunks = append(p.chunks, c)
	p.changed.signal()
}

// closeWrite closes the writer's end: the reader gets what is on its way and then io.EOF.
func (p *pipe) closeWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writeClosed {
		return
	}
	p.writeClosed = true
	if p.endpoint.now().halfOpen {
		p.lost = true
	} else {
		p.appendLocked(chunk{last: true})
	}
	p.changed.signal()
}

// closeRead closes the reader's end: what is on its way is dropped and the writer's next write fails.
func (p *pipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readClosed = true
	p.chunks, p.size = nil, 0
	p.changed.signal()
}

// fail breaks the pipe at once.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	p.chunks, p.size = nil, 0
	p.changed.signal()
}

// loseInFlight drops what has not arrived yet.
func (p *pipe) loseInFlight() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.chunks {
		if p.chunks[i].arrived() {
			continue
		}
		for _, c := range p.chunks[i:] {
			p.size -= len(c.data)
		}
		p.chunks = p.chunks[:i]
		p.lost = true
		p.changed.signal()
		return
	}
}

func (p *pipe) hasLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// setDeadline sets one of p's deadlines.
func (p *pipe) setDeadline(deadline *time.Time, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*deadline = t
	p.changed.signal()
}
