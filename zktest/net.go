package zktest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Net is a network in memory: what listens on it can be dialed on it, by an address that is any text of the form host:port.
// Its connections behave as TCP's do: buffered, with deadlines, closed by halves. Nothing on it waits for anything but
// channels and timers, so that client and server run in one testing/synctest bubble, where a session of an hour expires at once.
//
// The zero Net is ready to use. All its methods may be called at any time from any goroutine.
// A Net that is used in a bubble must have been used nowhere before.
type Net struct {
	mu    sync.Mutex // guards the fields below
	roads map[string]*road
	base  faults // what an address starts with that nobody has named yet
	ports int    // ports handed out to dialers
	hosts int    // addresses handed out to listeners
}

// Listen announces address. If it is empty, Listen chooses one: 10.0.0.1:2181, then 10.0.0.2:2181 and so on.
// It fails if somebody listens there already.
func (n *Net) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	for address == "" {
		n.hosts++
		name := fmt.Sprintf("10.0.%d.%d:2181", n.hosts/256, n.hosts%256)
		if r := n.roads[name]; r == nil || !r.inUse() {
			address = name
		}
	}
	r := n.roadLocked(address)
	n.mu.Unlock()

	l := &listener{address: netAddr(address), road: r}
	if !r.announce(l) {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: l.address, Err: syscall.EADDRINUSE}
	}
	return l, nil
}

// Dial connects to address; the network's name is ignored. It fits zk.Config.Dial. Where nobody listens and where the way is cut it is
// refused at once; where the way is half-open it waits until it is healed or ctx ends.
func (n *Net) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.ports++
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1024 + n.ports%64000}
	n.mu.Unlock()
	return n.dial(ctx, from, address)
}

func (n *Net) dial(ctx context.Context, from net.Addr, address string) (net.Conn, error) {
	n.mu.Lock()
	r := n.roadLocked(address)
	n.mu.Unlock()
	c, err := r.dial(ctx, from)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Source: from, Addr: netAddr(address), Err: err}
	}
	return c, nil
}

// Cut breaks every connection to the addresses, and refuses new ones until Heal. Without an address it means all of them.
func (n *Net) Cut(addresses ...string) {
	n.change(addresses, func(f *faults) { f.cut = true })
}

// HalfOpen makes the way to the addresses dead while everybody believes in it: writes succeed and vanish, nothing arrives, not even
// the end of a connection. Without an address it means all of them.
func (n *Net) HalfOpen(addresses ...string) {
	n.change(addresses, func(f *faults) { f.dark = true })
}

// Delay makes every write to the addresses and from them arrive d later than it was made; opening a connection takes 2 × d.
// A d of 0 ends it. Without an address it means all of them.
func (n *Net) Delay(d time.Duration, addresses ...string) {
	n.change(addresses, func(f *faults) { f.delay = d })
}

// Heal undoes Cut, HalfOpen and Delay. A connection on which something vanished meanwhile is broken; the others go on.
// Without an address it means all of them.
func (n *Net) Heal(addresses ...string) {
	n.change(addresses, func(f *faults) { *f = faults{} })
}

func (n *Net) change(addresses []string, change func(*faults)) {
	n.mu.Lock()
	var roads []*road
	for _, a := range addresses {
		roads = append(roads, n.roadLocked(a))
	}
	if len(addresses) == 0 {
		change(&n.base)
		for _, r := range n.roads {
			roads = append(roads, r)
		}
	}
	n.mu.Unlock()
	for _, r := range roads {
		r.change(change)
	}
}

func (n *Net) roadLocked(address string) *road {
	r := n.roads[address]
	if r == nil {
		if n.roads == nil {
			n.roads = make(map[string]*road)
		}
		r = &road{faults: n.base, conns: make(map[*conn]*conn)}
		n.roads[address] = r
	}
	return r
}

// netAddr is the address of a listener on a Net.
type netAddr string

func (netAddr) Network() string  { return "tcp" }
func (a netAddr) String() string { return string(a) }
