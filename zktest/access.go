package zktest

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Addr returns the address for clients: host:port, or a list of them if several servers are behind the link.
// It fits zk.Config.Servers, and does not change when the server restarts.
func (l *Link) Addr() string {
	addrs := make([]string, len(l.upstreams))
	for i, u := range l.upstreams {
		addrs[i] = u.listener.Addr().String()
	}
	return strings.Join(addrs, ",")
}

// Dial connects to an address of Addr on the link's network, in memory or not. It fits zk.Config.Dial.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return l.dial(ctx, network, address)
}

// ClientTLS returns the TLS configuration with which a client trusts the link. It is nil without the option TLS.
func (l *Link) ClientTLS() *tls.Config { return l.clientTLS.Clone() }

// Config returns the configuration of a client of this link with the given session timeout. The caller may change it.
func (l *Link) Config(timeout time.Duration) zk.Config {
	return zk.Config{Servers: l.Addr(), Timeout: timeout, TLS: l.ClientTLS(), Dial: l.Dial}
}

// Client returns a new client of this link with the given session timeout, and closes it when the test ends.
func (l *Link) Client(tb testing.TB, timeout time.Duration) *zk.Client {
	tb.Helper()
	c, err := zk.Open(tb.Context(), l.Config(timeout))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Logf("zktest: close the client: %v", err)
		}
	})
	return c
}

// Session returns a session of a new Client. It fails the test if the client gets no session before the test's context
// ends.
func (l *Link) Session(tb testing.TB, timeout time.Duration) *zk.Session {
	tb.Helper()
	s, err := l.Client(tb, timeout).Session(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
