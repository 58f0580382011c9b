package zk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// connected returns both ends of a connection.
func connected(t *testing.T, network string) (near, far net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if near, err = (&net.Dialer{}).DialContext(t.Context(), network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// It sends more both ways at once than the kernel buffers, so that both sides have to wait.
func TestSocketMovesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			near, far := connected(t, network)
			all := make([]byte, 8<<20)
			rand.NewChaCha8([32]byte{}).Read(all) //nolint:errcheck // has none
			var wg sync.WaitGroup
			for _, nc := range []net.Conn{near, far} {
				s := promptly(nc)
				wg.Go(func() {
					if n, err := s.Write(all); n != len(all) || err != nil {
						t.Errorf("wrote %d, %v", n, err)
					}
					if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Error(err)
					}
				})
				wg.Go(func() {
					var got bytes.Buffer
					for p := make([]byte, 100_000); ; { // some reads longer than readBuffer, and some shorter
						n, err := s.Read(p[:1+rand.IntN(len(p))]) //nolint:gosec // any will do
						got.Write(p[:n])
						if errors.Is(err, io.EOF) {
							break
						}
						if err != nil {
							t.Error(err)
							break
						}
					}
					if !bytes.Equal(got.Bytes(), all) {
						t.Errorf("read %d bytes that differ from the %d sent", got.Len(), len(all))
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestSocketFailsAsItsConnection(t *testing.T) {
	t.Parallel()
	fails := func(t *testing.T, want error, do func([]byte) (int, error)) {
		t.Helper()
		if n, err := do(make([]byte, 10)); n != 0 || !errors.Is(err, want) {
			t.Errorf("got %d, %v; want %v", n, err, want)
		}
	}
	t.Run("closed here while it reads", func(t *testing.T) {
		t.Parallel()
		near, _ := connected(t, "tcp")
		s := promptly(near)
		time.AfterFunc(10*time.Millisecond, func() { _ = near.Close() })
		fails(t, net.ErrClosed, s.Read)
		fails(t, net.ErrClosed, s.Write)
	})
	t.Run("out of time", func(t *testing.T) {
		t.Parallel()
		near, _ := connected(t, "tcp")
		if err := near.SetDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		s := promptly(near)
		fails(t, os.ErrDeadlineExceeded, s.Read)
		fails(t, os.ErrDeadlineExceeded, s.Write)
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		near, far := connected(t, "tcp")
		if err := errors.Join(far.(*net.TCPConn).SetLinger(0), far.Close()); err != nil {
			t.Fatal(err)
		}
		s := promptly(near)
		fails(t, syscall.ECONNRESET, s.Read)
		fails(t, syscall.EPIPE, s.Write)
	})
}

// A type that wraps a connection of package net may override its methods, which must be called.
func TestSocketLeavesOtherConnectionsAlone(t *testing.T) {
	t.Parallel()
	near, _ := connected(t, "tcp")
	wrapped := struct{ *net.TCPConn }{near.(*net.TCPConn)}
	if got := promptly(wrapped); got != io.ReadWriter(wrapped) {
		t.Errorf("got %T", got)
	}
}
