package lock

// The local queue of the goroutines of one process.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// A localQueue is the goroutines of this process that want one lock, in the order of their calls. They stand in groups,
// each behind one contender in the servers' line. While that is first, the goroutines of a group share it: one after
// the other, or all at a time if the queue shares.
//
// A Mutex has a queue without tickets: one group at a time. An RWMutex has one for its readers, which shares; their
// groups take tickets, as each call of Lock does, so that the readers and writers of a process keep their order.
// With StrictFIFO, its readers are single, and a Mutex does without the queue.
type localQueue struct {
	base   *base
	shares bool                      // several goroutines may hold at a time: readers
	single bool                      // every goroutine has a group of its own
	others func(line.Contender) bool // whose waiting bounds how long a group keeps the lock
	// contend returns a function that makes a group's contender first: the one that was asked for, if its session
	// lives.
	contend func(ctx context.Context, g *group) func(*zk.Session) (*line.Own, error)
	line    *line.Line // in which the groups of a queue without tickets stand
	tickets *ticket    // in whose order groups join the servers' line; nil if there is one group at a time

	mu      sync.Mutex // guards current, the groups and the tickets; never held while anything is waited for
	current *group     // which the next caller may join; nil if there is none
}

// A group is goroutines behind one contender. The queue's mu guards it.
//
// Its states: standing (ownership is nil); owning and held; owning and not held, because the lock is retained (no
// goroutine waits) or parked (some wait, and the bound of the hand-off is reached while the line is being
// checked); over.
type group struct {
	queue     *localQueue
	ticket    *ticket       // nil if the queue has none
	request   *line.Request // for the contender, by standInline; used by that and stand alone
	waiting   []*waiter
	behind    bool               // other contenders have been found ahead
	standing  *line.Own          // behind them; nil if that is not known
	giveUp    context.CancelFunc // ends the attempt of stand that is under way; nil if there is none
	ownership *line.Ownership    // nil until the contender is first
	stopEnded func() bool        // ends the wait for the ownership's end; nil if there is none
	holds     int                // that are not unlocked
	over      bool               // no goroutine may join, and the ownership serves none any more
	bound     bound
	watching  bool // a goroutine watches the servers' line
	retained  retention
	losses    losses // of its holds, for hooks
}

// lock waits for the turn of a group's contender, and for the caller's turn in the group.
//
// Thousands of goroutines may wait here, and a stack that is deeper than the smallest one doubles what each of them
// costs. So a caller waits for one channel, which takes less of the stack than two do, and another goroutine sees the
// end of its context.
func (q *localQueue) lock(ctx context.Context, r *report) (*Hold, error) {
	q.mu.Lock() // here, not in enter: a wait for it would need more stack there
	w, h, begun := q.enter(r)
	q.mu.Unlock()
	switch {
	case h != nil:
		return h, nil
	case begun == nil:
	case q.tickets == nil:
		begun.standInline(ctx)
	default:
		go begun.stand()
	}
	if w.report != nil {
		return q.lockTold(ctx, w)
	}
	var stop func() bool
	if ctx.Done() != nil && len(w.answer) == 0 {
		stop = context.AfterFunc(ctx, func() { q.cancel(ctx, w) })
	}
	a := <-w.answer
	if stop != nil {
		stop()
	}
	return a.hold, a.err
}

// lockTold is the rest of lock for a waiter with hooks.
func (q *localQueue) lockTold(ctx context.Context, w *waiter) (*Hold, error) {
	if w.queued == nil {
		w.report.enqueued(ctx, 0)
	}
	w.report.standsIn(func() *line.Own {
		q.mu.Lock()
		defer q.mu.Unlock()
		if o := w.group.ownership; o != nil {
			return o.Own()
		}
		return w.group.standing
	})
	a, ok := w.await(ctx)
	if !ok {
		q.cancel(ctx, w)
		a = <-w.answer
	}
	return a.hold, a.err
}

// enter gives the caller the lock if a group can give it out now, and otherwise puts the caller at the end of the
// queue. Begun is a new group that has yet to stand in line; nil if the caller joined one. The caller holds q.mu.
//
//go:noinline
func (q *localQueue) enter(r *report) (w *waiter, h *Hold, begun *group) {
	g := q.current
	if g == nil || !g.open() {
		begun = q.newGroup()
		if g = begun; !q.single {
			q.current = g
		}
	}
	if h = g.serveNow(); h != nil {
		return nil, h, nil
	}
	w = newWaiter(r, g.behind || !q.shares && (g.ownership != nil || len(g.waiting) > 0))
	w.group = g
	g.waiting = append(g.waiting, w)
	return w, nil, begun
}

