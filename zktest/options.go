package zktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

// Option changes how Run starts a server.
type Option func(*options)

type options struct {
	net       *Net
	address   string
	forServer string // an option that makes sense for a server of our own only
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

// On makes the server listen on a network in memory, which works in a synctest bubble, in place of a socket.
func On(n *Net) Option {
	return func(o *options) { o.net = n }
}

// At makes the server listen on the given address, host:port, in place of one that is free.
func At(address string) Option {
	return func(o *options) { o.address = address }
}

// Durable makes the server keep its state on disk, in a directory of the test, so that Restart finds it again.
func Durable() Option {
	return func(o *options) { o.durable, o.forServer = true, "Durable" }
}

// SessionTimeouts sets the limits between which session timeouts are granted. Without it they are 100 ms and 10 minutes.
func SessionTimeouts(shortest, longest time.Duration) Option {
	return With(func(c *server.Config) { c.MinSessionTimeout, c.MaxSessionTimeout = shortest, longest })
}

// Tick sets the server's tick, which is how much later than at its timeout a session may expire. Without it, it is 50 ms.
func Tick(d time.Duration) Option {
	return With(func(c *server.Config) { c.TickTime = d })
}

// With changes the server's configuration before it starts. The fields for listeners and for the place of the data are Run's.
func With(change func(*server.Config)) Option {
	return func(o *options) { o.config, o.forServer = append(o.config, change), "With" }
}

// TLS makes clients speak TLS, with a certificate for the server's address that is made on the spot: Config and ClientTLS
// hold what a client needs to trust it. It is the Link that speaks TLS, so that faults work as without it; the server behind it
// does not see client certificates.
func TLS() Option {
	return func(o *options) {
		var err error
		if o.serverTLS, o.clientTLS, err = selfSigned(); err != nil {
			o.errs = append(o.errs, err)
		}
	}
}

// listen opens what clients connect to.
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

// dial returns how clients get to what listen has opened.
func (o *options) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.net != nil {
		return o.net.Dial
	}
	return new(net.Dialer).DialContext
}
