package zoocfg

// The keys of zoo.cfg about authentication and TLS.

import (
	"crypto/sha1" //nolint:gosec // the scheme's
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/certfile"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

// trust reads the keys about users, superusers and certificates.
func (z *file) trust(c *server.Config) {
	const superDigest = "DigestAuthenticationProvider.superDigest"
	digest := z.values[superDigest]
	if c.SuperDigest = z.text(superDigest); c.SuperDigest != "" && !isDigest(c.SuperDigest) {
		z.fail(digest, "%s must be user:base64(sha1(user:password)), never the password itself", superDigest)
	}
	const superName = "X509AuthenticationProvider.superUser"
	name := z.values[superName]
	if odd := certfile.OddName(name.Value); odd != "" {
		z.fail(name, "%s %s", superName, odd)
	}
	c.X509SuperUser = z.text(superName)
	c.RequireSASL = z.boolean("sessionRequireClientSASLAuth")
	c.AllowFailedSASL = z.boolean("allowSaslFailedClients")
	c.EnsembleNames = z.list("ensembleAuthName")
	z.enforce(c)
	const usersFile, jaas = "saslUsersFile", "java.security.auth.login.config"
	if p, both := z.values[jaas]; both && z.values[usersFile].Value != "" {
		z.fail(p, "%s and %s both name users: leave one out", usersFile, jaas)
	}
	read := func(key string, users func(path string) (map[string]string, error)) {
		path := z.text(key)
		if path == "" {
			return
		}
		var err error
		if c.SASLUsers, err = users(path); err != nil {
			z.errs = append(z.errs, fmt.Errorf("zoocfg: %s: %w", key, err))
		}
	}
	read(usersFile, server.ReadSASLUsers)
	read(jaas, readJAASUsers)
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
			z.provider(c, key)
		}
	}
	c.TLS = z.tls("", z.word("ssl.clientAuth", "none", "want", "need"))
}

// isDigest reports whether text is what the scheme digest makes of a user and a password.
func isDigest(text string) bool {
	user, hash, _ := strings.Cut(text, ":")
	sum, err := base64.StdEncoding.DecodeString(hash)
	return user != "" && err == nil && len(sum) == sha1.Size
}

// enforce reads which authentication is required. Only SASL can be.
func (z *file) enforce(c *server.Config) {
	p := z.values["enforce.auth.enabled"]
	schemes := z.values["enforce.auth.schemes"]
	delete(z.values, "enforce.auth.schemes")
	switch on := z.boolean("enforce.auth.enabled"); {
	case !on:
	case strings.EqualFold(schemes.Value, "sasl"):
		c.RequireSASL = true
	default:
		z.refuse("enforce.auth.enabled", p, fmt.Sprintf("enforce.auth.schemes must be sasl: %q", schemes.Value))
	}
}

// providers are ZooKeeper's own authentication classes. All but the last are always active.
var providers = []string{
	"DigestAuthenticationProvider", "IPAuthenticationProvider", "SASLAuthenticationProvider",
	"X509AuthenticationProvider", ensembleProvider,
}

const ensembleProvider = "EnsembleAuthenticationProvider"

func (z *file) provider(c *server.Config, key string) {
	p := z.values[key]
	delete(z.values, key)
	name, ok := strings.CutPrefix(p.Value, "org.apache.zookeeper.server.auth.")
	if !ok && p.Value != "" || ok && !slices.Contains(providers, name) {
		z.refuse(key, p, "there is no Java")
	}
	if name == ensembleProvider {
		c.EnsembleAuth = true
	}
}

// tls reads the keys below prefix+"ssl.". client is none, want or need, which is the default. It returns nil if there
// is no certificate.
func (z *file) tls(prefix, client string) *tls.Config {
	ssl := prefix + "ssl."
	keys, trusted := z.optional(ssl+"keyStore.location"), z.optional(ssl+"trustStore.location")
	for _, key := range []string{"keyStore.type", "trustStore.type", "keyStore.password", "trustStore.password"} {
		v := z.optional(ssl + key)
		if v != "" && (strings.HasSuffix(key, ".password") || !strings.EqualFold(v, "PEM")) {
			z.warn(ssl + key + " has no effect: certificates come from PEM files without a password")
		}
	}
	protocol, enabled := z.optional(ssl+"protocol"), z.optional(ssl+"enabledProtocols")
	if keys == "" {
		return nil
	}
	cfg := new(tls.Config)
	names := certfile.Names{Cert: keys, Key: keys, CA: trusted}
	switch client {
	case "none":
		names.CA = ""
	case "want":
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	var err error
	if cfg.MinVersion, cfg.MaxVersion, err = tlsVersions(prefix, protocol, enabled); err != nil {
		z.errs = append(z.errs, err)
	}
	files, err := certfile.Load(names, z.logger)
	if err != nil {
		z.errs = append(z.errs, fmt.Errorf("zoocfg: %skeyStore.location must be a PEM file with a key and its "+
			"certificates, and %strustStore.location one with authorities: %w", ssl, ssl, err))
		return nil
	}
	files.Server(cfg)
	return cfg
}

// tlsVersions returns the lowest and highest TLS version to use. As in Java, the list of enabled protocols overrides
// the single protocol. Without either, versions newer than ZooKeeper's default are allowed.
func tlsVersions(prefix, protocol, enabled string) (lowest, highest uint16, err error) {
	names := enabled
	switch {
	case enabled != "":
	case strings.EqualFold(protocol, "TLSv1.3"):
		names = protocol
	case protocol == "", strings.EqualFold(protocol, "TLS"), strings.EqualFold(protocol, "TLSv1.2"):
		return tls.VersionTLS12, 0, nil
	default:
		return 0, 0, fmt.Errorf("zoocfg: %sssl.protocol must be TLSv1.2, TLSv1.3 or TLS: %s", prefix, protocol)
	}
	for name := range strings.SplitSeq(names, ",") {
		var v uint16
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, "TLSv1.2"):
			v = tls.VersionTLS12
		case strings.EqualFold(name, "TLSv1.3"):
			v = tls.VersionTLS13
		default:
			return 0, 0, fmt.Errorf("zoocfg: %sssl.enabledProtocols must be TLSv1.2, TLSv1.3 or both: %s", prefix,
				enabled)
		}
		if lowest == 0 || v < lowest {
			lowest = v
		}
		highest = max(highest, v)
	}
	return lowest, highest, nil
}

// readJAASUsers returns the passwords by user of a JAAS file, as ZooKeeper uses.
func readJAASUsers(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	users, err := javafile.JAASUsers(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for user, password := range users { // which Java accepts: anybody could log in
		if user == "" || password == "" {
			return nil, fmt.Errorf("%s: option user_%s: want a user and a password", path, user)
		}
	}
	return users, nil
}
