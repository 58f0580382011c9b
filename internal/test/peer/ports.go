package peer

// Ports for servers and links.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers and links listen on ports in this range, which is below that from which Linux takes the ports of outgoing
// connections.
const lowestPort, highestPort = 10000, 32000

// local returns the loopback address with a port.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// FreeAddr returns a loopback address at which nobody listens, and at which the test's servers may listen, end and
// listen again until the test ends.
func FreeAddr(t T) string {
	t.Helper()
	return local(freePorts(t, 1)[0])
}

// freePorts returns n ports at which nobody listens, and that it gives to nobody else until the test ends, in other
// processes either: the UDP port of the same number is the lock, which it holds.
func freePorts(t T, n int) []int {
	t.Helper()
	var ports []int
	var listen net.ListenConfig
	var err error
	for range 1000 {
		if len(ports) == n {
			return ports
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		lock, busy := listen.ListenPacket(context.Background(), "udp", local(port))
		if busy != nil {
			err = busy
			continue
		}
		if listensAt(port) {
			err = errors.Join(fmt.Errorf("port %d is in use", port), lock.Close())
			continue
		}
		t.Cleanup(func() { _ = lock.Close() })
		ports = append(ports, port)
	}
	t.Fatalf("peer: found no %d free ports between %d and %d: %v", n, lowestPort, highestPort, err)
	return nil
}

// listensAt reports whether a server listens at a port. It asks by a connection: if it listened there itself, a process
// that is just being started would have a copy of its listener for a moment, and keep the port.
func listensAt(port int) bool {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", local(port))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
