package cli_test

import (
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// passing starts "turnstile serve" as systemd does, with sockets of these names from descriptor 3 on.
func passing(t *testing.T, names string, files []*os.File, args ...string) *running {
	t.Helper()
	return startWith(t, func(cmd *exec.Cmd) {
		// LISTEN_PID is the process that exec makes of the shell.
		cmd.Env = append(cmd.Environ(), "LISTEN_FDNAMES="+names, "LISTEN_FDS="+strconv.Itoa(len(files)))
		cmd.ExtraFiles = files
		cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec -a turnstile "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
	}, append([]string{"serve", "--in-memory"}, args...)...)
}

// socket returns a listening socket, and its address.
func socket(t *testing.T, network, address string) (*os.File, string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var f *os.File
	switch l := l.(type) {
	case *net.TCPListener:
		f, err = l.File()
	case *net.UnixListener:
		l.SetUnlinkOnClose(false)
		f, err = l.File()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, l.Addr().String()
}

func TestServeTakesTheSocketsOfSystemd(t *testing.T) {
	t.Parallel()
	main, addr := socket(t, "tcp", "127.0.0.1:0")
	path := filepath.Join(t.TempDir(), "sock")
	local, _ := socket(t, "unix", path)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r := passing(t, "main:local", []*os.File{main, local}, "--listen", "fd:local", "--listen", "127.0.0.1:0",
		"--listen", "fd:main")
	if got := r.line(); !strings.HasPrefix(got, "serving unix:"+path+" "+addr+" 127.0.0.1:") {
		t.Errorf("got %q", got)
	}
	for _, at := range []string{addr, "unix:" + path} {
		if out, err := turnstile("create", "--connect", at, "/at-"+at[:4]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", at, err, out)
		}
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket is systemd's, which still listens on it: %v", err)
	}
}

func TestPassedSocketsHaveTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	cert := []string{"--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key")}
	for _, flag := range []string{"--tls-listen", "--listen"} { // with a certificate, --listen has TLS, too
		main, addr := socket(t, "tcp", "127.0.0.1:0")
		r := passing(t, "main", []*os.File{main}, append(cert, flag, "fd:main")...)
		if got := r.line(); !strings.HasPrefix(got, "serving "+addr+" ") {
			t.Errorf("got %q", got)
		}
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		conn.Close()
	}
}

func TestServeRefusesSocketsThatAreNotNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, try := range map[string]struct {
		names   string
		network string
		address string
		listen  []string
	}{
		"which no --listen names: add --listen fd:extra": {
			"extra", "tcp", "127.0.0.1:0", []string{"--listen", "127.0.0.1:0"},
		},
		"which no --listen names: add --listen fd:turnstile.socket": {
			"turnstile.socket", "tcp", "127.0.0.1:0", nil,
		},
		"systemd has passed no socket of this name": {
			"main", "tcp", "127.0.0.1:0", []string{"--listen", "fd:main", "--listen", "fd:other"},
		},
		"this socket is named twice": {
			"main", "tcp", "127.0.0.1:0", []string{"--listen", "fd:main", "--listen", "fd:main"},
		},
		"LISTEN_FDNAMES must have 1 names": {
			"main:other", "tcp", "127.0.0.1:0", []string{"--listen", "fd:main"},
		},
		"the socket unit needs SocketMode=0600": {
			"main", "unix", filepath.Join(dir, "open"), []string{"--listen", "fd:main"},
		},
		"every user may connect to the abstract socket": {
			"main", "unix", "@turnstile-" + filepath.Base(dir) + t.Name(), []string{"--listen", "fd:main"},
		},
	} {
		f, _ := socket(t, try.network, try.address)
		if !strings.HasPrefix(try.address, "@") && try.network == "unix" {
			if err := os.Chmod(try.address, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		r := passing(t, try.names, []*os.File{f}, try.listen...)
		r.wantCode(64)
		r.wantStderr(want)
	}
}

func TestServeRefusesWhatIsNoListeningSocket(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packets, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	datagrams, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	for want, f := range map[string]*os.File{
		"descriptor 3 is not a socket":       file,
		"it does not listen for connections": datagrams,
	} {
		r := passing(t, "main", []*os.File{f}, "--listen", "fd:main")
		r.wantCode(64)
		r.wantStderr(want)
	}
}

// Variables that another process has got say nothing about our descriptors.
func TestSocketsOfAnotherProcessAreNotOurs(t *testing.T) {
	t.Parallel()
	r := startWith(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Environ(), "LISTEN_PID=1", "LISTEN_FDS=1")
	}, "serve", "--in-memory", "--listen", "127.0.0.1:0")
	if got := r.line(); !strings.HasPrefix(got, "serving 127.0.0.1:") {
		t.Errorf("got %q", got)
	}
	r = startWith(t, nil, "serve", "--in-memory", "--listen", "fd:main")
	r.wantCode(64)
	r.wantStderr("systemd has passed no socket of this name")
}

// The first client makes systemd start the server, which then serves it.
func TestServeIsStartedByItsFirstClient(t *testing.T) {
	t.Parallel()
	peer.Need(t, "systemd-socket-activate")
	dir := t.TempDir()
	path, program := filepath.Join(dir, "sock"), filepath.Join(dir, "turnstile")
	r := startWith(t, func(cmd *exec.Cmd) {
		if err := os.Symlink(cmd.Path, program); err != nil {
			t.Fatal(err)
		}
		cmd.Args = []string{"sh", "-c", "umask 077; exec systemd-socket-activate --listen " + path + " --fdname main " +
			program + " serve --in-memory --listen fd:main"}
		cmd.Path = "/bin/sh"
	})
	if out, err := turnstile("create", "--connect", "unix:"+path, "/a").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := r.line(); !strings.HasPrefix(got, "serving unix:"+path+" ") {
		t.Errorf("got %q", got)
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}
