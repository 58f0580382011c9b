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

// Addr returns where clients connect to: host:port, or a list of them if the link has several servers behind it.
// It fits zk.Config.Servers, and stays the same when the server restarts.
func (l *Link) Addr() string {
	addrs := make([]string, len(l.fronts))
	for i, f := range l.fronts {
		addrs[i] = f.listener.Addr().String()
	}
	return strings.Join(addrs, ",")
}

// Dial connects to an address of Addr, on the network on which the link listens. It fits zk.Config.Dial.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return l.dial(ctx, network, address)
}

// ClientTLS returns what a client needs to trust the link, nil without the option TLS.
func (l *Link) ClientTLS() *tls.Config { return l.clientTLS.Clone() }

// Config returns the configuration of a client of this link that asks for the given session timeout. More can be set in it.
func (l *Link) Config(timeout time.Duration) zk.Config {
	return zk.Config{Servers: l.Addr(), Timeout: timeout, TLS: l.ClientTLS(), Dial: l.Dial}
}

// Client returns a new client of this link that asks for the given session timeout. It is closed when the test ends.
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

// Session returns a session of a new client, as Client makes it. It fails the test if there is none before the test's context ends.
func (l *Link) Session(tb testing.TB, timeout time.Duration) *zk.Session {
	tb.Helper()
	s, err := l.Client(tb, timeout).Session(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
