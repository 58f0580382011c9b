// Package zoocfg reads the configuration file of Apache ZooKeeper, for package server.
package zoocfg

// Reading zoo.cfg.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

// ErrEnsemble is the error of a configuration for a member of an ensemble, which this server cannot be.
var ErrEnsemble = errors.New("zoocfg: ensembles are not supported: " +
	"run Apache ZooKeeper for an ensemble, and point clients at it")

// Parse reads a zoo.cfg. It returns warnings about keys that have no effect here, and an error for a key that protects
// something and that this server cannot obey, for a value that it does not understand, and for a placeholder such as
// ${PORT}, which nothing fills in. docs/zoo-cfg.md lists the keys. A single server.1 is a standalone server. The prefix
// "zookeeper." of a system property is optional. SASL users come from the file named by saslUsersFile (lines
// user:password) or java.security.auth.login.config (a JAAS file).
//
// Certificates come from PEM files, which are read again when they change; the logger, silent if nil, is told of that.
// Start checks the configuration, so the caller may add to it first.
func Parse(r io.Reader, logger *slog.Logger) (server.Config, []string, error) {
	props, err := javafile.Properties(r)
	if err != nil {
		return server.Config{}, nil, fmt.Errorf("zoocfg: %w", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	z := file{values: make(map[string]javafile.Property), logger: logger}
	for _, p := range props {
		key := strings.TrimPrefix(p.Key, "zookeeper.")
		if q, twice := z.values[key]; twice && q.Key != p.Key && q.Value != p.Value {
			z.fail(p, "%s is there with and without zookeeper. (line %d): leave one out", key, q.Line)
		}
		z.values[key] = p // of repeated keys the last one counts, as in ZooKeeper
	}
	z.refusePlaceholders()
	cfg := z.config()
	return cfg, z.warnings, errors.Join(z.errs...)
}

// file is a configuration file being read. Reading a key removes it from values.
type file struct {
	values   map[string]javafile.Property
	logger   *slog.Logger
	warnings []string
	errs     []error
	ensemble bool // ErrEnsemble is among errs
}

func (z *file) config() server.Config {
	var c server.Config
	z.addresses(&c, z.members())
	c.Data = z.text("dataDir")
	if dir := z.text("dataLogDir"); dir != "" && dir != c.Data {
		z.warn("dataLogDir has no effect: everything is in dataDir")
	}
	z.times(&c)
	c.MaxClientConns = 60
	if n, ok := z.number("maxClientCnxns"); ok {
		c.MaxClientConns = n
		if n <= 0 {
			c.MaxClientConns = server.Unlimited
		}
	}
	if n, _ := z.number("maxCnxns"); n > 0 {
		c.Limits.Conns = n
	}
	c.HandshakeTimeout = z.millis("nio.sessionlessCnxnTimeout")
	if n, ok := z.within("jute.maxbuffer", 45, 1<<30); ok { // a handshake has 45 bytes
		c.MaxFrame = n
	}
	c.FourLetterWords = z.list("4lw.commands.whitelist")
	for _, word := range c.FourLetterWords {
		if word != "*" && !server.IsFourLetterWord(word) {
			z.warn(fmt.Sprintf("4lw.commands.whitelist has %q, which is no four-letter word: want them with commas "+
				"between, such as ruok,stat", word))
		}
	}
	if z.boolean("readonlymode.enabled") { // without an ensemble to lose contact with it is only that
		c.FourLetterWords = append(c.FourLetterWords, "isro")
	}
	c.ExtendedTypes = z.boolean("extendedTypesEnabled")
	c.EnforceQuota = z.boolean("enforceQuota")
	c.SkipACL = z.word("skipACL", "no", "yes") == "yes"
	c.ContainerInterval = z.millis("znode.container.checkIntervalMs")
	c.ContainerUnused = z.millis("znode.container.maxNeverUsedIntervalMs")
	c.ContainerRate, _ = z.number("znode.container.maxPerMinute")
	if z.boolean("reconfigEnabled") {
		z.warn("reconfigEnabled has no effect: a standalone server has no members to change")
	}
	if z.word("forceSync", "yes", "no") == "no" {
		z.warn("forceSync=no has no effect: writes are always on disk before they are acknowledged")
	}
	z.admin(&c)
	z.metrics(&c)
	z.trust(&c)
	z.checkUnused()
	return c
}

// times reads the tick, and how long sessions may last: from 2 to 20 ticks if nothing else is said.
func (z *file) times(c *server.Config) {
	c.TickTime = 3 * time.Second // ZooKeeper's default, which its sample configuration overrides
	tick, least, longest := z.values["tickTime"], z.values["minSessionTimeout"], z.values["maxSessionTimeout"]
	if n, ok := z.within("tickTime", 1, math.MaxInt32); ok {
		c.TickTime = time.Duration(n) * time.Millisecond
	} else if tick.Line > 0 {
		return
	}
	c.MinSessionTimeout, c.MaxSessionTimeout = z.millis("minSessionTimeout"), z.millis("maxSessionTimeout")
	shortest, most := cmp.Or(c.MinSessionTimeout, 2*c.TickTime), cmp.Or(c.MaxSessionTimeout, 20*c.TickTime)
	switch {
	case most > math.MaxInt32*time.Millisecond:
		z.fail(tick, "tickTime must be at most %d, as sessions of 20 ticks have to fit into 31 bits: %s",
			math.MaxInt32/20, tick.Value)
	case shortest <= most:
	case c.MaxSessionTimeout == 0:
		z.fail(least, "minSessionTimeout must be at most 20 ticks, or maxSessionTimeout be there: %s", least.Value)
	default:
		z.fail(longest, "maxSessionTimeout must not be below minSessionTimeout, which is 2 ticks if it is missing: %s",
			longest.Value)
	}
}

// addresses reads where to listen. member is what the line of the only member says, which wins, as for ZooKeeper.
func (z *file) addresses(c *server.Config, member string) {
	plain := z.address("clientPort", "clientPortAddress")
	if plain != "" && member != "" && plain != member {
		host, port, _ := net.SplitHostPort(plain)
		_, want, _ := net.SplitHostPort(member)
		ip := net.ParseIP(host)
		if port != want || host != "" && (ip == nil || !ip.IsUnspecified()) {
			z.errs = append(z.errs, fmt.Errorf("zoocfg: clientPort and clientPortAddress say %s, and the line of the "+
				"server says %s behind the semicolon: leave one out", plain, member))
		}
	}
	if addr := cmp.Or(member, plain); addr != "" {
		c.Listen = []string{addr}
	}
	if addr := z.address("secureClientPort", "secureClientPortAddress"); addr != "" {
		c.TLSListen = []string{addr}
	}
}

// address joins a host and a port. As in ZooKeeper, a port without a host is open to the network, and port 0 is none.
func (z *file) address(portKey, hostKey string) string {
	host := z.host(hostKey)
	port, _ := z.within(portKey, 0, maxPort)
	if port == 0 {
		if host != "" {
			z.errs = append(z.errs, fmt.Errorf("zoocfg: %s needs %s", hostKey, portKey))
		}
		return ""
	}
	if host == "unix" { // Config.Listen would take the port for the name of a socket
		z.errs = append(z.errs, fmt.Errorf("zoocfg: %s must not be unix: it names sockets here", hostKey))
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

const maxPort = 1<<16 - 1

// host reads a name or an address. An IPv6 address may be in brackets, which are left out.
func (z *file) host(key string) string {
	p := z.values[key]
	host := z.text(key)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if strings.Contains(host, ":") && net.ParseIP(strings.Split(host, "%")[0]) == nil {
		z.fail(p, "%s must be a name or an address without a port: %s", key, p.Value)
	}
	return host
}

// admin turns the HTTP commands on if the file has a key for them. Unlike ZooKeeper it does not by default, which would
// open a port to the network.
func (z *file) admin(c *server.Config) {
	given := z.values["admin.enableServer"].Value != ""
	on := z.boolean("admin.enableServer")
	port, hasPort := z.within("admin.serverPort", 0, maxPort)
	host := z.host("admin.serverAddress")
	url := z.values["admin.commandURL"]
	if c.AdminPath = z.text("admin.commandURL"); c.AdminPath != "" && !strings.HasPrefix(c.AdminPath, "/") {
		z.fail(url, "admin.commandURL must be an absolute path, such as /commands: %s", c.AdminPath)
	}
	if given && !on || !given && !hasPort {
		return
	}
	if !hasPort {
		port = 8080
	}
	if host == "" {
		host = "0.0.0.0"
	}
	c.AdminListen = net.JoinHostPort(host, strconv.Itoa(port))
}

// prometheusProvider is ZooKeeper's provider of metrics for Prometheus.
const prometheusProvider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"

// metrics turns the metrics on if the file names that provider.
func (z *file) metrics(c *server.Config) {
	const prefix = "metricsProvider."
	provider, host := z.text(prefix+"className"), cmp.Or(z.host(prefix+"httpHost"), "0.0.0.0")
	plain, hasPlain := z.within(prefix+"httpPort", 0, maxPort)
	secure, hasSecure := z.within(prefix+"httpsPort", 0, maxPort)
	if provider != "" && provider != prometheusProvider {
		z.warn("metricsProvider.className=" + provider + " has no effect: mntr and the HTTP commands have the numbers")
	}
	on := provider == prometheusProvider
	if on && (hasPlain || !hasSecure) { // before 3.10 there is only one port, which has a default
		if !hasPlain {
			plain = 7000
		}
		c.MetricsListen = net.JoinHostPort(host, strconv.Itoa(plain))
	}
	if on && hasSecure {
		c.MetricsTLSListen = net.JoinHostPort(host, strconv.Itoa(secure))
	}
	z.metricsTLS(c, prefix)
}

// metricsTLS reads the keys about the certificate of the metrics, and about those of their clients.
func (z *file) metricsTLS(c *server.Config, prefix string) {
	need := z.word(prefix+"ssl.need.client.auth", "true", "false") != "false"
	want := z.word(prefix+"ssl.want.client.auth", "true", "false") != "false"
	client := "none"
	switch {
	case need:
		client = "need"
	case want:
		client = "want"
	}
	keys, trusted := prefix+"ssl.keyStore.location", prefix+"ssl.trustStore.location"
	if c.MetricsTLSListen == "" {
		delete(z.values, keys) // as in ZooKeeper, nothing reads the file
	} else {
		if z.values[keys].Value == "" {
			z.errs = append(z.errs, fmt.Errorf("zoocfg: %shttpsPort needs %s", prefix, keys))
		}
		if need && z.values[trusted].Value == "" {
			z.errs = append(z.errs, fmt.Errorf("zoocfg: %shttpsPort needs %s, or %sssl.need.client.auth=false", prefix,
				trusted, prefix))
		}
	}
	c.MetricsTLS = z.tls(prefix, client)
}

func (z *file) warn(text string) { z.warnings = append(z.warnings, text) }

// fail reports what is wrong with a line.
func (z *file) fail(p javafile.Property, format string, args ...any) {
	z.errs = append(z.errs, fmt.Errorf("zoocfg: line %d: "+format, append([]any{p.Line}, args...)...))
}

// text reads a value. A key without one is an error: a template that was not filled in, most likely.
func (z *file) text(key string) string {
	if p, ok := z.values[key]; ok && p.Value == "" {
		z.fail(p, "%s has no value: write one, or leave the line out", key)
	}
	return z.optional(key)
}

// optional reads a value that may be empty.
func (z *file) optional(key string) string {
	v := z.values[key].Value
	delete(z.values, key)
	return v
}

// list reads a comma-separated list.
func (z *file) list(key string) []string {
	var items []string
	if v := z.optional(key); v != "" {
		for item := range strings.SplitSeq(v, ",") {
			items = append(items, strings.TrimSpace(item))
		}
	}
	return items
}

// number reads an integer, decimal or with 0x, and reports whether there is one.
func (z *file) number(key string) (int, bool) {
	p := z.values[key]
	if z.text(key) == "" {
		return 0, false
	}
	digits, base := p.Value, 10
	if after, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		digits, base = after, 16
	}
	n, err := strconv.ParseInt(digits, base, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		z.fail(p, "%s must be at most %d: %s", key, math.MaxInt32, p.Value)
	case err != nil:
		z.fail(p, "%s must be a number: %s", key, p.Value)
	}
	return int(n), err == nil
}

// within reads an integer from least to most.
func (z *file) within(key string, least, most int) (int, bool) {
	p := z.values[key]
	n, ok := z.number(key)
	if ok && (n < least || n > most) {
		z.fail(p, "%s must be from %d to %d: %s", key, least, most, p.Value)
		return 0, false
	}
	return n, ok
}

// millis reads a duration in milliseconds; 0 and negative numbers mean the default.
func (z *file) millis(key string) time.Duration {
	n, _ := z.number(key)
	return time.Duration(max(n, 0)) * time.Millisecond
}

func (z *file) boolean(key string) bool { return z.word(key, "false", "true") == "true" }

// word reads a value that is one of a few words, in lower case; "" if there is none. ZooKeeper takes any other word for
// one of them, and not always for the one that protects.
func (z *file) word(key string, words ...string) string {
	p := z.values[key]
	value := strings.ToLower(z.text(key))
	if value != "" && !slices.Contains(words, value) {
		z.fail(p, "%s must be %s: %s", key, strings.Join(words, " or "), p.Value)
		return ""
	}
	return value
}

// refusePlaceholders reports errors for values that a tool should have filled in before, or that other programs' files
// may refer to: ZooKeeper takes them as they are, so that a placeholder becomes a password, or the name of a directory.
func (z *file) refusePlaceholders() {
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		p := z.values[key]
		found := unfilled().FindString(p.Value)
		if found == "" {
			continue
		}
		z.fail(p, "%s has the placeholder %s, and nothing puts a value in here: write the value itself", key, found)
		delete(z.values, key)
	}
}

// unfilled matches placeholders.
var unfilled = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{[^}]*\}|\{\{[^}]*\}\}`)
})