// newGroup returns a group that is about to stand, behind all others. The caller holds q.mu.
func (q *localQueue) newGroup() *group {
	g := &group{queue: q}
	if q.tickets != nil {
		g.ticket = q.tickets.draw()
	}
	return g
}

// owning returns a group for an ownership that the caller has acquired. No goroutine can join it unless the caller
// makes it the current one, under q.mu.
func (q *localQueue) owning(o *line.Ownership) *group {
	g := &group{queue: q}
	g.begin(o)
	return g
}

// cancel takes a waiter whose context has ended out of the queue, and answers it, unless it has its answer already.
func (q *localQueue) cancel(ctx context.Context, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := w.group
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	w.answer <- answer{err: context.Cause(ctx)}
	switch {
	case len(g.waiting) > 0:
	case g.giveUp != nil:
		g.close()
		g.giveUp()
	case g.ownership != nil && g.holds == 0: // parked
		g.next()
	}
}

// try takes the lock, by own, if no other contender and no other goroutine has it or waits for it. It is for queues
// that do not share.
func (q *localQueue) try(own func() (*line.Ownership, error)) (*Hold, error) {
	q.mu.Lock()
	if g := q.current; g != nil {
		defer q.mu.Unlock()
		if h := g.serveNow(); h != nil {
			return h, nil
		}
		return nil, ErrHeld
	}
	g := q.newGroup()
	q.current = g // goroutines that come meanwhile queue behind this try
	q.mu.Unlock()
	o, err := own()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		g.begin(o)
		return g.serve(), nil
	case len(g.waiting) > 0:
		go g.stand()
	default:
		g.close()
	}
	return nil, err
}

// open reports whether another goroutine may join.
func (g *group) open() bool {
	switch {
	case g.over:
		return false
	case g.ownership == nil || !g.queue.shares:
		return true
	case g.ownership.Stopped() != nil || g.ownership.Spent():
		return false
	}
	return !g.bounded(time.Now())
}

// serveNow returns a hold if that takes no wait, and nil otherwise. The group is open. Where holders share, that is
// enough, and serveNow does not ask again whether the ownership has stopped: if it had stopped just now, the caller
// would have to wait for the last of the holders.
func (g *group) serveNow() *Hold {
	switch idle := g.holds == 0 && len(g.waiting) == 0; {
	case g.ownership == nil:
		return nil
	case g.queue.shares:
		return g.serve()
	case !idle || g.bound.silent || g.ownership.Stopped() != nil:
		return nil
	}
	return g.serve()
}

// serve gives the lock to one more goroutine.
func (g *group) serve() *Hold {
	g.holds++
	h := newHold(g.ownership, g)
	switch {
	case g.retained.idle:
		h.how, g.retained.idle = Retained, false
	case int64(h.token) != g.ownership.FirstToken():
		h.how = HandedOff
	}
	if g.queue.shares {
		h.grant.change = make(chan struct{}, 1)
	}
	return h
}

// serveFirst gives the lock to the first waiter.
func (g *group) serveFirst() {
	w := g.waiting[0]
	g.waiting[0] = nil
	g.waiting = g.waiting[1:]
	w.answer <- answer{hold: g.serve()}
}

// close lets no other goroutine join.
func (g *group) close() {
	g.over = true
	if g.queue.current == g {
		g.queue.current = nil
	}
}

// standInline asks for a contender on the first caller's goroutine, and acquires the lock if it is free. That is two
// switches between goroutines fewer than with stand. If it is not free, or ctx ends first, stand goes on from there for
// all waiters.
func (g *group) standInline(ctx context.Context) {
	b := g.queue.base
	sess, err := b.client.Session(ctx)
	if err != nil {
		go g.stand()
		return
	}
	g.request = g.queue.line.Ask(sess)
	own, err := g.request.Own(ctx)
	if err == nil && own.First() && b.cfg.Delay == 0 && sess.Certify(ctx, own.Path()) == nil {
		g.stood(b.begin(own))
		return
	}
	go g.stand()
}

