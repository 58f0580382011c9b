package interop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// clientLogin is the client's part of a JAAS file.
const clientLogin = `Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="jaasuser" password="%s";
};
`

// TestJavaClientLearnsHowItsLoginEnds runs ZooKeeper's own client with the right and with a wrong password, on
// servers that require a login and on servers that do not.
func TestJavaClientLearnsHowItsLoginEnds(t *testing.T) {
	t.Parallel()
	needJava(t)
	for _, row := range []struct {
		name, password string
		required       bool
		want           string
	}{
		{"right", "jaas_password", false, "in as"},
		{"wrong", "no", false, "refused: AUTH_FAILED"},
		{"right and required", "jaas_password", true, "in as"},
		{"wrong and required", "no", true, "refused: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			login := filepath.Join(t.TempDir(), "login.conf")
			if err := os.WriteFile(login, fmt.Appendf(nil, clientLogin, row.password), 0o600); err != nil {
				t.Fatal(err)
			}
			onEach(t, options{sasl: true, requireSASL: row.required}, func(t *testing.T, h *host) {
				t.Helper()
				args := append([]string{"-Djava.security.auth.login.config=" + login, "-D" + fips + "=false"},
					ownArgs(t, "Login", h.addr, "15")...)
				if out := run(t, time.Minute, "java", args...); !strings.Contains(out, row.want) {
					t.Errorf("%s: got %q, want %q", h.name, out, row.want)
				}
			})
		})
	}
}

// TestOurClientLogsInByDigestMD5 runs our client's DIGEST-MD5 against Java's, which Apache ZooKeeper uses, and
// against our server's.
func TestOurClientLogsInByDigestMD5(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		onEach(t, options{sasl: true, requireSASL: required}, func(t *testing.T, h *host) {
			t.Helper()
			open := func(user, password string) *zk.Client {
				t.Helper()
				sasl := zk.DigestMD5{User: user, Password: password}
				client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr, Timeout: 2 * time.Minute, SASL: sasl})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				return client
			}
			var first *zk.Session
			for user, password := range saslUsers {
				if user == "super" { // super may do everything
					continue
				}
				sess, err := open(user, password).Session(t.Context())
				if err != nil {
					t.Errorf("%s: %s with its password: got %v, want nil", h.name, user, err)
					continue
				}
				path := "/of-" + user
				own := []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "sasl", ID: user}}}
				if _, err := sess.CreateNode(t.Context(), zk.Node{Path: path, ACL: own}); err != nil {
					t.Errorf("%s: %s creates its own node: got %v, want nil", h.name, user, err)
				}
				if _, _, err := sess.Get(t.Context(), path); err != nil {
					t.Errorf("%s: %s reads its own node: got %v, want nil", h.name, user, err)
				}
				if first == nil {
					first = sess
				} else if _, _, err := first.Get(t.Context(), path); !errors.Is(err, zk.NoAuth) {
					t.Errorf("%s: another user reads the node of %s: got %v, want NoAuth", h.name, user, err)
				}
			}
			for _, wrong := range [][2]string{{"jaasuser", "no"}, {"nobody", "no"}} {
				if _, err := open(wrong[0], wrong[1]).Session(t.Context()); !errors.Is(err, zk.ErrAuthFailed) {
					t.Errorf("%s: %s with the password %s: got %v, want ErrAuthFailed", h.name, wrong[0], wrong[1], err)
				}
			}
			if err := h.stop(); err != nil { // each connection of a session logs in again
				t.Fatal(err)
			}
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				return
			}
			for {
				_, _, err := first.Get(t.Context(), "/of-none")
				if errors.Is(err, zk.NoNode) {
					return
				}
				if !errors.Is(err, zk.ErrConnectionLost) {
					t.Errorf("%s: after a restart: got %v, want nil", h.name, err)
					return
				}
			}
		})
	}
}
