//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const lockJob = "locks"

// useLocks starts the goroutines of a client that use locks, one at a time. At the end each of them acquires every
// lock once more and then stops.
func useLocks(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	number := w.First/goroutinesPerClient + i // of the client
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
		var err error
		if takes[place], err = kindOf(place).open(client, w.Root+"/"+place, number); err != nil {
			return err
		}
	}
	for k := range goroutinesPerClient {
		c := contender{worker: w, client: client, number: w.First + i*goroutinesPerClient + k, takes: takes}
		c.mine = slices.DeleteFunc(slices.Clone(w.Places), func(place string) bool { return isSlow(place) != quiet(i) })
		wg.Go(func() { c.contend(ctx) })
	}
	return nil
}

// observed ends a worker whose observer failed: observers must survive whatever happens to connections and sessions.
func (w *worker) observed(place string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: observe %s: %v\n", place, err)
		os.Exit(1)
	}
}

// contender is a goroutine that uses locks, one at a time.
type contender struct {
	*worker
	client *zk.Client
	number int
	takes  map[string]take // by the name of the place
	mine   []string        // the places that it uses
}

// contend follows plans until ctx ends. Then the faults are over, and every acquisition must succeed.
func (c *contender) contend(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(c.Seed, uint64(c.number)))
	for ctx.Err() == nil {
		p := newPlan(rnd, c.mine)
		if k := kindOf(p.place); k.disturb != nil && p.disturb%k.often == 0 {
			k.disturb(ctx, c, p)
		} else {
			c.follow(ctx, p)
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.pause):
		}
	}
	ctx = context.WithoutCancel(ctx)
	for _, place := range c.Places {
		if restore := kindOf(place).restore; restore != nil {
			for !restore(ctx, c, place) {
			}
		}
	}
	for _, place := range c.Places {
		for !c.follow(ctx, plan{place: place, permits: permits, order: []int{0}, waits: true}) {
		}
	}
}

// follow follows one plan, and reports whether it acquired a hold.
func (c *contender) follow(ctx context.Context, p plan) bool {
	place := p.place
	asked := clock()
	g, err := c.takes[place](ctx, p)
	if err != nil {
		if gaveUp(err) {
			c.report(report{Place: place, Failed: true})
		}
		return false
	}
	// A moment counts as held if the context is still alive after the clock was read.
	got := clock()
	if c.gone(g) { // it ended before it was seen
		g.release(ctx, false)
		return false
	}
	h := lincheck.Hold{
		Client: c.number, Node: g.node, Session: g.sess.ID(), Token: g.token, Shared: g.shared, Permits: g.permits,
		Asked: asked, Got: got, Alive: got,
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
	all := c.nest(g, p, &h)
	for n, i := range p.order {
		if i >= len(all) { // that hold was not acquired
			continue
		}
		c.hold(place, all[i], p.hold/time.Duration(len(all)), &h)
		if h.Lost == "" && all[i].lost != nil {
			h.Lost = all[i].lost()
		}
		leave(ctx, all[i], p.waits && n == len(p.order)-1)
	}
	h.Ended = clock()
	c.report(report{Place: place, Hold: &h})
	return true
}

// gaveUp reports whether an acquisition failed by itself, and not because it was not to wait.
func gaveUp(err error) bool {
	return !errors.Is(err, lock.ErrHeld) && !errors.Is(err, elect.ErrLed) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// leave releases g.
func leave(ctx context.Context, g *holding, wait bool) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	g.release(leaving, wait)
}

// change upgrades or downgrades a hold. If that fails, the hold stays as it was, or has ended.
func (c *contender) change(g *holding, h *lincheck.Hold) {
	asked := clock()
	token, err := g.change(g.ctx, !h.Shared)
	done := clock()
	if err == nil && !c.gone(g) {
		h.Changes = append(h.Changes, lincheck.Change{Shared: !h.Shared, Token: token, Asked: asked, Done: done})
		h.Alive = done
	}
}

// nest acquires the planned holds nested in g, and returns g and them. It stops when g ends.
func (c *contender) nest(g *holding, p plan, h *lincheck.Hold) []*holding {
	g.alive = &h.Alive
	all := []*holding{g}
	if g.again == nil {
		return all
	}
	shared := h.Shared
	for _, change := range h.Changes {
		shared = change.Shared
	}
	h.Nested = make([]lincheck.Nested, 0, p.nested) // it must not move
	for range p.nested {
		inner, err := g.again(all[len(all)-1].ctx, shared)
		got := clock()
		if err != nil {
			break
		}
		if c.gone(g) { // the outer hold has ended, so this one may not be nested
			inner.release(g.ctx, false)
			break
		}
		h.Nested = append(h.Nested, lincheck.Nested{Token: inner.token, Alive: got})
		inner.alive = &h.Nested[len(h.Nested)-1].Alive
		all = append(all, inner)
	}
	return all
}

// hold holds g for the given time, or until it is lost.
func (c *contender) hold(place string, g *holding, length time.Duration, h *lincheck.Hold) {
	ctx := g.ctx
	if c.Deaf { // a deaf worker must be found before its hold would have ended anyway
		ctx, length = context.WithoutCancel(ctx), 3*length
	}
	stay(ctx, clock(), length, g.alive, func() { c.report(report{Place: place, Hold: h}) })
}

func (c *contender) gone(g *holding) bool { return !c.Deaf && g.ctx.Err() != nil }
