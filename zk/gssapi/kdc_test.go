package gssapi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

const (
	realm    = "TURNSTILE.TEST"
	password = "correct horse"
)

// kdc is a KDC of MIT Kerberos in a directory of the test.
type kdc struct {
	dir  string
	port int
	env  []string
	stop func()
}

// startKDC starts a KDC that knows the principals of a server and of the client app. It skips the test if there is
// none.
func startKDC(t *testing.T) *kdc {
	t.Helper()
	peer.Need(t, "kinit", "/usr/sbin/krb5kdc", "/usr/sbin/kadmin.local", "/usr/sbin/kdb5_util")
	for range 3 { // another process may take the port
		if k := tryKDC(t); k != nil {
			return k
		}
	}
	t.Fatal("the KDC does not start")
	return nil
}

func tryKDC(t *testing.T) *kdc {
	t.Helper()
	k := &kdc{dir: t.TempDir(), port: 10_000 + rand.IntN(20_000)} // below the ports of outgoing connections
	k.write(t, "krb5.conf", fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  dns_canonicalize_hostname = false
  udp_preference_limit = 1
[realms]
  %[1]s = {
    kdc = 127.0.0.1:%[2]d
  }
[domain_realm]
  localhost = %[1]s
`, realm, k.port))
	k.write(t, "kdc.conf", fmt.Sprintf(`[kdcdefaults]
  kdc_listen = 127.0.0.1:%[2]d
  kdc_tcp_listen = 127.0.0.1:%[2]d
[realms]
  %[1]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    acl_file = %[3]s/acl
    max_life = 1h
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = FILE:%[3]s/kdc.log
`, realm, k.port, k.dir))
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.path("krb5.conf"), "KRB5_KDC_PROFILE="+k.path("kdc.conf"),
		"KRB5CCNAME=FILE:"+k.path("ccache"))
	k.run(t, "", "/usr/sbin/kdb5_util", "create", "-s", "-r", realm, "-P", "master key")
	for _, query := range []string{
		"addprinc -randkey zookeeper/localhost",
		"addprinc -pw " + strconv.Quote(password) + " app",
		"addprinc -randkey zookeeper/elsewhere",
		"addprinc -randkey bob",
		"ktadd -k " + k.path("zookeeper.keytab") + " zookeeper/localhost",
		"ktadd -norandkey -k " + k.path("app.keytab") + " app",
	} {
		k.run(t, "", "/usr/sbin/kadmin.local", "-r", realm, "-q", query)
	}
	k.start(t)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", k.port))
		if err == nil {
			_ = nc.Close()
			return k
		}
		<-time.After(20 * time.Millisecond)
	}
	k.stop()
	return nil
}

// start starts the process. It ends with the test at the latest.
func (k *kdc) start(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/usr/sbin/krb5kdc", "-n", "-r", realm)
	cmd.Env, cmd.Dir = k.env, k.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	k.stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(k.stop)
}

func (k *kdc) path(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(k.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (k *kdc) run(t *testing.T, input, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = k.env, k.dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "while ") {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

// kinit gets tickets for the client app that last so long.
func (k *kdc) kinit(t *testing.T, life string) {
	t.Helper()
	k.run(t, "", "kinit", "-l", life, "-k", "-t", k.path("app.keytab"), "app@"+realm)
}
