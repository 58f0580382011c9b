package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// A counter's peer is a process that reads one command a line and answers each with one line:
//
//	open NAME KIND PATH    open a counter, or a value, and call it NAME
//	get NAME               its value
//	set NAME VALUE         "ok"
//	add NAME N             the value after it
//	each NAME TIMES        add 1 so many times, print "got NAME VALUE" for each, and then "ok"

// counterKind is a peer's recipe, and how ours reads its node.
type counterKind struct {
	kind   string // as the peer knows it
	java   bool
	layout counter.Layout
	sets   bool // whether it has set
}

func (k counterKind) String() string {
	if k.java {
		return "java-" + k.kind
	}
	return "kazoo-" + k.kind
}

var counterKinds = []counterKind{
	{kind: "long", java: true, layout: counter.Long, sets: true},
	{kind: "int", java: true, layout: counter.Int, sets: true},
	{kind: "count", java: true, layout: counter.Int, sets: true},
	{kind: "text", layout: counter.Text},
	{kind: "curator", layout: counter.Int},
}

func startCounters(t *testing.T, h *host, java bool) *queuePeer {
	t.Helper()
	if java {
		return startQueuePeer(t, "java", ownArgs(t, "CounterPeer", h.addr, millis(queueSession))...)
	}
	return startQueuePeer(t, python, "testdata/counter_peer.py", h.addr, millis(queueSession))
}

func needCounters(t *testing.T) {
	t.Helper()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
}

func ourCounter(t *testing.T, client *zk.Client, path string, layout counter.Layout) *counter.Counter {
	t.Helper()
	c, err := counter.New(client, path, counter.Config{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eachOf runs test for every kind of counter, with a peer that has opened its own, and ours on the same path.
func eachOf(
	t *testing.T, h *host, test func(t *testing.T, p *queuePeer, k counterKind, name string, c *counter.Counter),
) {
	t.Helper()
	client := classicClient(t, h, queueSession)
	for _, java := range []bool{true, false} {
		p := startCounters(t, h, java)
		for _, k := range counterKinds {
			if k.java != java {
				continue
			}
			name := k.String()
			path := "/counters-" + name + "/hits"
			if k.kind == "count" { // it reads the node when it starts, and must not find it empty
				p.order(t, "open seed int %s", path)
				p.order(t, "set seed 0")
			}
			p.order(t, "open %s %s %s", name, k.kind, path)
			test(t, p, k, name, ourCounter(t, client, path, k.layout))
		}
	}
}

// TestCountersAreThoseOfThePeers adds on both sides of each counter: in turn, with negative numbers, and at the same
// time.
//
// Promise: 14
func TestCountersAreThoseOfThePeers(t *testing.T) {
	t.Parallel()
	needCounters(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		eachOf(t, h, func(t *testing.T, p *queuePeer, k counterKind, name string, c *counter.Counter) {
			t.Helper()
			want := int64(0)
			for i, n := range []int64{1, 258, -1000, 70_000, -2} {
				var got int64
				var err error
				want += n
				if i%2 == 0 {
					got, err = strconv.ParseInt(p.order(t, "add %s %d", name, n), 10, 64)
				} else {
					got, err = c.Add(t.Context(), n)
				}
				if err != nil || got != want {
					t.Fatalf("%v, step %d: got %d, %v, want %d", k, i, got, err, want)
				}
			}
			if k.sets {
				p.order(t, "set %s 77", name)
				want = 77
			}
			values := together(t, p, name, c)
			slices.Sort(values)
			for i, v := range values {
				if v != want+int64(i)+1 {
					t.Fatalf("%v: call %d got %d, want %d: one was lost or counted twice", k, i, v, want+int64(i)+1)
				}
			}
			if got, err := c.Get(t.Context()); err != nil || got != values[len(values)-1] {
				t.Errorf("%v: got %d, %v, want %d", k, got, err, values[len(values)-1])
			}
			wantSoon(t, p, name, strconv.FormatInt(values[len(values)-1], 10))
		})
	})
}

// together adds on both sides at once, and returns what each of the calls got.
func together(t *testing.T, p *queuePeer, name string, c *counter.Counter) []int64 {
	t.Helper()
	const goroutines, each, theirs = 4, 50, 100
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				v, err := c.Add(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, v)
				mu.Unlock()
			}
		})
	}
	p.order(t, "each %s %d", name, theirs)
	wg.Wait()
	for range theirs {
		v, err := strconv.ParseInt(p.next(t, name), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) != goroutines*each+theirs {
		t.Fatalf("%d calls have returned, want %d", len(all), goroutines*each+theirs)
	}
	return all
}

// wantSoon waits until the peer, which may learn of changes by a watch, knows the value.
func wantSoon(t *testing.T, p *queuePeer, name, want string) {
	t.Helper()
	deadline := time.Now().Add(queuePatience)
	for got := ""; got != want; got = p.order(t, "get %s", name) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: the peer has %s, want %s", name, got, want)
		}
	}
}

