package server

// The configuration, its defaults and checks.

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Config configures a server. Zero fields mean the default, which is ZooKeeper's unless stated otherwise.
type Config struct {
	Listen    []string       // without TLS: "host:port" or "unix:/path"; "127.0.0.1:2181" if no listener is given
	TLSListen []string       // like Listen, with TLS
	Listeners []net.Listener // further listeners, which the server closes

	TLSListeners []net.Listener // like Listeners, with TLS
	TLS          *tls.Config    // of both; a client's verified certificate becomes an identity of the scheme x509

	Data     string // the data directory, for one server at a time; required unless InMemory
	InMemory bool   // keep no state on disk

	TickTime          time.Duration // the unit of session timeouts, 2s; expiry is at most one tick late
	MinSessionTimeout time.Duration // 2 ticks
	MaxSessionTimeout time.Duration // 20 ticks
	HandshakeTimeout  time.Duration // for the handshake, and for the login with RequireSASL, 10s
	MaxClientConns    int           // connections per client address; half of Limits.Conns
	MaxFrame          int           // bytes of a request's frame, 1048575; ZooKeeper's jute.maxbuffer
	Limits            Limits

	SuperDigest   string            // digest identity of the superuser: "super:base64(sha1(super:password))"
	X509SuperUser string            // certificate subject of the superuser
	SASLUsers     map[string]string // passwords by user, for DIGEST-MD5; SASL is off if empty
	SASLSupers    []string          // users that are superusers
	RequireSASL   bool              // serve only connections that have authenticated by SASL; none without SASLUsers

	AllowFailedSASL bool     // keep connections whose SASL authentication fails, unless RequireSASL
	EnsembleAuth    bool     // accept the scheme ensemble, by which clients name theirs; a wrong name closes
	EnsembleNames   []string // the accepted names; all if empty

	SkipACL      bool // do not check access lists
	EnforceQuota bool // refuse writes above hard quotas

	ExtendedTypes     bool          // allow TTL nodes
	ContainerInterval time.Duration // how often to delete empty containers and expired TTL nodes, 60s
	ContainerRate     int           // how many of them to delete per minute at most, 10000
	ContainerUnused   time.Duration // age at which to delete containers that never had a child; never if 0

	FourLetterWords  []string      // the four-letter words to answer besides srvr, "*" for all
	AdminListen      string        // address of the HTTP commands; off if empty; their connections count as others do
	AdminPath        string        // URL path of the HTTP commands, "/commands"
	MetricsListen    string        // address of /metrics, /livez and /readyz; off if empty; AdminListen has them, too
	MetricsTLSListen string        // like MetricsListen, with TLS
	MetricsTLS       *tls.Config   // for MetricsTLSListen
	NextMetrics      bool          // names as after ZooKeeper 3.9: counters end in _total, quantile 0.95 instead of 0.9
	IdleExit         time.Duration // stop after this time without a session; never if 0

	Logger *slog.Logger // silent if nil

	_ struct{}
}

// withDefaults fills in defaults and checks the result.
func (c Config) withDefaults() (Config, error) {
	if len(c.Listen)+len(c.TLSListen)+len(c.Listeners)+len(c.TLSListeners) == 0 {
		c.Listen = []string{"127.0.0.1:2181"}
	}
	c.TickTime = cmp.Or(c.TickTime, 2*time.Second)
	c.MinSessionTimeout = cmp.Or(c.MinSessionTimeout, 2*c.TickTime)
	c.MaxSessionTimeout = cmp.Or(c.MaxSessionTimeout, 20*c.TickTime)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
	c.ContainerInterval = cmp.Or(c.ContainerInterval, time.Minute)
	c.ContainerRate = cmp.Or(c.ContainerRate, 10_000)
	c.MaxFrame = cmp.Or(c.MaxFrame, wire.DefaultMaxFrame)
	c.Limits = c.Limits.withDefaults(c.MaxFrame)
	c.MaxClientConns = cmp.Or(c.MaxClientConns, half(c.Limits.Conns))
	c.AdminPath = cmp.Or(c.AdminPath, "/commands")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := c.check(); err != nil {
		return c, configError{err}
	}
	return c, nil
}

// ErrConfig is what errors.Is finds in an error of Start about the Config itself: nothing was tried.
var ErrConfig = errors.New("server: the configuration is invalid")

// A configError says what is wrong with a Config.
type configError struct{ error }

func (configError) Is(target error) bool { return target == ErrConfig }

func (c *Config) check() error {
	var errs []error
	if c.InMemory == (c.Data != "") {
		errs = append(errs, errors.New("server: want either Data or InMemory"))
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
			errs = append(errs, fmt.Errorf("server: %s must be at least 1ms: %v", d.name, d.value))
		}
	}
	if c.MinSessionTimeout > c.MaxSessionTimeout {
		errs = append(errs, fmt.Errorf("server: MinSessionTimeout must not be above MaxSessionTimeout: %v and %v",
			c.MinSessionTimeout, c.MaxSessionTimeout))
	}
	if c.MaxSessionTimeout.Milliseconds() > 1<<31-1 {
		errs = append(errs, fmt.Errorf("server: MaxSessionTimeout must be at most %v: %v",
			(1<<31-1)*time.Millisecond, c.MaxSessionTimeout))
	}
	if c.MaxFrame < minFrame || c.MaxFrame > 1<<30 {
		errs = append(errs, fmt.Errorf("server: MaxFrame must be from %d to %d: %d", minFrame, 1<<30, c.MaxFrame))
	}
	for _, n := range []struct {
		name     string
		negative bool
		value    any
	}{
		{"ContainerRate", c.ContainerRate < 0, c.ContainerRate},
		{"ContainerUnused", c.ContainerUnused < 0, c.ContainerUnused},
		{"IdleExit", c.IdleExit < 0, c.IdleExit},
	} {
		if n.negative {
			errs = append(errs, fmt.Errorf("server: %s must not be negative: %v", n.name, n.value))
		}
	}
	if c.MaxClientConns < Unlimited {
		errs = append(errs, fmt.Errorf("server: MaxClientConns must not be below Unlimited (%d): %d",
			Unlimited, c.MaxClientConns))
	}
	errs = append(errs, c.Limits.check(c.MaxFrame))
	if !validAdminPath(c.AdminPath) {
		errs = append(errs, fmt.Errorf("server: AdminPath (admin.commandURL) must be an absolute path, such as "+
			"/commands, without spaces, . and ..: %q", c.AdminPath))
	}
	if len(c.TLSListen)+len(c.TLSListeners) > 0 && c.TLS == nil {
		errs = append(errs, errors.New("server: TLSListen and TLSListeners need Config.TLS with a certificate"))
	}
	if c.MetricsTLSListen != "" && c.MetricsTLS == nil {
		errs = append(errs, errors.New("server: MetricsTLSListen needs Config.MetricsTLS with a certificate"))
	}
	return errors.Join(errs...)
}

// validAdminPath reports whether an HTTP client can ask for p as it is.
func validAdminPath(p string) bool {
	bare := strings.TrimSuffix(p, "/")
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '?' || r == '#' || r == '%' || r == '\\' }
	return strings.HasPrefix(p, "/") && (bare == "" || path.Clean(bare) == bare) && !strings.ContainsFunc(p, odd) &&
		utf8.ValidString(p)
}

// minFrame is the size of a handshake's frame, which every client must be able to send.
const minFrame = 45

// schemes returns the schemes that access lists may name beside the built-in ones.
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
