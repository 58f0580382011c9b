package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

// clientLogin is the client's half of a JAAS file.
const clientLogin = `Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="jaasuser" password="%s";
};
`

// TestJavaClientLearnsHowItsLoginEnds runs ZooKeeper's own client with the right password and a wrong one, on servers that let clients in
// that do not log in and on those that do not.
func TestJavaClientLearnsHowItsLoginEnds(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
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
				args := append([]string{"-Djava.security.auth.login.config=" + login}, ownArgs(t, "Login", h.addr, "15")...)
				if out := run(t, time.Minute, "java", args...); !strings.Contains(out, row.want) {
					t.Errorf("%s: got %q, want %q", h.name, out, row.want)
				}
			})
		})
	}
}
