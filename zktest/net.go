package zktest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Net is an in-memory network. Its addresses are any text of the form host:port, and its connections behave like TCP's:
// buffered, with deadlines, and with CloseWrite. Goroutines wait on it only for channels and timers, so client and
// server can share a testing/synctest bubble.
//
// The zero Net is ready to use, and all its methods may be called at any time from any goroutine. A Net that is used in
// a bubble must not have been used outside it.
type Net struct {
	mu        sync.Mutex // guards the fields below
	endpoints map[string]*endpoint
	base      faults // of addresses that are not in endpoints yet
	ports     int    // ports given to dialers
	hosts     int    // addresses given to listeners
}

// Listen announces address. If address is empty, Listen chooses one: 10.0.0.1:2181, then 10.0.0.2:2181 and so on.
// It fails with EADDRINUSE if the address already has a listener.
func (n *Net) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	for address == "" {
		n.hosts++
		name := fmt.Sprintf("10.0.%d.%d:2181", n.hosts/256, n.hosts%256)
		if e := n.endpoints[name]; e == nil || !e.inUse() {
			address = name
		}
	}
	e := n.endpointLocked(address)
	n.mu.Unlock()

	l := &listener{address: netAddr(address), endpoint: e}
	if !e.setListener(l) {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: l.address, Err: syscall.EADDRINUSE}
	}
	return l, nil
}

// Dial connects to address and ignores the network's name; it fits zk.Config.Dial. An address without a listener, or
// one that is cut, refuses at once. Dial to a half-open address waits until the address heals or ctx ends.
func (n *Net) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.ports++
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1024 + n.ports%64000}
	n.mu.Unlock()
	return n.dial(ctx, from, address)
}

func (n *Net) dial(ctx context.Context, from net.Addr, address string) (net.Conn, error) {
	n.mu.Lock()
	e := n.endpointLocked(address)
	n.mu.Unlock()
	c, err := e.dial(ctx, from)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Source: from, Addr: netAddr(address), Err: err}
	}
	return c, nil
}

// Cut breaks every connection to the addresses, and refuses new ones until Heal. Without an address it cuts all of
// them.
func (n *Net) Cut(addresses ...string) {
	n.change(addresses, func(f *faults) { f.cut = true })
}

// HalfOpen makes writes to and from the addresses succeed and vanish: nothing arrives, not even the end of a
// connection, and neither side notices. Without an address it affects all of them.
func (n *Net) HalfOpen(addresses ...string) {
	n.change(addresses, func(f *faults) { f.halfOpen = true })
}

// Delay makes every write to and from the addresses arrive d later; opening a connection takes 2 × d. A d of 0 ends the
// delay. Without an address it affects all of them.
func (n *Net) Delay(d time.Duration, addresses ...string) {
	n.change(addresses, func(f *faults) { f.delay = d })
}

// Heal undoes Cut, HalfOpen and Delay. A connection that has lost bytes is broken; the others continue.
// Without an address it heals all of them.
func (n *Net) Heal(addresses ...string) {
	n.change(addresses, func(f *faults) { *f = faults{} })
}

func (n *Net) change(addresses []string, change func(*faults)) {
	n.mu.Lock()
	var endpoints []*endpoint
	for _, a := range addresses {
		endpoints = append(endpoints, n.endpointLocked(a))
	}
	if len(addresses) == 0 {
		change(&n.base)
		for _, e := range n.endpoints {
			endpoints = append(endpoints, e)
		}
	}
	n.mu.Unlock()
	for _, e := range endpoints {
		e.change(change)
	}
}

func (n *Net) endpointLocked(address string) *endpoint {
	e := n.endpoints[address]
	if e == nil {
		if n.endpoints == nil {
			n.endpoints = make(map[string]*endpoint)
		}
		e = &endpoint{faults: n.base, conns: make(map[*conn]*conn)}
		n.endpoints[address] = e
	}
	return e
}

// netAddr is an address of a Net.
type netAddr string

func (netAddr) Network() string  { return "tcp" }
func (a netAddr) String() string { return string(a) }
