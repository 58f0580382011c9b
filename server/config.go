package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Config says where a server listens, where it keeps its state and what it allows. Zero fields mean the default, which is
// ZooKeeper's unless said otherwise.
type Config struct {
	Listen    []string       // plain: "host:port", "unix:/path"; "127.0.0.1:2181" if there is no listener at all
	TLSListen []string       // as Listen, with TLS
	Listeners []net.Listener // more of them, ready-made; the server closes them
	TLS       *tls.Config    // for TLSListen. A client certificate that it verifies becomes an identity of the scheme x509

	Data     string // the directory of the state; one server at a time. Required unless InMemory
	InMemory bool   // keep nothing

	TickTime          time.Duration // the unit of session timeouts, 2s; expiry is at most one tick late
	MinSessionTimeout time.Duration // 2 ticks
	MaxSessionTimeout time.Duration // 20 ticks
	HandshakeTimeout  time.Duration // how long a connection may take to ask for its session, 10s
	MaxClientConns    int           // connections per client address, half of Limits.Conns
	MaxFrame          int           // limit of a request's frame in bytes, 1048575; jute.maxbuffer
	Limits            Limits

	SuperDigest   string            // "super:base64(sha1(super:password))": whoever adds that identity may do everything
	X509SuperUser string            // subject of a client certificate that may do everything
	SASLUsers     map[string]string // user to password, for DIGEST-MD5; SASL is off if empty
	SASLSupers    []string          // users who may do everything
	RequireSASL   bool              // refuse everything to connections that have not authenticated by SASL; without SASLUsers, to all

	AllowFailedSASL bool     // a connection whose authentication by SASL fails goes on without, unless RequireSASL
	EnsembleAuth    bool     // clients may say, with the scheme ensemble, whom they mean; the wrong name ends the connection
	EnsembleNames   []string // the right names; any name is right if there are none

	SkipACL      bool // everybody may do everything
	EnforceQuota bool // hard quotas refuse writes

	ExtendedTypes     bool          // allow TTL nodes
	ContainerInterval time.Duration // how often empty containers and expired TTL nodes are collected, 60s
	ContainerRate     int           // how many are collected per minute at most, 10000
	ContainerUnused   time.Duration // collect containers that never had a child after this time; never if 0

	FourLetterWords []string      // the words that are answered, "*" for all; "srvr" if nil
	AdminListen     string        // address of the HTTP commands, off if empty
	AdminPath       string        // "/commands"
	IdleExit        time.Duration // stop after this time without any session; never if 0

	Logger *slog.Logger // silent if nil
	_      struct{}
}

// withDefaults is the only place that reads raw fields.
func (c Config) withDefaults() (Config, error) {
	if len(c.Listen)+len(c.TLSListen)+len(c.Listeners) == 0 {
		c.Listen = []string{"127.0.0.1:2181"}
	}
	c.TickTime = orDuration(c.TickTime, 2*time.Second)
	c.MinSessionTimeout = orDuration(c.MinSessionTimeout, 2*c.TickTime)
	c.MaxSessionTimeout = orDuration(c.MaxSessionTimeout, 20*c.TickTime)
	c.HandshakeTimeout = orDuration(c.HandshakeTimeout, 10*time.Second)
	c.ContainerInterval = orDuration(c.ContainerInterval, time.Minute)
	if c.ContainerRate == 0 {
		c.ContainerRate = 10_000
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = wire.DefaultMaxFrame
	}
	c.Limits = c.Limits.withDefaults(c.MaxFrame)
	if c.MaxClientConns == 0 {
		c.MaxClientConns = half(c.Limits.Conns)
	}
	if c.FourLetterWords == nil {
		c.FourLetterWords = []string{"srvr"}
	}
	if c.AdminPath == "" {
		c.AdminPath = "/commands"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

func (c *Config) check() error {
	var errs []error
	if c.InMemory == (c.Data != "") {
		errs = append(errs, errors.New("server: choose a data directory or in-memory, one of them"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"TickTime", c.TickTime},
		{"MinSessionTimeout", c.MinSessionTimeout},
		{"MaxSessionTimeout", c.MaxSessionTimeout},
		{"HandshakeTimeout", c.HandshakeTimeout},
		{"ContainerInterval", c.ContainerInterval},
	} {
		if d.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("server: %s is %v, want at least 1ms", d.name, d.value))
		}
	}
	if c.MinSessionTimeout > c.MaxSessionTimeout {
		errs = append(errs, fmt.Errorf("server: MinSessionTimeout %v is above MaxSessionTimeout %v", c.MinSessionTimeout, c.MaxSessionTimeout))
	}
	if c.MaxSessionTimeout.Milliseconds() > 1<<31-1 {
		errs = append(errs, fmt.Errorf("server: MaxSessionTimeout %v does not fit into the protocol, want at most %v", c.MaxSessionTimeout, (1<<31-1)*time.Millisecond))
	}
	if c.MaxFrame < minFrame || c.MaxFrame > 1<<30 {
		errs = append(errs, fmt.Errorf("server: MaxFrame is %d, want %d to %d", c.MaxFrame, minFrame, 1<<30))
	}
	if c.MaxClientConns < Unlimited || c.ContainerRate < 0 || c.IdleExit < 0 || c.ContainerUnused < 0 {
		errs = append(errs, errors.New("server: ContainerRate, ContainerUnused and IdleExit must not be negative, MaxClientConns no less than Unlimited"))
	}
	errs = append(errs, c.Limits.check(c.MaxFrame))
	if len(c.TLSListen) > 0 && c.TLS == nil {
		errs = append(errs, errors.New("server: TLSListen needs TLS, with a certificate"))
	}
	return errors.Join(errs...)
}

// minFrame is the size of a handshake's frame: with less nobody could connect.
const minFrame = 45

func orDuration(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// schemes returns the schemes that ACLs may name beside those that are always there.
func (c *Config) schemes() []string {
	var s []string
	if len(c.SASLUsers) > 0 {
		s = append(s, "sasl")
	}
	if c.TLS != nil {
		s = append(s, "x509")
	}
	return slices.Clip(s)
}
