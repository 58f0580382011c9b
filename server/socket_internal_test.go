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

func TestUnixSocketOfABusyServerIsNotReplaced(t *testing.T) {
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
	if err := syscall.Listen(fd, 0); err != nil { // without accepting, like a stopped process
		t.Fatal(err)
	}
	for { // until the backlog is full
		nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "unix", path)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = nc.Close() })
	}
	if s, err := Start(t.Context(), Config{InMemory: true, Listen: []string{"unix:" + path}}); err == nil {
		_ = s.Close()
		t.Error("socket of a live server: got success, want an error")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("socket of the live server: got %v, want it unchanged", err)
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
		t.Errorf("got %v %v before chmod, want a socket that only the user may use", info.Mode(), err)
	}
}
