package zktest

// One direction of a proxied connection.

import (
	"net"
	"sync"
	"time"
)

// packet is a part of a stream on its way through a link: a frame, other bytes, or the end of the stream.
type packet struct {
	data  []byte
	at    time.Time       // deliver no earlier than this; zero: at once
	until <-chan struct{} // deliver no earlier than its close; nil: at once
	thaw  <-chan struct{} // likewise
	end   ending
}

// ending says how a stream ends. The packet that carries it is the last one of its direction.
type ending int

const (
	goesOn ending = iota
	ended         // by the end of the file, or by a fault
	broken        // by an error
)

// direction is one direction of a proxied connection: packets in the order of their arrival, each waiting for its time.
type direction struct {
	mu      sync.Mutex // guards packets
	packets []packet
	more    chan struct{} // has an element if packets were added since takeAll
}

func newDirection() *direction { return &direction{more: make(chan struct{}, 1)} }

func (d *direction) add(p packet) {
	d.mu.Lock()
	d.packets = append(d.packets, p)
	d.mu.Unlock()
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *direction) takeAll() []packet {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.packets
	d.packets = nil
	return p
}

// deliver writes the packets to c, each at its time, those that are due together in one write. Right before each write
// it calls admit, and drops the bytes if admit returns false. It drops everything once a write to c has failed. It
// returns how the stream ended, or goesOn if stop was closed first.
func (d *direction) deliver(c net.Conn, stop <-chan struct{}, admit func() bool) ending {
	w := &packetWriter{conn: c, admit: admit}
	for {
		select {
		case <-d.more:
		case <-stop:
			return goesOn
		}
		for _, p := range d.takeAll() {
			if !p.due() {
				w.flush()
				if !p.await(stop) {
					return goesOn
				}
			}
			w.add(p.data)
			if p.end == goesOn {
				continue
			}
			w.flush()
			if admit() {
				return p.end
			}
		}
		w.flush()
	}
}

// packetWriter gathers what leaves in one write.
type packetWriter struct {
	conn   net.Conn
	admit  func() bool
	out    []byte
	failed bool // a write has failed
}

func (w *packetWriter) add(data []byte) {
	w.out = append(w.out, data...)
	if len(w.out) >= pipeCapacity {
		w.flush()
	}
}

func (w *packetWriter) flush() {
	if len(w.out) > 0 && !w.failed && w.admit() {
		_, err := w.conn.Write(w.out)
		w.failed = err != nil
	}
	w.out = w.out[:0]
}

func (p *packet) due() bool {
	return isClosed(p.until) && isClosed(p.thaw) && (p.at.IsZero() || !time.Now().Before(p.at))
}

// isClosed reports whether c is closed or nil.
func isClosed(c <-chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until p is due. It returns false if stop is closed first.
func (p *packet) await(stop <-chan struct{}) bool {
	for _, c := range []<-chan struct{}{p.until, p.thaw} {
		if c == nil {
			continue
		}
		select {
		case <-c:
		case <-stop:
			return false
		}
	}
	if p.at.IsZero() {
		return true
	}
	left := time.Until(p.at)
	if left <= 0 { // never wait for a timer of zero duration in a bubble: golang/go#78156
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
