package cli

// The dashboard of turnstile serve.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// boardTime is how long the end of a server waits for its dashboard.
const boardTime = time.Second

// board is the dashboard of a server: a client of it, on a listener of its own, that changes nothing.
type board struct {
	call   *dashboardCall
	listen net.Listener
}

// newBoard returns the dashboard that --dashboard asks for, nil if it asks for none.
func (s *serving) newBoard(ctx context.Context, cfg *server.Config) (*board, error) {
	if s.dashboard == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	b := &board{call: newDashboardCall(s.app)}
	b.call.Connection.Flags(pflag.NewFlagSet("", pflag.ContinueOnError))
	b.call.listen = s.dashboard
	_, _, splitErr := net.SplitHostPort(s.dashboard)
	var err error
	switch {
	case splitErr != nil:
		err = fmt.Errorf("--dashboard must be host:port, such as 127.0.0.1:8080: %q", s.dashboard)
	case !b.call.local():
		err = errors.New("--dashboard must be an address of this machine alone, such as 127.0.0.1:8080: " +
			"turnstile dashboard can ask for passwords, for others")
	case len(cfg.Listen)+len(cfg.Listeners) == 0:
		err = errors.New("--dashboard needs an address without TLS in --listen, such as unix:/run/turnstile.sock: " +
			"turnstile dashboard can use TLS")
	case cfg.RequireSASL:
		err = errors.New("--dashboard does not log in, as --require-sasl asks: use turnstile dashboard --sasl-user")
	case cfg.IdleExit > 0:
		err = errors.New("--dashboard has a session, so the server is never idle: leave --dashboard or --idle-exit out")
	}
	if err != nil {
		return nil, &command.Error{Code: command.ExitUsage, Err: err}
	}
	if b.listen, err = new(net.ListenConfig).Listen(ctx, "tcp", s.dashboard); err != nil {
		return nil, &command.Error{Code: command.ExitNoServer, Err: fmt.Errorf("--dashboard: %w", err)}
	}
	return b, nil
}

// close closes a dashboard that is not served.
func (b *board) close() {
	if b != nil {
		_ = b.listen.Close() // nothing was read from it
	}
}

// start serves the dashboard, if there is one, until ctx ends. It returns a channel that is closed once it has ended.
func (b *board) start(ctx context.Context, srv *server.Server, cfg *server.Config) <-chan struct{} {
	done := make(chan struct{})
	if b == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		if err := b.serve(ctx, srv, cfg); ctx.Err() == nil {
			cfg.Logger.Error("the dashboard has ended", "err", err)
		}
	}()
	return done
}

// serve serves the dashboard of a server, which has an address without TLS, until ctx ends.
func (b *board) serve(ctx context.Context, srv *server.Server, cfg *server.Config) error {
	defer b.close() // also if no client connects: then a browser is refused, and does not wait
	plain := 0
	if len(cfg.Listeners) == 0 {
		plain = len(cfg.TLSListeners) // which come before those of cfg.Listen
	}
	b.call.Connection.Servers = connectString(srv.Addrs()[plain])
	return b.call.Open(ctx, false, func(ctx context.Context, client *zk.Client) error {
		return b.call.serve(ctx, client, b.listen, func() error { return nil })
	})
}

// url is its address; empty if there is none.
func (b *board) url() string {
	if b == nil {
		return ""
	}
	return b.call.url(b.listen)
}
