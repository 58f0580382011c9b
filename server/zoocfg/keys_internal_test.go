package zoocfg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

func TestZooCfgPageMatchesTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/zoo-cfg.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	seen := make(map[string]bool)
	for _, k := range zooKeys {
		if seen[k.name] {
			t.Errorf("%s: got two rows, want one", k.name)
		}
		seen[k.name] = true
		if k.effect == noEffect { // has no row
			continue
		}
		here := string(k.effect)
		if k.harmless != "" {
			here += " (`" + k.harmless + "`)"
		}
		row := fmt.Sprintf(" | %s | %s |", here, k.why)
		same := slices.IndexFunc(want, func(r string) bool { return strings.HasSuffix(r, "`"+row) })
		if same >= 0 {
			want[same] = strings.TrimSuffix(want[same], row) + ", `" + k.name + "`" + row
		} else {
			want = append(want, "| `"+k.name+"`"+row)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/zoo-cfg.md and zooKeys differ:\n%s", diff)
	}
}

func TestZooCfgKeysHaveTheirDocumentedEffect(t *testing.T) {
	t.Parallel()
	for _, k := range zooKeys {
		key := strings.Replace(k.name, "*", "1", 1)
		if k.effect == obeyed {
			z := file{values: map[string]javafile.Property{key: {Line: 1, Key: key}}}
			z.config()
			if len(z.values) > 0 || len(z.warnings) > 0 {
				t.Errorf("%s: got %q, want the key to be read", key, z.warnings)
			}
			continue
		}
		_, warnings, err := Parse(strings.NewReader(key+"=something"), nil)
		switch k.effect {
		case noEffect:
			if len(warnings) > 0 || err != nil {
				t.Errorf("%s: got %q %v, want neither warning nor error", key, warnings, err)
			}
		case warned:
			if len(warnings) != 1 || !strings.Contains(warnings[0], key) || err != nil {
				t.Errorf("%s: got %q %v, want a warning", key, warnings, err)
			}
		case refused:
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: got %v, want an error that names it", key, err)
			}
			if k.harmless == "" {
				continue
			}
			text := "zookeeper." + key + " = " + strings.ToUpper(k.harmless)
			if _, warnings, err := Parse(strings.NewReader(text), nil); len(warnings) > 0 || err != nil {
				t.Errorf("%s=%s: got %q %v, want neither warning nor error", key, k.harmless, warnings, err)
			}
		case obeyed:
		}
	}
}

func TestZooCfgKeysThatProtectAreObeyedOrRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"enforce.auth.enabled=true", "enforce.auth.enabled=true\nenforce.auth.schemes=x509",
		"enforce.auth.enabled=true\nenforce.auth.schemes=sasl,x509",
		"ssl.crl=true", "zookeeper.ssl.ocsp=true", "ssl.ciphersuites=TLS_X", "admin.forceHttps=true",
		"audit.enable=true",
		"authProvider.1=com.corp.Gate", "authProvider.x=org.apache.zookeeper.server.auth.NoSuchProvider",
		"DigestAuthenticationProvider.enabled=false",
		"datadir.autocreate=false", "connectionMaxTokens=5",
	} {
		if _, _, err := Parse(strings.NewReader(text), nil); err == nil || errors.Is(err, ErrEnsemble) {
			t.Errorf("%q: got %v, want an error", text, err)
		}
	}
	const scheme = "authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n" +
		"ensembleAuthName=a, b\nallowSaslFailedClients=true\n"
	cfg, _, err := Parse(strings.NewReader("enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n"+
		"maxCnxns=10\nnio.sessionlessCnxnTimeout=700\n"+scheme), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(cfg.RequireSASL, cfg.Limits.Conns, cfg.HandshakeTimeout, cfg.EnsembleAuth, cfg.EnsembleNames,
		cfg.AllowFailedSASL)
	if want := "true 10 700ms true [a b] true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVersionsOfTLSFollowZooCfg(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ protocol, enabled, want string }{
		{"", "", "303 0 true"},
		{"TLSv1.2", "", "303 0 true"},
		{"TLSv1.3", "", "304 304 true"},
		{"TLSv1.3", "TLSv1.2", "303 303 true"},
		{"", "tlsv1.3, TLSv1.2", "303 304 true"},
		{"SSLv3", "", "0 0 false"},
		{"", "TLSv1.3,TLSv1.1", "0 0 false"},
	} {
		lowest, highest, err := tlsVersions("", row.protocol, row.enabled)
		if got := fmt.Sprintf("%x %x %t", lowest, highest, err == nil); got != row.want {
			t.Errorf("%q %q: got %s, want %s", row.protocol, row.enabled, got, row.want)
		}
	}
}

func TestLinesOfUsersAreNoJAASFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("bob:b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := readJAASUsers(path)
	if err == nil || !strings.Contains(err.Error(), "line 1: want {") {
		t.Errorf("got %v, want lines user:password to be refused as a JAAS file", err)
	}
}
