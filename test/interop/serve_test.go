package interop_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
)

// zooCfg is what kazoo's harness writes for its servers, with its Java property as a key.
const zooCfg = `
tickTime=2000
dataDir=%s
clientPort=%s
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.serverPort=0
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
4lw.commands.whitelist=*
reconfigEnabled=true
DigestAuthenticationProvider.superDigest=` + superDigest + `
`

// TestServeReadsZooCfg runs "turnstile serve" with a configuration file of ZooKeeper, and kazoo's tests on it. Where
// they stop the server it is killed.
func TestServeReadsZooCfg(t *testing.T) {
	t.Parallel()
	peer.Need(t, python, kazooDir)
	dir := t.TempDir()
	binary := command(t)
	addr := peer.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, zooCfg, filepath.Join(dir, "data"), port), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &host{name: "turnstile serve", addr: addr}
	var cmd *exec.Cmd
	h.start = func() error {
		cmd = exec.CommandContext(t.Context(), binary, "serve", "--config", config)
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		_, err = bufio.NewReader(out).ReadString('\n') // it prints a line when it serves
		return err
	}
	h.stop = func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		return nil
	}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.stop() }()
	few := []string{
		"test_connection", "-test_connection.TestReadOnlyMode.test_read_only",
		"-test_connection.TestConnectionDrop.test_connection_dropped", "test_counter", "test_lease",
	}
	run(t, 2*time.Minute, python,
		append([]string{"testdata/kazoo_suite.py", h.addr, h.control(t)}, soak.Pick(few, suite["client"])...)...)
}
