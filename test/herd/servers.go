package main

// The servers that are measured.

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
)

const ours, theirs = "embedded server", "ZooKeeper 3.8.0"

// servers starts the servers to measure on.
func servers(ctx context.Context, h *peer.Host) ([]target, error) {
	cfg := server.Config{Listen: []string{"127.0.0.1:0"}, InMemory: true, FourLetterWords: []string{"mntr"}}
	embedded, err := server.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h.Cleanup(func() { _ = embedded.Close() })
	//nolint:contextcheck // a peer ends with its host
	zookeeper := peer.ZooKeeper(h, peer.Options{Tick: 2 * time.Second, Heap: "512m"})
	return []target{{ours, embedded.Addrs()[0].String()}, {theirs, zookeeper.Addr(0)}}, nil
}
