package peer

// All links of a cluster, and their faults.

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Links are the proxied connections between the servers of a cluster, and those of clients that dial a server through
// an address of their own. The ends have numbers: servers from 0 as in Cluster, then clients as Client returns them.
//
// Every direction between two ends is open, delayed or frozen. A frozen direction forwards nothing and closes nothing:
// it holds what was sent, and the sender sees back-pressure. When it is open again it delivers everything in order,
// unless the receiver has closed its side. A dial waits until both directions are open. All other changes apply to all
// connections of the two ends.
//
// A change has taken effect when the method returns, but bytes that are being written at that moment may still arrive.
// The methods may be called from any goroutine.
type Links struct {
	t    T
	n    int             // servers
	ctx  context.Context //nolint:containedctx // ends when the links are closed
	stop context.CancelFunc
	wg   sync.WaitGroup
	held atomic.Int64 // see Held

	mu      sync.Mutex    // guards the fields below
	changed chan struct{} // closed and replaced at each change
	frozen  map[direction]bool
	delays  map[direction]time.Duration
	refused map[direction]bool // dials in this direction fail
	links   []*link
	targets []string // the servers' own addresses
	clients int
}

// A direction is one of the two directions between two ends.
type direction struct{ from, to int }

func (d direction) reverse() direction { return direction{d.to, d.from} }

func newLinks(t T, n int) *Links {
	l := &Links{
		t: t, n: n,
		changed: make(chan struct{}),
		frozen:  make(map[direction]bool),
		delays:  make(map[direction]time.Duration),
		refused: make(map[direction]bool),
		targets: make([]string, n),
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Client returns the number of a new client, which reaches server i at Addr(client, i). Several connections may share a
// number; changes then apply to all of them.
func (l *Links) Client() int {
	l.t.Helper()
	l.mu.Lock()
	client := l.n + l.clients
	l.clients++
	l.mu.Unlock()
	for i := range l.n {
		if _, err := l.add(&link{way: direction{client, i}, target: l.targets[i], client: true}); err != nil {
			l.t.Fatalf("peer: listen for client %d: %v", client, err)
		}
	}
	return client
}

// Addr returns the address, host and port, at which a client reaches server i.
func (l *Links) Addr(client, i int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		if k.client && k.way == (direction{client, i}) {
			return k.addr
		}
	}
	l.t.Fatalf("peer: unknown client %d or server %d", client, i)
	return ""
}

// ConnectString returns the addresses at which a client reaches the given servers, or all servers if none is given,
// separated by commas.
func (l *Links) ConnectString(client int, servers ...int) string {
	if len(servers) == 0 {
		for i := range l.n {
			servers = append(servers, i)
		}
	}
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, l.Addr(client, i))
	}
	return strings.Join(addrs, ",")
}

// Freeze stops forwarding from one end to another until Thaw or Heal.
func (l *Links) Freeze(from, to int) {
	l.change(func() { l.frozen[direction{from, to}] = true })
}

// Thaw opens one direction and delivers what it has held. It does not end a delay.
func (l *Links) Thaw(from, to int) {
	l.change(func() { delete(l.frozen, direction{from, to}) })
}

// Delay forwards everything from one end to another with a delay of d. Zero ends the delay.
func (l *Links) Delay(from, to int, d time.Duration) {
	l.change(func() { l.delays[direction{from, to}] = d })
}

// CutOff freezes both directions between server i and every other server. Clients still reach all servers.
func (l *Links) CutOff(i int) {
	l.change(func() {
		for j := range l.n {
			if j != i {
				l.frozen[direction{i, j}], l.frozen[direction{j, i}] = true, true
			}
		}
	})
}

// Hangup ends the connections between two ends, but only end at notices: it sees a reset at once, and its new dials
// fail. For the other end the connections are open and silent, and its new dials hang.
func (l *Links) Hangup(at, other int) {
	l.change(func() { l.hangupLocked(at, other) })
}

// Zombie leaves server i alone with its clients: it calls Hangup for every other server, and server i does not notice.
func (l *Links) Zombie(i int) {
	l.change(func() {
		for j := range l.n {
			if j != i {
				l.hangupLocked(j, i)
			}
		}
	})
}

func (l *Links) hangupLocked(at, other int) {
	l.frozen[direction{at, other}], l.frozen[direction{other, at}] = true, true
	l.refused[direction{at, other}] = true
	for _, k := range l.links {
		if k.way == (direction{at, other}) {
			k.closeLocked()
		}
		for c := range k.conns {
			c.hangupLocked(at, other)
		}
	}
}

// Heal opens all directions, without delay, delivers what they have held, and stops refusing dials.
func (l *Links) Heal() {
	l.t.Helper()
	l.change(func() {
		clear(l.frozen)
		clear(l.delays)
		clear(l.refused)
		for _, k := range l.links {
			if err := k.openLocked(l); err != nil {
				l.t.Fatalf("peer: listen again for %d: %v", k.way.from, err)
			}
		}
	})
}

// Held returns how often something that an end sent, or a dial, has had to wait so far because its direction was frozen
// or delayed. It shows whether a fault has had an effect.
func (l *Links) Held() int64 { return l.held.Load() }

// change makes a change and wakes the goroutines that wait for one.
func (l *Links) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// await returns when all the directions are open. It returns false if end or the links are closed first.
func (l *Links) await(end <-chan struct{}, all ...direction) bool {
	for first := true; ; first = false {
		l.mu.Lock()
		frozen, changed := l.frozenLocked(all...), l.changed
		l.mu.Unlock()
		if !frozen {
			return true
		}
		if first {
			l.held.Add(1)
		}
		select {
		case <-changed:
		case <-end:
			return false
		case <-l.ctx.Done():
			return false
		}
	}
}

func (l *Links) frozenLocked(all ...direction) bool {
	for _, d := range all {
		if l.frozen[d] {
			return true
		}
	}
	return false
}

func (l *Links) delay(d direction) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delays[d]
}

// add opens a link and returns its address.
func (l *Links) add(k *link) (string, error) {
	k.addr, k.conns = FreeAddr(l.t), make(map[*connection]bool)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := k.openLocked(l); err != nil {
		return "", err
	}
	l.links = append(l.links, k)
	return k.addr, nil
}

// between adds a link from one server to a port of another and returns its address.
func (l *Links) between(from, to int, target string, election bool) (string, error) {
	return l.add(&link{way: direction{from, to}, target: target, election: election})
}

// electionAddr returns the address of the link from server from to the election port of server to.
func (l *Links) electionAddr(from, to int) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		if k.election && k.way == (direction{from, to}) {
			return k.addr, nil
		}
	}
	return "", fmt.Errorf("no election link from %d to %d", from, to)
}

// close ends all connections and waits for all goroutines.
func (l *Links) close() {
	l.stop()
	l.mu.Lock()
	for _, k := range l.links {
		k.closeLocked()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// reset closes a connection so that its other end sees an error, not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it fails only if the connection is already closed
	}
	_ = c.Close()
}
