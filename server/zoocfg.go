package server

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

// ErrEnsemble says that a configuration describes a member of an ensemble, which this server cannot be.
var ErrEnsemble = errors.New("server: this configuration is for an ensemble, and this server stands alone: use Apache ZooKeeper for an ensemble, and point clients at it")

// ParseZooCfg reads a ZooKeeper configuration file. docs/zoo-cfg.md has all its keys: those that it obeys, and those that have no effect here, of some
// of which the warnings tell. What protects something and cannot be followed is an error. A key that ZooKeeper reads from a system property may have the property's
// prefix "zookeeper." or not. Users for SASL come from the file that saslUsersFile (user:password in each line) or
// java.security.auth.login.config (a JAAS file) names; certificates from PEM files. The configuration may lack
// what the command line gives, and is checked by Start.
func ParseZooCfg(r io.Reader) (Config, []string, error) {
	props, err := readProperties(r)
	if err != nil {
		return Config{}, nil, fmt.Errorf("server: configuration: %w", err)
	}
	z := zooCfg{values: make(map[string]property)}
	for _, p := range props {
		p.key = strings.TrimPrefix(p.key, "zookeeper.")
		z.values[p.key] = p // the last one counts, as in ZooKeeper
	}
	cfg := z.config()
	return cfg, z.warnings, errors.Join(z.errs...)
}

// zooCfg is a configuration file being read: each key that is understood is taken out.
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
		z.warn("dataLogDir has no effect: this server keeps everything in dataDir")
	}
	c.TickTime = z.millis("tickTime")
	if c.TickTime == 0 {
		c.TickTime = 3 * time.Second // ZooKeeper's own default, which its sample configuration overrides
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
		z.warn("reconfigEnabled has no effect: a server that stands alone has no members to change")
	}
	if v, ok := z.values["forceSync"]; ok && strings.EqualFold(v.value, "no") {
		z.warn("forceSync=no has no effect: this server acknowledges nothing that is not on disk")
	}
	delete(z.values, "forceSync")
	z.admin(&c)
	z.trust(&c)
	z.leftovers()
	return c
}

// refuseEnsemble makes every key that only a member of an ensemble has an error.
func (z *zooCfg) refuseEnsemble() {
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		kind, _, numbered := strings.Cut(key, ".")
		switch {
		case numbered && (kind == "server" || kind == "group" || kind == "weight"), key == "dynamicConfigFile", key == "peerType":
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

// address joins a port and an address. As in ZooKeeper, a port without an address is open to the network.
func (z *zooCfg) address(portKey, hostKey string) string {
	host := z.text(hostKey)
	port, ok := z.number(portKey)
	if !ok {
		if host != "" {
			z.errs = append(z.errs, fmt.Errorf("server: %s is set but %s is not", hostKey, portKey))
		}
		return ""
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// admin turns the HTTP commands on if the file asks for them; ZooKeeper's default, a port open to the network, is not taken over.
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

// text takes a value out.
func (z *zooCfg) text(key string) string {
	v := z.values[key].value
	delete(z.values, key)
	return v
}

// list takes out what commas separate.
func (z *zooCfg) list(key string) []string {
	var items []string
	if v := z.text(key); v != "" {
		for item := range strings.SplitSeq(v, ",") {
			items = append(items, strings.TrimSpace(item))
		}
	}
	return items
}

// number takes a whole number out, decimal or with 0x.
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
		z.errs = append(z.errs, fmt.Errorf("server: line %d: %s=%s is not a number", p.line, key, p.value))
		return 0, false
	}
	return int(n), true
}

// millis takes a time in milliseconds out; -1 and 0 mean the default.
func (z *zooCfg) millis(key string) time.Duration {
	n, _ := z.number(key)
	return time.Duration(max(n, 0)) * time.Millisecond
}

func (z *zooCfg) boolean(key string) bool { return truth(z.text(key)) }

func truth(s string) bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "yes") }
