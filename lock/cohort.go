package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// cohort is the goroutines of this process that want one Mutex. They stand in a line of their own, first come first
// served, behind one node in the servers' line: when that node's turn comes, they pass the lock on in memory.
//
// Its states: nothing (nobody wants the lock); standing (a goroutine, stand, is on its way to a tenure); a tenure
// that is held; a tenure that is not held, because it is retained (nobody waits here) or parked (somebody waits here,
// and the bound of the hand-off is reached while a look at the line is under way).
type cohort struct {
	mutex *Mutex

	mu       sync.Mutex // guards the fields below; never held while anything is waited for
	queue    []*waiter
	standing bool
	giveUp   context.CancelFunc // ends the attempt of stand that is under way; nil if there is none
	tenure   *tenure
	heed     func() bool // ends the wait for the tenure's end; nil if there is no tenure
	held     bool
	bound    bound
	retained retention
}

// lock waits for the cohort's turn and the caller's in it.
//
// Thousands of goroutines may wait here, and a stack that is deeper than the smallest one doubles what each of them
// costs. So a caller waits for one channel, which takes less of the stack than two do, and the end of its context is
// another goroutine's to see.
func (c *cohort) lock(ctx context.Context) (*Hold, error) {
	w, h := c.enqueue(ctx)
	if h != nil {
		return h, nil
	}
	if w.queued != nil {
		return c.told(ctx, w)
	}
	var stop func() bool
	if ctx.Done() != nil && len(w.answer) == 0 {
		stop = context.AfterFunc(ctx, func() { c.abandon(ctx, w) })
	}
	a := <-w.answer
	if stop != nil {
		stop()
	}
	return a.hold, a.err
}

// told is the rest of lock for a waiter with a hook that wants to know whether it has to wait.
func (c *cohort) told(ctx context.Context, w *waiter) (*Hold, error) {
	a, ok := w.await(ctx, c.mutex.path)
	if !ok {
		c.abandon(ctx, w)
		a = <-w.answer
	}
	return a.hold, a.err
}

// enqueue puts the caller at the end of the local line, or gives it the lock if that is kept.
func (c *cohort) enqueue(ctx context.Context) (*waiter, *Hold) {
	c.mu.Lock()
	if h := c.fromRetained(); h != nil {
		c.mu.Unlock()
		return nil, h
	}
	w := newWaiter(&c.mutex.cfg.Hooks)
	if c.tenure != nil || len(c.queue) > 0 {
		w.behind()
	}
	c.queue = append(c.queue, w)
	first := c.tenure == nil && !c.standing
	if first {
		c.standing = true
	}
	c.mu.Unlock()
	if first {
		c.lead(ctx)
	}
	return w, nil
}

// abandon takes a waiter whose context has ended out of the local line, and answers it, unless it has its answer
// already.
func (c *cohort) abandon(ctx context.Context, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, w)
	if i < 0 {
		return
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	w.answer <- answer{err: c.mutex.failed(context.Cause(ctx))}
	if len(c.queue) == 0 {
		c.deserted()
	}
}

// queuedAll tells everybody who waits here that somebody is ahead.
func (c *cohort) queuedAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.queue {
		w.behind()
	}
}

// try takes the lock if nobody has it or waits for it, here or elsewhere.
func (c *cohort) try(ctx context.Context) (*Hold, error) {
	c.mu.Lock()
	if h := c.fromRetained(); h != nil {
		c.mu.Unlock()
		return h, nil
	}
	if c.tenure != nil || c.standing {
		c.mu.Unlock()
		return nil, ErrHeld
	}
	c.standing = true // who comes meanwhile queues behind this try
	c.mu.Unlock()
	t, err := c.mutex.cfg.tenure(c.mutex.tryPlace(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing = false
	if err != nil {
		if len(c.queue) > 0 {
			c.standUp()
		}
		return nil, c.mutex.failed(err)
	}
	c.begin(t)
	c.held = true
	return t.hold(c.unlock), nil
}

// standUp sends somebody to stand in line, unless somebody does. The caller holds c.mu.
func (c *cohort) standUp() {
	if !c.standing {
		c.standing = true
		go c.stand(nil)
	}
}

// lead asks for a place on the goroutine of the first who wants the lock, and takes it if the lock is free: two
// switches between goroutines less than if stand did it. If it is not, or ctx ends first, stand goes on from there
// for whoever waits here.
func (c *cohort) lead(ctx context.Context) {
	sess, err := c.mutex.client.Session(ctx)
	if err != nil {
		go c.stand(nil)
		return
	}
	asked := c.mutex.line.Ask(sess)
	place, err := asked.Place(ctx)
	if err == nil && place.First() && c.mutex.cfg.Delay == 0 && sess.Certify(ctx, place.Path()) == nil {
		c.settle(c.mutex.cfg.tenure(place, nil))
		return
	}
	go c.stand(asked)
}

// stand stands in the servers' line for whoever waits here, in the place that has been asked for if that is not nil.
// It ends when it has a tenure to give out, when nobody waits any more, or when there is nothing to wait for.
func (c *cohort) stand(asked *line.Entry) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.standing = false
			c.mu.Unlock()
			cancel()
			if asked != nil {
				asked.Abandon()
			}
			return
		}
		c.giveUp = cancel
		c.mu.Unlock()
		t, err := c.mutex.cfg.tenure(c.mutex.place(ctx, asked, nil, c.queuedAll))
		asked = nil
		given := ctx.Err() != nil // nobody waited for a while; somebody may again
		cancel()
		c.mu.Lock()
		c.giveUp = nil
		if err != nil && given {
			c.mu.Unlock()
			continue
		}
		c.mu.Unlock()
		c.settle(t, err)
		return
	}
}

