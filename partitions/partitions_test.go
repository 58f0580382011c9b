//go:build unix

package partitions_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestHoldersAreToldBeforeOthersAcquire partitions an ensemble in every shape.
func TestHoldersAreToldBeforeOthersAcquire(t *testing.T) {
	if testing.Short() {
		t.Skip("partitions take long")
	}
	phases, tick, seed := settings(t)
	servers := zookeeper(t, tick)
	us, v := cleaned(t, ours, servers), newVenue(servers, tick)
	for phase := range phases {
		for _, sh := range shapes {
			t.Run(fmt.Sprintf("%s/%d", sh.name, phase), func(t *testing.T) {
				newRun(t, []project{us}, sh, v, phase, seed).play()
			})
		}
	}
}

// cleaned returns the project with a check that it leaves nothing behind on the servers.
func cleaned(t *testing.T, p project, servers *peer.Cluster) project {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: servers.ConnectString()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	p.clean = func(t *testing.T, root string) {
		t.Helper()
		noEphemerals(t, client, root)
	}
	return p
}

// zookeeper starts three servers with links. They hang up on each other after five ticks of silence.
func zookeeper(t *testing.T, tick time.Duration) *peer.Cluster {
	t.Helper()
	return peer.Ensemble(t, 3, peer.Options{
		Links: true,
		Tick:  tick,
		Keys:  map[string]string{"syncLimit": "5", "initLimit": "10"},
		Properties: map[string]string{
			// Otherwise an election waits five seconds for a silent server.
			"zookeeper.cnxTimeout": "500",
			// Otherwise a server that was alone for long returns late.
			"zookeeper.fastleader.maxNotificationInterval": "1000",
		},
	})
}

// settings returns the number of partitions of each shape, the servers' tick and the seed: one short partition, or
// what make partitions sets in the environment.
func settings(t *testing.T) (phases int, tick time.Duration, seed uint64) {
	t.Helper()
	phases, tick, seed = 1, 500*time.Millisecond, rand.Uint64N(1<<32)
	var err error
	if text := os.Getenv("TURNSTILE_PARTITIONS_PHASES"); text != "" {
		if phases, err = strconv.Atoi(text); err != nil {
			t.Fatalf("TURNSTILE_PARTITIONS_PHASES: %v", err)
		}
	}
	if text := os.Getenv("TURNSTILE_PARTITIONS_TICK"); text != "" {
		if tick, err = time.ParseDuration(text); err != nil {
			t.Fatalf("TURNSTILE_PARTITIONS_TICK: %v", err)
		}
	}
	if text := os.Getenv("TURNSTILE_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TURNSTILE_SEED: %v", err)
		}
	}
	t.Logf("repeat with: make partitions PHASES=%d TICK=%v SEED=%d", phases, tick, seed)
	return phases, tick, seed
}
