package zktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Proxy puts a Link in front of servers that run elsewhere, such as an Apache ZooKeeper ensemble, until the test ends.
// Servers is a list of host:port as in a connect string, without a chroot and without TLS. Addr is then a list of the
// same length, and faults apply to all of them. Proxy accepts the options On and TLS.
func Proxy(tb testing.TB, servers string, opts ...Option) *Link {
	tb.Helper()
	o, err := newOptions(opts)
	if err == nil && o.forServer != "" {
		err = fmt.Errorf("zktest: option %s is not for Proxy, only for Run and Start", o.forServer)
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
		l.upstreams = append(l.upstreams, upstream{listener, func(ctx context.Context, _ net.Addr) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}})
	}
	l.start()
	return l
}