// TestSequencesAndCachedAtomicLongsGiveOutDifferentIds claims ids from one node on both sides.
//
// Promise: 14
func TestSequencesAndCachedAtomicLongsGiveOutDifferentIds(t *testing.T) {
	t.Parallel()
	needCounters(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path, n = "/issued", 200
		s, err := counter.NewSequence(classicClient(t, h, queueSession), path, counter.SequenceConfig{Block: 10})
		if err != nil {
			t.Fatal(err)
		}
		p := startCounters(t, h, true)
		p.order(t, "open ids cached %s", path)
		seen := map[int64]bool{}
		for range n {
			ours, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := strconv.ParseInt(p.order(t, "add ids 1"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if seen[ours] || seen[theirs] || ours == theirs {
				t.Fatalf("%d or %d was given out twice", ours, theirs)
			}
			seen[ours], seen[theirs] = true, true
		}
	})
}

// TestValuesAreThoseOfSharedValue sets, seeds and watches on both sides.
//
// Promise: 14
func TestValuesAreThoseOfSharedValue(t *testing.T) {
	t.Parallel()
	needCounters(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		v, err := counter.NewValue(classicClient(t, h, queueSession), "/values/color", counter.ValueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		p := startCounters(t, h, true)
		p.order(t, "open color value /values/color")
		now, err := v.Seed(t.Context(), []byte("ours"))
		if err != nil || string(now.Data) != "seed" {
			t.Fatalf("got %q, %v, want the seed of the peer, which came first", now.Data, err)
		}
		next, done, err := v.CompareAndSet(t.Context(), now, []byte("red"))
		if err != nil || !done {
			t.Fatalf("got %v, %v", done, err)
		}
		wantSoon(t, p, "color", "red")
		ctx, cancel := context.WithTimeout(t.Context(), queuePatience)
		defer cancel()
		for now, err := range v.Watch(ctx) {
			switch {
			case err != nil:
				t.Fatal(err)
			case string(now.Data) == "red":
				p.order(t, "set color blue")
				continue
			case string(now.Data) != "blue":
				t.Errorf("got %q, want blue", now.Data)
			}
			break
		}
		if _, done, err := v.CompareAndSet(t.Context(), next, []byte("green")); done || err != nil {
			t.Errorf("got %v, %v, want it refused: the peer has set another value", done, err)
		}
	})
}

// countingWorker is the program of the processes that TestKilledCountersLoseAndRepeatNothing kills.
const countingWorker = "count"

// count adds to a counter, again and again.
func count(args []string) error {
	ctx := context.Background()
	client, err := zk.Open(ctx, zk.Config{Servers: args[0], Timeout: victimSession})
	if err != nil {
		return err
	}
	defer client.Close()
	c, err := counter.New(client, args[1], counter.Config{Layout: counter.Long})
	if err != nil {
		return err
	}
	for {
		v, err := c.Add(ctx, 1)
		if err != nil {
			return err
		}
		fmt.Println("counted", v)
	}
}

// TestKilledCountersLoseAndRepeatNothing kills processes of either side that count, again and again, while another one
// of ours counts on. Of each process that was killed, at most the call that was under way is uncertain.
//
// Promise: 14
func TestKilledCountersLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	needCounters(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path, kills, before = "/killed/hits", 5, 30
		c := ourCounter(t, classicClient(t, h, queueSession), path, counter.Long)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var values []int64
		wg.Go(func() {
			for ctx.Err() == nil {
				v, err := c.Add(ctx, 1)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				values = append(values, v)
				mu.Unlock()
			}
		})
		add := func(v string) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			values = append(values, n)
		}
		victims := 0
		for range kills {
			countAndDie(t, h.addr, path, before, add)
			victims++
		}
		p := startCounters(t, h, true)
		p.order(t, "open hits long %s", path)
		if _, err := fmt.Fprintln(p.orders, "each hits 100000"); err != nil {
			t.Fatal(err)
		}
		for range before {
			add(p.next(t, "hits"))
		}
		p.kill()
		<-p.ended
		for rest := p.items("hits"); len(rest) > 0; {
			add(<-rest)
		}
		victims++
		stop()
		wg.Wait()
		total, err := c.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(values)
		if unique := len(slices.Compact(slices.Clone(values))); unique != len(values) {
			t.Errorf("%d of %d calls got a value that another one got", len(values)-unique, len(values))
		}
		// Each call has another value, so none of them was lost, and none repeated unless a value was skipped.
		if skipped := total - int64(len(values)); skipped < 0 || skipped > int64(victims) {
			t.Errorf("the counter is %d after %d calls and %d kills", total, len(values), victims)
		}
	})
}

// countAndDie starts a process of ours that counts, and kills it when it has counted so far. It adds all that the
// process has said.
func countAndDie(t *testing.T, addr, path string, before int, add func(string)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, countingWorker, addr, path)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.WaitDelay = time.Second
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it fails only if the process is gone
		_ = cmd.Wait()
	}()
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		value, ok := strings.CutPrefix(lines.Text(), "counted ")
		if !ok {
			continue
		}
		add(value)
		if n++; n == before {
			_ = cmd.Process.Kill() // what it has said before that is read to the end
		}
	}
	if n < before {
		t.Errorf("the process has counted to %d, want %d", n, before)
	}
}
