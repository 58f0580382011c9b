//go:build unix

package lin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// workerEnv carries a worker's orders: with it set, the test binary is a worker and no test.
const workerEnv = "TURNSTILE_LIN_WORKER"

// orders say what a worker process does: several clients, each with a session and a way to the servers of its own, use locks.
type orders struct {
	Servers []string // one connect string for each client
	Root    string   // where the locks are
	Places  []string // their names
	First   int      // number of the first goroutine
	Seed    uint64
	Deaf    bool // holders go on whatever their hold's context says
}

// report is a line of a worker's output. One that names no place says that the worker holds nothing and takes nothing any more.
type report struct {
	Place string             `json:",omitempty"`
	Hold  *lincheck.Hold     `json:",omitempty"` // when it begins, while it lasts, and when it ends
	Write *lincheck.Write    `json:",omitempty"`
	Seen  *lincheck.Sighting `json:",omitempty"`
}

func TestMain(m *testing.M) {
	if o := os.Getenv(workerEnv); o != "" {
		if err := work(o); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work runs a worker until its standard input ends. After the first line of that, every goroutine takes every lock once more and
// then none again.
func work(encoded string) error {
	w := worker{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(encoded), &w.orders); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var clients []*zk.Client
	var wg sync.WaitGroup
	for i, servers := range w.Servers {
		client, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: timeout})
		if err != nil {
			return err
		}
		clients = append(clients, client)
		for _, place := range w.Places {
			if observe := kindOf(place).observe; observe != nil {
				wg.Go(func() {
					w.observed(place, observe(ctx, client, w.Root+"/"+place, func(token int64) {
						seen := lincheck.Sighting{Observer: w.First + i, Token: token, At: clock()}
						w.report(report{Place: place, Seen: &seen})
					}))
				})
			}
		}
		takes := make(map[string]take)
		for _, place := range w.Places {
			if takes[place], err = kindOf(place).open(client, w.Root+"/"+place, w.First+i); err != nil {
				return err
			}
		}
		for k := range goroutinesPerClient {
			c := contender{worker: &w, number: w.First + i*goroutinesPerClient + k, takes: takes}
			// One of all these sees to the slow places, and does not keep the others waiting.
			c.mine = slices.DeleteFunc(slices.Clone(w.Places), func(place string) bool { return isSlow(place) != (i+k == 0) })
			wg.Go(func() { c.contend(ctx) })
		}
	}
	in := bufio.NewReader(os.Stdin)
	_, err := in.ReadString('\n')
	if err != nil {
		return nil // whoever started this has gone, and so does this
	}
	stop()
	wg.Wait()
	w.report(report{})
	_, _ = io.Copy(io.Discard, in)
	for _, c := range clients {
		_ = c.Close()
	}
	return nil
}

// worker is a worker process, seen from within.
type worker struct {
	orders
	mu  sync.Mutex // guards out
	out *json.Encoder
}

func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r) // if nobody listens any more, the input has ended, too
}

// observed ends a worker whose observer could not go on: it should whatever happens to connections and sessions.
func (w *worker) observed(place string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: observe %s: %v\n", place, err)
		os.Exit(1)
	}
}

// contender is a goroutine that uses locks, one at a time.
type contender struct {
	*worker
	number int
	takes  map[string]take // how, by the name of the place
	mine   []string        // the places that it uses
}

// contend follows plans until ctx ends. Then the faults are over, and everybody must be served.
func (c *contender) contend(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(c.Seed, uint64(c.number)))
	for ctx.Err() == nil {
		p := newPlan(rnd, c.mine)
		c.follow(ctx, p)
		select {
		case <-ctx.Done():
		case <-time.After(p.pause):
		}
	}
	for _, place := range c.Places {
		for done := false; !done; {
			done = c.follow(context.WithoutCancel(ctx), plan{place: place, permits: permits, waits: true})
		}
	}
}

// follow follows one plan, and reports whether it came to a hold.
func (c *contender) follow(ctx context.Context, p plan) bool {
	place := p.place
	asked := clock()
	g, err := c.takes[place](ctx, p)
	if err != nil {
		return false
	}
	// A moment counts as held if the context is still alive after the clock was read.
	got := clock()
	if c.gone(g) { // over before it was seen
		g.release(ctx, false)
		return false
	}
	h := lincheck.Hold{
		Client: c.number, Node: g.node, Token: g.token, Shared: g.shared, Permits: g.permits, Asked: asked, Got: got, Alive: got,
	}
	c.report(report{Place: place, Hold: &h})
	if p.write && !g.shared && g.permits == 0 {
		if version, err := g.write(c.Root + "/" + place); err == nil {
			c.report(report{Place: place, Write: &lincheck.Write{Client: c.number, Token: g.token, Version: version}})
		}
	}
	if p.change && g.change != nil {
		c.change(g, &h)
	}
	c.hold(place, g, p, &h)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	g.release(leaving, p.waits)
	h.Ended = clock()
	c.report(report{Place: place, Hold: &h})
	return true
}

// change makes a reader a writer or the other way round. If it fails, the hold is what it was, if it is still one.
func (c *contender) change(g *grip, h *lincheck.Hold) {
	asked := clock()
	token, err := g.change(g.ctx, !h.Shared)
	done := clock()
	if err == nil && !c.gone(g) {
		h.Changes = append(h.Changes, lincheck.Change{Shared: !h.Shared, Token: token, Asked: asked, Done: done})
		h.Alive = done
	}
}

// hold holds what c has for as long as is planned, or until it is lost.
func (c *contender) hold(place string, g *grip, p plan, h *lincheck.Hold) {
	told := h.Got
	over, length := g.ctx.Done(), p.hold
	if c.Deaf { // and so it must be found before its hold would have ended anyway
		over, length = nil, 3*p.hold
	}
	for {
		now := clock()
		if c.gone(g) {
			return
		}
		h.Alive = now
		left := length - time.Duration(now-h.Got)
		if left <= 0 {
			return
		}
		if now-told > int64(20*time.Millisecond) { // so that it is known if this is killed
			told = now
			c.report(report{Place: place, Hold: h})
		}
		select {
		case <-over:
		case <-time.After(min(left, time.Millisecond)):
		}
	}
}

func (c *contender) gone(g *grip) bool { return !c.Deaf && g.ctx.Err() != nil }
