//go:build linux

package hostile_test

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// attackers is the attackers of one process. They stop when the process ends.
type attackers struct {
	addr, admin string
	seed        uint64
	started     uint64
	connections atomic.Int64 // that the server has accepted
	bytes       atomic.Int64 // sent
	begin       sync.Once
	begun       chan struct{} // closed when the server has accepted one
}

// start starts the attackers of one kind: each makes one attempt after the other.
func (g *attackers) start(a attack) {
	open := new(openConns)
	for range a.parallel {
		g.started++
		v := &attacker{process: g, conns: open, Rand: rand.New(rand.NewPCG(g.seed, g.started))}
		go func() {
			for {
				if !a.attempt(v) {
					pause(10 * time.Millisecond) // there is no connection to be had
				}
			}
		}()
	}
}

func pause(d time.Duration) {
	time.Sleep(d) // attackers have nothing to wait for
}

// attacker is one of them.
type attacker struct {
	*rand.Rand
	process *attackers
	conns   *openConns
}

// openConns is what attackers of one kind keep open. The oldest connection is given up when there are too many.
type openConns struct {
	mu    sync.Mutex // guards conns
	conns []*conn
}

// keep leaves a connection open without a reader while n others come.
func (v *attacker) keep(c *conn, n int) {
	var old *conn
	v.conns.mu.Lock()
	v.conns.conns = append(v.conns.conns, c)
	if len(v.conns.conns) > n {
		old = v.conns.conns[0]
		v.conns.conns = v.conns.conns[1:]
	}
	v.conns.mu.Unlock()
	if old != nil {
		old.abort()
	}
}

// conn is a connection of an attacker, frame by frame.
type conn struct {
	*net.TCPConn
	process *attackers
}

// from is the attackers' address. The client that behaves has another one: what one address may take, it takes from
// itself.
var from = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}

// dial connects, without a handshake. It returns nil if there is no connection to be had.
func (v *attacker) dial() *conn { return v.dialTo(v.process.addr) }

func (v *attacker) dialTo(addr string) *conn {
	dialer := net.Dialer{LocalAddr: from, Timeout: 5 * time.Second}
	nc, err := dialer.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return nil
	}
	v.process.connections.Add(1)
	v.process.begin.Do(func() { close(v.process.begun) })
	c := &conn{TCPConn: nc.(*net.TCPConn), process: v.process}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// open connects and opens a session. It returns nil if it gets none.
func (v *attacker) open() *conn {
	c := v.dial()
	if c == nil {
		return nil
	}
	if !c.send(handshake()) || !c.skip() {
		c.abort()
		return nil
	}
	return c
}

func handshake() []byte {
	req := &wire.ConnectRequest{Timeout: 40_000, Password: make([]byte, wire.PasswordLen)}
	return wire.EndFrame(req.Append(wire.BeginFrame(nil)), 0)
}

// send reports whether the server has taken all of b.
func (c *conn) send(b []byte) bool {
	n, err := c.Write(b)
	c.process.bytes.Add(int64(n))
	return err == nil
}

// skip reads one frame. It reports whether there was one.
func (c *conn) skip() bool {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:])))
	return err == nil
}

// header reads one frame and returns its header.
func (c *conn) header() (h wire.ReplyHeader, ok bool) {
	body, err := wire.ReadFrame(c, 1<<30, nil)
	if err != nil {
		return h, false
	}
	d := jute.NewDecoder(body)
	h.Decode(d)
	return h, d.Err() == nil
}

// abort resets the connection, so that the machine keeps nothing of it, its port included.
func (c *conn) abort() {
	_ = c.SetLinger(0)
	_ = c.Close()
}
