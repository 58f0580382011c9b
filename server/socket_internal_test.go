//go:build linux

package server

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestUnixSocketOfAServerThatIsBusyIsNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil { // and accept nobody, as one that is stopped
		t.Fatal(err)
	}
	for { // until no more may wait
		nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "unix", path)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = nc.Close() })
	}
	if s, err := Start(t.Context(), Config{InMemory: true, Listen: []string{"unix:" + path}}); err == nil {
		_ = s.Close()
		t.Error("a server has taken the socket of another one that lives")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the server that lives: %v", err)
	}
}

func TestUnixSocketIsPrivateFromTheStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "sock")
	l, err := (&net.ListenConfig{Control: makeSocketPrivate}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v %v before chmod, want a socket for the user alone", info.Mode(), err)
	}
}
