package zktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

// Option is an option of Run, Start and Proxy.
type Option func(*options)

type options struct {
	net       *Net
	address   string
	forServer string // the last option given that Proxy does not take
	durable   bool
	config    []func(*server.Config)
	serverTLS *tls.Config
	clientTLS *tls.Config
	errs      []error
}

func newOptions(opts []Option) (*options, error) {
	o := new(options)
	for _, opt := range opts {
		opt(o)
	}
	return o, errors.Join(o.errs...)
}

// On makes the server listen on an in-memory network, which works in a synctest bubble, instead of a socket.
func On(n *Net) Option {
	return func(o *options) { o.net = n }
}

// At makes the server listen on the given address, host:port, instead of a free one.
func At(address string) Option {
	return func(o *options) { o.address = address }
}

// Durable makes the server keep its state on disk, in a temporary directory of the test, so that it survives Restart.
func Durable() Option {
	return func(o *options) { o.durable, o.forServer = true, "Durable" }
}

// SessionTimeouts sets the shortest and the longest session timeout that the server grants: 100 ms and 10 minutes by
// default.
func SessionTimeouts(shortest, longest time.Duration) Option {
	return With(func(c *server.Config) { c.MinSessionTimeout, c.MaxSessionTimeout = shortest, longest })
}

// Tick sets the server's tick, 50 ms by default. A session expires at most one tick after its timeout.
func Tick(d time.Duration) Option {
	return With(func(c *server.Config) { c.TickTime = d })
}

// With changes the server's configuration before it starts. Run sets the listeners and the data directory itself.
func With(change func(*server.Config)) Option {
	return func(o *options) { o.config, o.forServer = append(o.config, change), "With" }
}

// TLS makes the Link require TLS from clients, with a new certificate that Config and ClientTLS trust. The Link ends
// the TLS, so that faults work as without it; the server behind it sees no client certificates.
func TLS() Option {
	return func(o *options) {
		var err error
		if o.serverTLS, o.clientTLS, err = selfSigned(); err != nil {
			o.errs = append(o.errs, err)
		}
	}
}

// listen opens the listener for clients.
func (o *options) listen() (net.Listener, error) {
	if o.net != nil {
		return o.net.Listen(o.address)
	}
	address := o.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	return lc.Listen(context.Background(), "tcp", address)
}

// dial returns the function with which clients reach the listener.
func (o *options) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.net != nil {
		return o.net.Dial
	}
	return new(net.Dialer).DialContext
}
