//go:build unix

package partitions_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestHoldersAreToldBeforeOthersAcquire partitions an ensemble in every shape, as often as
// TURNSTILE_PARTITIONS_PHASES says. By default it has the two shapes that break clients which trust any answer, and
// one other that is drawn at random. With TURNSTILE_PARTITIONS_WRITE other projects are measured, too.
//
// Promise: 2
func TestHoldersAreToldBeforeOthersAcquire(t *testing.T) {
	phases, tick, seed := settings(t)
	servers := zookeeper(t, tick)
	us, v := cleaned(t, ours, servers), newVenue(servers, tick)
	for phase := range phases {
		for _, sh := range chosen(seed) {
			t.Run(fmt.Sprintf("%s/%d", sh.name, phase), func(t *testing.T) {
				newRun(t, []project{us}, sh, v, phase, seed).play()
			})
		}
	}
	if os.Getenv("TURNSTILE_PARTITIONS_WRITE") != "" {
		t.Run("others", measureOthers)
	}
}

// chosen returns the shapes of a run.
func chosen(seed uint64) []shape {
	if os.Getenv("TURNSTILE_PARTITIONS_PHASES") != "" {
		return shapes
	}
	return append(slices.Clone(shapes[:2]), shapes[2+seed%uint64(len(shapes)-2)])
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
