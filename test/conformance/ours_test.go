package conformance_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

// ours starts the embedded server in memory and on disk, configured as the profile's Apache ZooKeeper. The server
// handles and commits a single request in another way than several at once, so the server on disk runs twice if
// company makes sense for the profile's cases.
func ours(t *testing.T, profile string) []*target {
	t.Helper()
	cfg := server.Config{
		Listen:            []string{net.JoinHostPort(quietLoopback(), "0")},
		TickTime:          200 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
		ContainerInterval: 10 * time.Minute,
		ExtendedTypes:     true,
		FourLetterWords:   []string{"*"},
		SuperDigest:       superDigest,
	}
	switch profile {
	case "strict":
		cfg.ExtendedTypes, cfg.FourLetterWords, cfg.SuperDigest = false, nil, ""
		cfg.MaxClientConns, cfg.EnforceQuota, cfg.MaxFrame = 5, true, 4096
	case "named":
		cfg.FourLetterWords, cfg.EnforceQuota = []string{"mntr", "srst", "ruok", "isro"}, true
		cfg.EnsembleAuth, cfg.EnsembleNames = true, []string{"woo", "foo"}
	case "reaper":
		cfg.ContainerInterval = 50 * time.Millisecond
	}
	memory, disk, grouped := cfg, cfg, cfg
	memory.InMemory = true
	disk.Data, grouped.Data = t.TempDir(), t.TempDir()
	targets := []*target{startOurs(t, "ours in memory", memory), startOurs(t, "ours on disk", disk)}
	if profile == "main" {
		g := startOurs(t, "ours on disk in groups", grouped)
		g.company = 5
		targets = append(targets, g)
	}
	return targets
}

// quietLoopback is an address at which no client of another package's test looks for its server. A client that outlives
// its server tries its port again and again; if that is ours by now, its session uses up a zxid of a transcript.
func quietLoopback() string {
	if runtime.GOOS == "linux" {
		return "127.0.0.77" // all of 127.0.0.0/8 is there
	}
	return "127.0.0.1"
}

func startOurs(t *testing.T, name string, cfg server.Config) *target {
	t.Helper()
	srv, err := server.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	tg := &target{name: name, addr: srv.Addrs()[0].String()}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close %s: %v", name, err)
		}
	})
	if cfg.InMemory {
		return tg
	}
	tg.restart = func(t *testing.T) {
		t.Helper()
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		again := cfg
		again.Listen = []string{tg.addr}
		if srv, err = server.Start(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	return tg
}
