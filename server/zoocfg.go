package server

// Reading zoo.cfg.

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrEnsemble is the error of a configuration for a member of an ensemble, which this server cannot be.
var ErrEnsemble = errors.New("server: ensembles are not supported: " +
	"run Apache ZooKeeper for an ensemble, and point clients at it")

// ParseZooCfg reads a ZooKeeper configuration file. It returns warnings about keys that have no effect here, and an
// error for a key that protects something and that this server cannot obey. docs/zoo-cfg.md lists all keys. The prefix
// "zookeeper." of a system property is optional. SASL users come from the file named by saslUsersFile (lines
// user:password) or java.security.auth.login.config (a JAAS file), and certificates from PEM files. Start checks the
// configuration, so the caller may add to it first.
func ParseZooCfg(r io.Reader) (Config, []string, error) {
	props, err := readProperties(r)
	if err != nil {
		return Config{}, nil, fmt.Errorf("server: configuration: %w", err)
	}
	z := zooCfg{values: make(map[string]property)}
	for _, p := range props {
		p.key = strings.TrimPrefix(p.key, "zookeeper.")
		z.values[p.key] = p // of repeated keys the last one counts, as in ZooKeeper
	}
	cfg := z.config()
	return cfg, z.warnings, errors.Join(z.errs...)
}

// zooCfg is a configuration file being read. Reading a key removes it from values.
type zooCfg struct {
	values   map[string]property
	warnings []string
	errs     []error
}

func (z *zooCfg) config() Config {
	var c Config
	z.refuseEnsemble()
	z.addresses(&c)
	c.Data = z.text("dataDir")
	if dir := z.text("dataLogDir"); dir != "" && dir != c.Data {
		z.warn("dataLogDir has no effect: everything is in dataDir")
	}
	c.TickTime = z.millis("tickTime")
	if c.TickTime == 0 {
		c.TickTime = 3 * time.Second // ZooKeeper's default, which its sample configuration overrides
	}
	c.MinSessionTimeout, c.MaxSessionTimeout = z.millis("minSessionTimeout"), z.millis("maxSessionTimeout")
	c.MaxClientConns = 60
	if n, ok := z.number("maxClientCnxns"); ok {
		c.MaxClientConns = n
		if n <= 0 {
			c.MaxClientConns = Unlimited
		}
	}
	if n, _ := z.number("maxCnxns"); n > 0 {
		c.Limits.Conns = n
	}
	c.HandshakeTimeout = z.millis("nio.sessionlessCnxnTimeout")
	if n, ok := z.number("jute.maxbuffer"); ok {
		c.MaxFrame = n
	}
	c.FourLetterWords = z.list("4lw.commands.whitelist")
	c.ExtendedTypes = z.boolean("extendedTypesEnabled")
	c.EnforceQuota = z.boolean("enforceQuota")
	c.SkipACL = z.boolean("skipACL")
	c.ContainerInterval = z.millis("znode.container.checkIntervalMs")
	c.ContainerUnused = z.millis("znode.container.maxNeverUsedIntervalMs")
	c.ContainerRate, _ = z.number("znode.container.maxPerMinute")
	if z.boolean("reconfigEnabled") {
		z.warn("reconfigEnabled has no effect: a standalone server has no members to change")
	}
	if v, ok := z.values["forceSync"]; ok && strings.EqualFold(v.value, "no") {
		z.warn("forceSync=no has no effect: writes are always on disk before they are acknowledged")
	}
	delete(z.values, "forceSync")
	z.admin(&c)
	z.trust(&c)
	z.checkUnused()
	return c
}

// refuseEnsemble reports ErrEnsemble for keys that only members of an ensemble have.
func (z *zooCfg) refuseEnsemble() {
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		kind, _, numbered := strings.Cut(key, ".")
		switch {
		case numbered && (kind == "server" || kind == "group" || kind == "weight"), key == "dynamicConfigFile",
			key == "peerType":
			if len(z.errs) == 0 {
				z.errs = append(z.errs, fmt.Errorf("%w (line %d: %s)", ErrEnsemble, z.values[key].line, key))
			}
			delete(z.values, key)
		}
	}
}

func (z *zooCfg) addresses(c *Config) {
	if addr := z.address("clientPort", "clientPortAddress"); addr != "" {
		c.Listen = []string{addr}
	}
	if addr := z.address("secureClientPort", "secureClientPortAddress"); addr != "" {
		c.TLSListen = []string{addr}
	}
}

// address joins a host and a port. As in ZooKeeper, a port without a host is open to the network.
func (z *zooCfg) address(portKey, hostKey string) string {
	host := z.text(hostKey)
	port, ok := z.number(portKey)
	if !ok {
		if host != "" {
			z.errs = append(z.errs, fmt.Errorf("server: %s needs %s", hostKey, portKey))
		}
		return ""
	}
	if host == "unix" { // Config.Listen would take the port for the name of a socket
		z.errs = append(z.errs, fmt.Errorf("server: %s must not be unix: it names sockets here", hostKey))
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// admin turns the HTTP commands on if the file has a key for them. Unlike ZooKeeper it does not by default, which would
// open a port to the network.
func (z *zooCfg) admin(c *Config) {
	on, given := z.values["admin.enableServer"]
	delete(z.values, "admin.enableServer")
	port, hasPort := z.number("admin.serverPort")
	host := z.text("admin.serverAddress")
	c.AdminPath = z.text("admin.commandURL")
	if given && !truth(on.value) || !given && !hasPort {
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

func (z *zooCfg) warn(text string) { z.warnings = append(z.warnings, text) }

// text reads a value.
func (z *zooCfg) text(key string) string {
	v := z.values[key].value
	delete(z.values, key)
	return v
}

// list reads a comma-separated list.
func (z *zooCfg) list(key string) []string {
	var items []string
	if v := z.text(key); v != "" {
		for item := range strings.SplitSeq(v, ",") {
			items = append(items, strings.TrimSpace(item))
		}
	}
	return items
}

// number reads an integer, decimal or with 0x, and reports whether there is one.
func (z *zooCfg) number(key string) (int, bool) {
	p, ok := z.values[key]
	delete(z.values, key)
	if !ok || p.value == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(p.value, 0, 32)
	if strings.HasPrefix(p.value, "0") && !strings.HasPrefix(strings.ToLower(p.value), "0x") {
		n, err = strconv.ParseInt(p.value, 10, 32)
	}
	if err != nil {
		z.errs = append(z.errs, fmt.Errorf("server: line %d: %s must be a number: %s", p.line, key, p.value))
		return 0, false
	}
	return int(n), true
}

// millis reads a duration in milliseconds; 0 and negative numbers mean the default.
func (z *zooCfg) millis(key string) time.Duration {
	n, _ := z.number(key)
	return time.Duration(max(n, 0)) * time.Millisecond
}

func (z *zooCfg) boolean(key string) bool { return truth(z.text(key)) }

func truth(s string) bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "yes") }
