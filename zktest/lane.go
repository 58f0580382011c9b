package zktest

import (
	"net"
	"sync"
	"time"
)

// parcel is a piece of a stream on its way through a link: a frame, or the end of the stream.
type parcel struct {
	data  []byte
	at    time.Time       // not before; zero: at once
	until <-chan struct{} // not before it is closed; nil: at once
	thaw  <-chan struct{} // likewise
	end   ending
}

// ending says how a stream ends. The parcel that carries it is the last one of its lane.
type ending int

const (
	goesOn ending = iota
	ended         // by the end of the file, or by a fault
	broken        // by an error
)

// lane is one direction of a link: parcels in the order in which they came, each waiting for its time.
type lane struct {
	mu      sync.Mutex // guards the fields below
	parcels []parcel
	more    chan struct{} // holds a token if parcels came since the carrier looked
}

func newLane() *lane { return &lane{more: make(chan struct{}, 1)} }

func (l *lane) add(p ...parcel) {
	l.mu.Lock()
	l.parcels = append(l.parcels, p...)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lane) takeAll() []parcel {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parcels
	l.parcels = nil
	return p
}

// carry writes the lane's parcels to c, each at its time, those that are due together in one write. admit is asked right before
// whether what arrives now may arrive; what may not vanishes, and so does everything once c cannot be written to.
// It returns how the stream ended, or goesOn if stop was closed before.
func (l *lane) carry(c net.Conn, stop <-chan struct{}, admit func() bool) ending {
	w := &laneWriter{conn: c, admit: admit}
	for {
		select {
		case <-l.more:
		case <-stop:
			return goesOn
		}
		for _, p := range l.takeAll() {
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

// laneWriter gathers what leaves in one write.
type laneWriter struct {
	conn  net.Conn
	admit func() bool
	out   []byte
	dead  bool // the connection cannot be written to any more
}

func (w *laneWriter) add(data []byte) {
	w.out = append(w.out, data...)
	if len(w.out) >= halfCapacity {
		w.flush()
	}
}

func (w *laneWriter) flush() {
	if len(w.out) > 0 && !w.dead && w.admit() {
		_, err := w.conn.Write(w.out)
		w.dead = err != nil
	}
	w.out = w.out[:0]
}

func (p *parcel) due() bool {
	return isClosed(p.until) && isClosed(p.thaw) && (p.at.IsZero() || !time.Now().Before(p.at))
}

// isClosed says whether c is closed or nil.
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

// await waits until p is due, false if stop was closed before.
func (p *parcel) await(stop <-chan struct{}) bool {
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
	if left <= 0 { // a timer of no time at all is not waited for: see golang/go#78156 in docs/bugs.md
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
