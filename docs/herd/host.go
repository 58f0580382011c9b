package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/server"
)

const ours, theirs = "embedded server", "ZooKeeper 3.8.0"

// A host plays the test that internal/peer wants to start its servers for.
type host struct {
	dir      string
	cleanups []func()
}

// A failure is what Fatalf and Skipf panic with; recover makes an error of it.
type failure struct{ text string }

func newHost() (*host, error) {
	dir, err := os.MkdirTemp("", "turnstile-herd-")
	return &host{dir: dir}, err
}

func (h *host) Helper()                   {}
func (h *host) Cleanup(f func())          { h.cleanups = append(h.cleanups, f) }
func (h *host) Fatalf(f string, a ...any) { panic(failure{fmt.Sprintf(f, a...)}) }
func (h *host) Skipf(f string, a ...any)  { panic(failure{fmt.Sprintf(f, a...)}) }
func (h *host) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "server-")
	if err != nil {
		h.Fatalf("%v", err)
	}
	return dir
}

// recover turns a panic of Fatalf into an error; deferred by whoever calls what may panic so.
func (h *host) recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s", p.text)
	default:
		panic(p)
	}
}

// close runs the cleanups, the last one first.
func (h *host) close() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
	_ = os.RemoveAll(h.dir)
}

// servers starts the servers to measure on.
func (h *host) servers(ctx context.Context) ([]target, error) {
	embedded, err := server.Start(ctx, server.Config{Listen: []string{"127.0.0.1:0"}, InMemory: true, FourLetterWords: []string{"mntr"}})
	if err != nil {
		return nil, err
	}
	h.Cleanup(func() { _ = embedded.Close() })
	zookeeper := peer.ZooKeeper(h, peer.Options{Tick: 2 * time.Second, Heap: "512m"}) //nolint:contextcheck // a peer ends with its host
	return []target{{ours, embedded.Addrs()[0].String()}, {theirs, zookeeper.Addr(0)}}, nil
}
