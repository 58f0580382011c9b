package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrEnsemble says that a configuration describes a member of an ensemble, which this server cannot be.
var ErrEnsemble = errors.New("server: this configuration is for an ensemble, and this server stands alone: use Apache ZooKeeper for an ensemble, and point clients at it")

// ParseZooCfg reads a ZooKeeper configuration file. The warnings name what in it has no effect: keys that this server does not know,
// and a few that it knows but does not follow. A key that ZooKeeper reads from a system property may have the property's
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

// irrelevant are keys that tune or describe what this server does not have; to follow them means to do nothing.
var irrelevant = []string{
	"autopurge.purgeInterval", "autopurge.snapRetainCount", "clientPortListenBacklog", "cnxTimeout", "commitProcessor.numWorkerThreads",
	"electionAlg", "fsync.warningthresholdms", "globalOutstandingLimit", "initLimit", "localSessionsEnabled", "localSessionsUpgradingEnabled",
	"maxCnxns", "nio.numSelectorThreads", "nio.numWorkerThreads", "nio.sessionlessCnxnTimeout", "observer.syncEnabled", "preAllocSize",
	"serverCnxnFactory", "snapCount", "snapshot.trust.empty", "snapSizeLimitInKb", "standaloneEnabled", "syncEnabled", "syncLimit", "admin.idleTimeout",
	"leaderServes", "quorumListenOnAllIPs", "digest.enabled", "snapshot.compression.method", "metricsProvider.className", "audit.enable",
	"maxResponseCacheSize", "maxGetChildrenResponseCacheSize", "watchManagerName", "throttledOpWaitTime", "fastleader.minNotificationInterval",
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
	}
	if n, ok := z.number("jute.maxbuffer"); ok {
		c.MaxFrame = n
	}
	if words := z.text("4lw.commands.whitelist"); words != "" {
		for word := range strings.SplitSeq(words, ",") {
			c.FourLetterWords = append(c.FourLetterWords, strings.TrimSpace(word))
		}
	}
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

// trust reads who may do what: users, super users, certificates.
func (z *zooCfg) trust(c *Config) {
	c.SuperDigest = z.text("DigestAuthenticationProvider.superDigest")
	c.X509SuperUser = z.text("X509AuthenticationProvider.superUser")
	c.RequireSASL = z.boolean("sessionRequireClientSASLAuth")
	for _, key := range []string{"saslUsersFile", "java.security.auth.login.config"} {
		if path := z.text(key); path != "" {
			users, err := readSASLUsers(path)
			if err != nil {
				z.errs = append(z.errs, fmt.Errorf("server: %s: %w", key, err))
			}
			c.SASLUsers = users
		}
	}
	if password := z.text("SASLAuthenticationProvider.superPassword"); password != "" {
		if c.SASLUsers == nil {
			c.SASLUsers = make(map[string]string)
		}
		c.SASLUsers["super"] = password
	}
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		switch {
		case key == "superUser", strings.HasPrefix(key, "superUser."):
			c.SASLSupers = append(c.SASLSupers, z.text(key))
		case key == "authProvider", strings.HasPrefix(key, "authProvider."):
			delete(z.values, key) // every provider that there is, is always there
		}
	}
	z.tls(c)
}

func (z *zooCfg) tls(c *Config) {
	keys, trusted := z.text("ssl.keyStore.location"), z.text("ssl.trustStore.location")
	client := z.text("ssl.clientAuth")
	for _, key := range []string{"ssl.keyStore.type", "ssl.trustStore.type", "ssl.keyStore.password", "ssl.trustStore.password"} {
		v := z.text(key)
		if v != "" && (strings.HasSuffix(key, ".password") || !strings.EqualFold(v, "PEM")) {
			z.warn(key + " has no effect: this server reads certificates from PEM files without a password")
		}
	}
	if keys == "" {
		return
	}
	cfg, err := serverTLS(keys, trusted, client)
	if err != nil {
		z.errs = append(z.errs, err)
		return
	}
	c.TLS = cfg
}

// serverTLS makes the TLS configuration of a PEM file with key and certificates, and one with the authorities of clients.
func serverTLS(keys, trusted, client string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(keys, keys)
	if err != nil {
		return nil, fmt.Errorf("server: ssl.keyStore.location: %w (want a PEM file with the key and its certificates)", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	switch strings.ToLower(client) {
	case "none":
		return cfg, nil
	case "want":
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	default: // "need", as in ZooKeeper
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if trusted == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(trusted)
	if err != nil {
		return nil, fmt.Errorf("server: ssl.trustStore.location: %w", err)
	}
	if cfg.ClientCAs, err = certPool(pem); err != nil {
		return nil, fmt.Errorf("server: ssl.trustStore.location: %s: %w", trusted, err)
	}
	return cfg, nil
}

// leftovers warns of every key that nobody has taken.
func (z *zooCfg) leftovers() {
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		if !slices.Contains(irrelevant, key) {
			z.warn(fmt.Sprintf("unknown key %s in line %d has no effect", key, z.values[key].line))
		}
	}
}

func (z *zooCfg) warn(text string) { z.warnings = append(z.warnings, text) }

// text takes a value out.
func (z *zooCfg) text(key string) string {
	v := z.values[key].value
	delete(z.values, key)
	return v
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
