package cli_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// What systemd is told by a server that it has started.
func TestServeTellsTheServiceManager(t *testing.T) {
	t.Parallel()
	abstract := fmt.Sprintf("@turnstile-test-%d", os.Getpid())
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), abstract} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		told := func(want string) {
			t.Helper()
			buf := make([]byte, 1024)
			n, err := conn.Read(buf)
			if err != nil || string(buf[:n]) != want {
				t.Fatalf("got %q %v, want %q", buf[:n], err, want)
			}
		}
		r := startWith(t, func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Environ(), "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=200000")
		}, "serve", "--listen", "127.0.0.1:0", "--in-memory")
		told("READY=1")
		told("WATCHDOG=1")
		told("WATCHDOG=1")
		r.signal(syscall.SIGTERM)
		r.wantCode(0)
		for stopping := false; !stopping; {
			buf := make([]byte, 1024)
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			stopping = string(buf[:n]) == "STOPPING=1"
		}
	}
}

// A manager that cannot be reached does not keep a server from serving; a watchdog of another process is not ours.
func TestServeWithoutAServiceManager(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Environ(), "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "none"), "WATCHDOG_PID=1")
	}, "serve", "--listen", "127.0.0.1:0", "--in-memory")
	if got := r.line(); !strings.HasPrefix(got, "serving ") {
		t.Error(got)
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
	r.wantStderr("the service manager cannot be told")
}

// systemd knows each line of our units, and finds server and dashboard well confined.
func TestUnitsAreThoseOfSystemd(t *testing.T) {
	t.Parallel()
	peer.Need(t, "systemd-analyze")
	dir := t.TempDir()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob("../../../../ops/systemd/*")
	if err != nil || len(units) != 4 {
		t.Fatal(units, err)
	}
	var paths []string
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, strings.Replace(filepath.Base(unit), "@", "@backup", 1))
		installed := strings.ReplaceAll(string(text), "/usr/bin/turnstile", binary)
		if err := os.WriteFile(path, []byte(installed), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	verify := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify", "--man=no"}, paths...)...)
	if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 { // of unknown keys it only warns
		t.Errorf("%v\n%s", err, out)
	}
	for _, unit := range []string{"turnstile.service", "turnstile-dashboard.service"} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true",
			"--threshold=20", filepath.Join(dir, unit)).CombinedOutput()
		if err != nil {
			t.Errorf("%s is too open: %v\n%s", unit, err, out)
		}
	}
}
