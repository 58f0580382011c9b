package peer

// One direction of a connection.

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	chunkSize  = 16 << 10
	heldChunks = 1 << 10 // the sender sees back-pressure when a pump holds this many
)

// A pump forwards one direction of a connection. One goroutine reads and one writes.
type pump struct {
	links *Links
	way   direction
	src   net.Conn
	first func(p *pump) ([]byte, error) // reads, and perhaps changes, the beginning of the connection; may be nil

	held    chan chunk
	ended   chan struct{} // closed when src has ended
	stopped chan struct{} // closed when write has returned
	once    sync.Once     // for closing stopped
}

// A chunk is bytes on their way, or the end of the stream.
type chunk struct {
	bytes []byte
	due   time.Time
	err   error // why src has ended; nil for bytes
}

func newPump(l *Links, way direction, src net.Conn) *pump {
	return &pump{
		links: l, way: way, src: src,
		held: make(chan chunk, heldChunks), ended: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// read holds what src sends, until src ends.
func (p *pump) read() {
	defer close(p.ended)
	if p.first != nil {
		b, err := p.first(p)
		if !p.hold(b, err) {
			return
		}
	}
	buf := make([]byte, chunkSize)
	for {
		n, err := p.src.Read(buf)
		if !p.hold(append([]byte(nil), buf[:n]...), err) {
			return
		}
	}
}

// hold queues bytes, and the end if err is not nil. It returns false if read must stop.
func (p *pump) hold(b []byte, err error) bool {
	due := time.Now().Add(p.links.delay(p.way))
	for _, c := range []chunk{{bytes: b, due: due}, {err: err, due: due}} {
		if len(c.bytes) == 0 && c.err == nil {
			continue
		}
		select {
		case p.held <- c:
		case <-p.stopped:
			return false
		case <-p.links.ctx.Done():
			return false
		}
	}
	return err == nil
}

// write forwards each held chunk when it is due and the direction is open. It returns after the end, or when a write to
// dst fails.
func (p *pump) write(dst net.Conn) {
	defer p.stop()
	for {
		var c chunk
		select {
		case c = <-p.held:
		case <-p.links.ctx.Done():
			return
		}
		if !p.wait(c.due) || !p.links.await(nil, p.way) {
			return
		}
		if c.err != nil {
			end(dst, c.err)
			return
		}
		if _, err := dst.Write(c.bytes); err != nil {
			// Dst has ended. Its end travels in the other direction, which may be frozen.
			if p.links.await(nil, p.way.reverse()) {
				reset(p.src)
			}
			return
		}
	}
}

func (p *pump) stop() { p.once.Do(func() { close(p.stopped) }) }

// wait waits until due. It returns false if the links are closed first.
func (p *pump) wait(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	p.links.held.Add(1)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.links.ctx.Done():
		return false
	}
}

// end ends dst in the way that err says: orderly or by a reset.
func end(dst net.Conn, err error) {
	tcp, ok := dst.(*net.TCPConn)
	if !ok || !errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		reset(dst)
		return
	}
	_ = tcp.CloseWrite() // it fails only if the connection is already closed
}