// stand stands in the servers' line for all waiters. It ends when the group has an ownership to give out, when no
// goroutine waits any more, or when waiting makes no sense.
func (g *group) stand() {
	q := g.queue
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q.mu.Lock()
	g.giveUp = cancel
	if len(g.waiting) == 0 {
		g.close()
		cancel()
	}
	q.mu.Unlock()
	var o *line.Ownership
	err := context.Cause(ctx)
	if err == nil {
		o, err = q.base.own(ctx, q.contend(ctx, g))
	}
	if g.request != nil { // and not used
		g.request.Cancel()
	}
	if g.ticket != nil {
		g.ticket.drop(&q.mu)
	}
	g.stood(o, err)
}

// queued tells all waiters that other contenders are ahead of own.
func (g *group) queued(own *line.Own) {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	g.behind, g.standing = true, own
	for _, w := range g.waiting {
		w.behind()
	}
}

// stood gives the waiters the ownership that was acquired, or the error.
func (g *group) stood(o *line.Ownership, err error) {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	g.giveUp = nil
	if err != nil {
		g.close()
		for _, w := range g.waiting {
			w.answer <- answer{err: err}
		}
		g.waiting = nil
		return
	}
	g.begin(o)
	g.next()
}

// begin begins to serve from an ownership.
func (g *group) begin(o *line.Ownership) {
	g.ownership, g.bound = o, bound{at: time.Now()}
	if !g.queue.shares { // where holders share, none waits while there are some
		g.stopEnded = context.AfterFunc(o.Use(), func() { g.ended(o) })
	}
}

// ended decides for the waiters when an ownership was not released but has stopped: its session ended or is uncertain,
// its node was deleted, or it was revoked. The next ownership serves them, in their order. The holder of a revoked lock
// has it until it unlocks.
func (g *group) ended(o *line.Ownership) {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	switch {
	case g.over:
	case g.holds > 0 && o.Err() == nil:
		g.stopEnded = context.AfterFunc(o.Context(), func() { g.ended(o) })
	case g.holds > 0 && errors.Is(o.Err(), zk.ErrUncertain):
		// The node goes with the unlock, or when the holder has had time to stop: see line.Ownership.Lost. The next
		// contender stands behind it.
		g.pass()
	default:
		g.release()
	}
}

// giveBack takes the lock back from a hold.
func (g *group) giveBack(o *line.Ownership) *attempt.Removal {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	switch g.holds--; {
	case g.holds > 0:
		return nil
	case g.over:
		return o.Release(ErrUnlocked) // was released before, unless its session was uncertain or others waited
	default:
		return g.next()
	}
}

// next decides what becomes of an ownership: it serves waiters, is retained or parked, or ends. Unless the queue
// shares, it is not held.
func (g *group) next() *attempt.Removal {
	o, q := g.ownership, g.queue
	if q.shares {
		for len(g.waiting) > 0 && !o.Spent() {
			g.serveFirst()
		}
		switch {
		case g.holds == 0:
			return g.release()
		case len(g.waiting) > 0: // the ownership serves none of them
			g.pass()
		}
		return nil
	}
	idle := len(g.waiting) == 0
	switch {
	case idle && o.Use().Err() == nil && g.retain(): // its next use reads the clock
		return nil
	case idle, o.Stopped() != nil, o.Spent():
		return g.release()
	case !g.bounded(time.Now()):
		g.serveFirst()
		return nil
	case g.bound.checks > 0 && !g.bound.contended:
		return nil // parked: checkLine decides
	default:
		return g.release()
	}
}

// release ends the ownership, and has the waiters stand anew.
func (g *group) release() *attempt.Removal {
	g.losses.close() // or it would start a goroutine, to no purpose
	removal := g.ownership.Release(ErrUnlocked)
	g.pass()
	return removal
}

// pass lets no other goroutine join, and has the waiters stand in the servers' line anew, in a group that follows.
func (g *group) pass() {
	q := g.queue
	current := q.current == g
	g.close()
	g.retained.stop()
	if g.stopEnded != nil {
		g.stopEnded() // or it would start a goroutine, to no purpose
	}
	if len(g.waiting) == 0 {
		return
	}
	next := q.newGroup()
	next.waiting, g.waiting = g.waiting, nil
	for _, w := range next.waiting {
		w.group = next
	}
	if current {
		q.current = next
	}
	go next.stand()
}
