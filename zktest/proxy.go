package zktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Proxy puts a Link before servers that run elsewhere, such as an Apache ZooKeeper, until the test ends. Servers is a list of
// host:port as in a connect string, without a chroot; Addr is then a list of the same length, and the faults are for all of them.
// The servers must speak plain; of the options, On and TLS may be given.
func Proxy(tb testing.TB, servers string, opts ...Option) *Link {
	tb.Helper()
	o, err := newOptions(opts)
	if err == nil && o.forServer != "" {
		err = fmt.Errorf("zktest: %s is an option of Run, not of Proxy", o.forServer)
	}
	if err != nil {
		tb.Fatal(err)
	}
	l := &Link{tls: o.serverTLS, clientTLS: o.clientTLS, dial: o.dial(), fail: tb.Errorf}
	tb.Cleanup(l.stop)
	for address := range strings.SplitSeq(servers, ",") {
		listener, err := o.listen()
		if err != nil {
			tb.Fatal(err)
		}
		l.fronts = append(l.fronts, front{listener, func(ctx context.Context, _ net.Addr) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}})
	}
	l.start()
	return l
}