// settle gives whoever waits here the tenure that standing in line has led to, or the error.
func (c *cohort) settle(t *tenure, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing = false
	if err != nil {
		c.fail(c.mutex.failed(err))
		return
	}
	c.begin(t)
	c.next()
}

// fail answers everybody who waits with err. The caller holds c.mu.
func (c *cohort) fail(err error) {
	for _, w := range c.queue {
		w.answer <- answer{err: err}
	}
	c.queue = nil
}

// begin starts a tenure. The caller holds c.mu, and says what becomes of it.
func (c *cohort) begin(t *tenure) {
	c.tenure, c.held = t, false
	c.bound = bound{at: time.Now()}
	c.retained = retention{}
	c.heed = context.AfterFunc(t.use, func() { c.ended(t) })
}

// ended sees to those who wait when a tenure serves nobody any more without our doing: its session ended, its node
// was deleted, or it was asked for. They are served in their order by the next tenure. Who holds a lock that was
// asked for has it until the unlock.
func (c *cohort) ended(t *tenure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.tenure != t:
	case c.held && t.err() == nil:
		c.heed = context.AfterFunc(t.ctx, func() { c.ended(t) })
	case c.held && errors.Is(t.err(), zk.ErrUncertain):
		// The node goes with the unlock, or when the holder has had time to stop: see line.Tenure.Lost. Whoever waits
		// here stands behind it.
		c.forget()
		c.relay()
	default:
		c.drop()
	}
}

// unlock takes the lock back from a hold.
func (c *cohort) unlock(t *tenure) *line.Removal {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenure != t {
		return t.leave() // it has ended before, and was left unless its session was uncertain
	}
	c.held = false
	return c.next()
}

// next decides what becomes of a tenure that nobody holds: it serves the next in the local line, goes to the end of
// the servers' line for them, is kept, or ends. The caller holds c.mu.
func (c *cohort) next() *line.Removal {
	t := c.tenure
	switch {
	case t.stopped() != nil:
		return c.drop()
	case len(c.queue) == 0:
		if c.retain() {
			return nil
		}
		return c.drop()
	case t.exhausted():
		return c.drop()
	}
	now := time.Now()
	limits := c.mutex.cfg.Handoff
	if c.bound.near(limits, t.turn, now) {
		c.bound.looking = true
		go c.look(t, t.turn, now)
	}
	switch {
	case !c.bound.reached(limits, t.turn, now):
		c.serve()
		return nil
	case c.bound.looking:
		return nil // parked: look decides
	default:
		return c.drop()
	}
}

// serve gives the lock to the first in the local line. The caller holds c.mu.
func (c *cohort) serve() {
	w := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.held = true
	w.answer <- answer{hold: c.tenure.hold(c.unlock)}
}

// drop ends the tenure, and sends somebody to the end of the servers' line if anybody waits here. The caller holds
// c.mu.
func (c *cohort) drop() *line.Removal {
	removal := c.forget().leave()
	c.relay()
	return removal
}

// forget parts with the tenure. The caller holds c.mu.
func (c *cohort) forget() *tenure {
	t := c.tenure
	c.tenure, c.held = nil, false
	c.retained.stop()
	c.heed() // or it would start a goroutine, to no purpose
	return t
}

// relay sends somebody to the end of the servers' line if anybody waits here. The caller holds c.mu.
func (c *cohort) relay() {
	if len(c.queue) > 0 {
		c.standUp()
	}
}

// deserted is called when the last in the local line has left it. The caller holds c.mu.
func (c *cohort) deserted() {
	switch {
	case c.giveUp != nil:
		c.giveUp()
	case c.tenure != nil && !c.held: // parked
		c.next()
	}
}

// look finds out whether anybody else stands in the line. What it finds is as of when it was sent.
func (c *cohort) look(t *tenure, turn int, sent time.Time) {
	others, err := t.place.Others(t.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenure != t {
		return
	}
	c.bound.looking = false
	if err != nil || others { // who cannot know lets others have their turn
		c.bound.crowded = true
	} else {
		c.bound.turn, c.bound.at = turn, sent
		c.attendOnce(t) // who passes the lock on for long is told of others rather than asks again and again
	}
	if !c.held && len(c.queue) > 0 {
		c.next()
	}
}
