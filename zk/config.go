package zk

// The configuration, its checks and its defaults.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultMaxFrame = 4 << 20
)

// Config says how to reach an ensemble, and with which credentials. Servers is required; the zero value of every other
// field selects a default.
type Config struct {
	// Servers is a comma-separated list with an optional chroot: "zk1:2181,zk2:2181/app", "[::1]:2181",
	// "unix:/run/zk.sock". The default port is 2181. An exclamation mark precedes the chroot if the list ends with a
	// unix socket or the chroot has a comma: "unix:/run/zk.sock!/app". Names are looked up at every attempt; a name
	// that does not resolve counts as a server that is down.
	Servers string
	// Timeout is the session timeout to request; 10s if zero. The server decides: see Session.Timeout.
	Timeout time.Duration
	// Margin is how long before the server could end a session the session and what it owns end here; a quarter of
	// the negotiated timeout if zero. It must exceed the pauses of this process and of a leader plus the drift
	// between their clocks. With certificates it must not exceed a quarter of the timeout.
	Margin time.Duration
	// NoCertificates turns off the writes by which a session that owns something proves, every eighth of its timeout,
	// that a quorum still knows it (Session.Certain). Certainty then counts from any reply, and while servers are cut
	// off from each other two clients may hold a lock for several seconds: docs/partitions.md has figures. A single
	// server needs no certificates.
	NoCertificates bool
	// TLS enables TLS if not nil. An empty ServerName is set to each server's host. Unix sockets never use TLS.
	TLS *tls.Config
	// Auth lists the credentials to send on every connection before any request.
	Auth []Auth
	// SASL authenticates every connection if not nil: by DigestMD5{User: …, Password: …}, or by another mechanism.
	SASL SASL
	// ReadOnly accepts servers that have lost their ensemble and only serve reads.
	ReadOnly bool
	// MaxFrame limits the size of a reply in bytes; 4 MiB if zero. A request with a larger reply, such as a list of
	// 100,000 children, fails with ErrReplyTooLarge.
	MaxFrame int
	// Logger receives connects, disconnects, session changes, and warnings: when no server can be reached, and from
	// recipes. Nil discards them. Without a server, calls wait until their contexts end.
	Logger *slog.Logger
	Hooks  Hooks
	// Dial opens connections; nil selects a net.Dialer. The address is a host:port, with the host not looked up yet,
	// or the path of a unix socket. Dial must return when ctx ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	_ struct{}
}

// settings is a valid Config with its defaults filled in.
type settings struct {
	Config
	servers []server
	root    chroot
}

func (cfg Config) withDefaults() (settings, error) {
	servers, root, err := parseServers(cfg.Servers)
	if err != nil {
		return settings{}, err
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.MaxFrame = cmp.Or(cfg.MaxFrame, defaultMaxFrame)
	switch {
	case cfg.Timeout < time.Millisecond || cfg.Timeout.Milliseconds() > math.MaxInt32:
		return settings{}, fmt.Errorf("zk: session timeout must be from 1ms to %dms: %v", math.MaxInt32, cfg.Timeout)
	case cfg.Margin < 0 || cfg.Margin >= cfg.Timeout:
		const text = "zk: margin must be from 0 to less than the session timeout %v: %v"
		return settings{}, fmt.Errorf(text, cfg.Timeout, cfg.Margin)
	case !cfg.NoCertificates && cfg.Margin > cfg.Timeout/4:
		return settings{}, fmt.Errorf("zk: margin must be at most a quarter of the session timeout %v, "+
			"unless NoCertificates is set: %v", cfg.Timeout, cfg.Margin)
	case cfg.MaxFrame < 1024 || cfg.MaxFrame > math.MaxInt32:
		return settings{}, fmt.Errorf("zk: frame limit must be from 1024 to %d bytes: %d", math.MaxInt32, cfg.MaxFrame)
	case lacksUser(cfg.SASL):
		return settings{}, errors.New("zk: SASL user must not be empty")
	}
	for _, a := range cfg.Auth {
		if err := a.validate(); err != nil {
			return settings{}, fmt.Errorf("zk: auth: %w", err)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = dialNet
	}
	cfg.Auth = slices.Clone(cfg.Auth)
	for i := range cfg.Auth {
		cfg.Auth[i].Data = bytes.Clone(cfg.Auth[i].Data)
	}
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	return settings{Config: cfg, servers: servers, root: root}, nil
}

func lacksUser(mechanism SASL) bool {
	d, ok := mechanism.(DigestMD5)
	return ok && d.User == ""
}
