package zk

// The configuration, its checks and its defaults.

import (
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

// Config says how to reach an ensemble, and as whom. The zero value of every field but Servers is a good default.
type Config struct {
	// Servers is a comma-separated list with an optional chroot: "zk1:2181,zk2:2181/app", "[::1]:2181",
	// "unix:/run/zk.sock". The default port is 2181. The chroot of a list that ends with a unix socket, and one that
	// has a comma, stands after an exclamation mark: "unix:/run/zk.sock!/app". Names are looked up at every attempt; a
	// name that does not resolve is a server that is down.
	Servers string
	// Timeout is the session timeout to ask for; 10s if zero. The server decides: see Session.Timeout.
	Timeout time.Duration
	// Margin is how long before the server could end a session it ends here, and what it owns; a quarter of the negotiated timeout if
	// zero. It must be larger than the pauses of this process and of a leader, and what their clocks drift apart. With certificates, more
	// than a quarter is refused.
	Margin time.Duration
	// NoCertificates keeps sessions that own something from proving by a write, every eighth of their timeout, that a quorum still knows
	// them (Session.Certain). Certainty then counts from any answer. When servers are cut off from each other, two may hold a lock for
	// several seconds: docs/partitions.md has figures. A single server gives the same certainty without.
	NoCertificates bool
	// TLS switches TLS on; nil is plain. ServerName is set for each host when empty. Unix sockets are always plain.
	TLS *tls.Config
	// Auth is sent on every connection before anything else.
	Auth []Auth
	// SASL authenticates every connection with DIGEST-MD5; nil does not.
	SASL *SASL
	// ReadOnly accepts servers that have lost their ensemble and serve reads only.
	ReadOnly bool
	// MaxFrame limits what a server may send at once, in bytes; 4 MiB if zero. A request whose answer is larger fails with
	// ErrAnswerTooLarge: the list of a node with some 100,000 children, say.
	MaxFrame int
	// Logger gets connects, disconnects and session changes, and a warning when no server can be reached, for which
	// all calls wait until their contexts end; silent if nil.
	Logger *slog.Logger
	Hooks  Hooks
	// Dial opens connections; nil is a net.Dialer. The address is host:port, not looked up yet, or the path of a unix socket.
	// It must return when ctx ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	_ struct{}
}

// SASL is a user of the DIGEST-MD5 mechanism.
type SASL struct{ User, Password string }

// settings is a Config that was checked and has its defaults filled in.
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
		return settings{}, fmt.Errorf("zk: session timeout %v is out of range", cfg.Timeout)
	case cfg.Margin < 0 || cfg.Margin >= cfg.Timeout:
		return settings{}, fmt.Errorf("zk: margin %v must be less than the session timeout %v", cfg.Margin, cfg.Timeout)
	case !cfg.NoCertificates && cfg.Margin > cfg.Timeout/4:
		return settings{}, fmt.Errorf("zk: margin %v must be at most a quarter of the session timeout %v, or NoCertificates set", cfg.Margin, cfg.Timeout)
	case cfg.MaxFrame < 1024 || cfg.MaxFrame > math.MaxInt32:
		return settings{}, fmt.Errorf("zk: frame limit %d is out of range", cfg.MaxFrame)
	case cfg.SASL != nil && cfg.SASL.User == "":
		return settings{}, errors.New("zk: SASL needs a user")
	}
	for _, a := range cfg.Auth {
		if a.Scheme == "" {
			return settings{}, errors.New("zk: an auth entry has no scheme")
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = dialNet
	}
	cfg.Auth = slices.Clone(cfg.Auth)
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	return settings{Config: cfg, servers: servers, root: root}, nil
}
