//go:build linux

package hostile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// memoryBound is what the server may take, in MiB. docs/limits.md adds it up.
const memoryBound = 4 << 10

// strictFrom is the length of a run that judges times.
const strictFrom = 10 * time.Minute

// maxRatio bounds p99 of a whole run's attacks: so many times what it was before them.
const maxRatio = 10

// TestServerWithstandsHostileClients runs all attacks.
func TestServerWithstandsHostileClients(t *testing.T) {
	length, seed := settings(t)
	srv := serve(t)
	prepare(t, srv.addr)
	client := behave(t, srv.addr)
	chosen := append(slices.Clone(attacks), attack{name: everything})
	if only := os.Getenv("TURNSTILE_HOSTILE_ONLY"); only != "" {
		chosen = slices.DeleteFunc(chosen, func(a attack) bool { return a.name != only })
	}
	part := length / time.Duration(len(chosen)+3) // the quiet time, the attacks, and three for all at once

	lasts(part)
	res := &results{length: length, quietFiles: srv.descriptors()}
	quiet := client.taken()
	res.rows = append(res.rows, row{name: "none", took: quiet, peak: srv.peak()})
	t.Log(res.rows[0])
	var all []time.Duration
	for _, a := range chosen {
		before, length := srv.hits(), part
		if a.name == everything {
			length = 3 * part
		}
		stop := srv.attackers(a.name, seed)
		lasts(length)
		r := row{name: a.name, took: client.taken(), peak: srv.peak()}
		after := srv.hits()
		r.connections, r.megabytes = stop()
		r.hits = met(before, after)
		if r.connections == 0 {
			t.Errorf("%s: nobody has attacked", a.name)
		}
		all = append(all, r.took...)
		res.rows = append(res.rows, r)
		t.Log(r)
		if t.Failed() {
			break // it shows what has done it
		}
		if got := srv.settled(res.quietFiles); got != res.quietFiles {
			t.Errorf("%s: got %d descriptors of the server after the attack, want %d as before",
				a.name, got, res.quietFiles)
		}
		client.taken() // between attacks
	}
	client.end()
	srv.stop()
	for _, r := range res.rows {
		if r.peak > memoryBound {
			t.Errorf("%s: the server had %d MiB, want at most %d", r.name, r.peak, memoryBound)
		}
	}
	bound := maxRatio * p99(quiet)
	t.Logf("p99 quiet %v, under attack %v, bound %v; disconnected %d times",
		p99(quiet), p99(all), bound, client.disconnects.Load())
	if length < strictFrom {
		return
	}
	if got := p99(all); got > bound {
		t.Errorf("p99 under attack is %v, want at most %v", got, bound)
	}
	res.under = all
	if name := os.Getenv("TURNSTILE_HOSTILE_WRITE"); name != "" && !t.Failed() {
		res.write(t, name)
	}
}

func lasts(d time.Duration) {
	time.Sleep(d) // how long an attack lasts is what the run is asked for
}

// settings are how long the run is and its seed: what the variables say that make hostile sets, or else ten
// seconds.
func settings(t *testing.T) (length time.Duration, seed uint64) {
	t.Helper()
	length, seed = 10*time.Second, rand.Uint64N(1<<32)
	var err error
	if text := os.Getenv("TURNSTILE_HOSTILE"); text != "" {
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("TURNSTILE_HOSTILE: %v", err)
		}
	}
	if text := os.Getenv("TURNSTILE_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TURNSTILE_SEED: %v", err)
		}
	}
	t.Logf("again with: make hostile MINUTES=%g SEED=%d", length.Minutes(), seed)
	return length, seed
}

// prepare makes the nodes that attackers use.
func prepare(t *testing.T, addr string) {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ops := []zk.Op{
		zk.CreateOp(rootNode, nil, zk.Persistent), zk.CreateOp(listNode, nil, zk.Persistent),
		zk.CreateOp(bigNode, make([]byte, bigSize), zk.Persistent),
	}
	for i := range children {
		ops = append(ops, zk.CreateOp(fmt.Sprintf("%s/%0*d", listNode, childName, i), nil, zk.Persistent))
	}
	first := 3
	for len(ops) > 0 {
		if _, err := s.Multi(t.Context(), ops[:first]...); err != nil {
			t.Fatal(err)
		}
		ops = ops[first:]
		first = min(1000, len(ops))
	}
}

// met returns the limits that were met between two looks.
func met(before, after map[string]int) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if n := after[name] - before[name]; n > 0 {
			fmt.Fprintf(&b, ", %s %d", name, n)
		}
	}
	return strings.TrimPrefix(b.String(), ", ")
}
