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

// A localQueue is the goroutines of this process that want one Mutex, in the order of their calls. They stand behind
// one contender in the servers' line: while that is first, they pass the lock on in memory.
//
// Its states: idle (no goroutine wants the lock); standing (the goroutine stand is on its way to an ownership); owning
// and held; owning and not held, because the lock is retained (no goroutine waits) or parked (some wait, and the bound
// of the hand-off is reached while a look at the line is under way).
type localQueue struct {
	mutex *Mutex

	mu        sync.Mutex // guards the fields below; never held while anything is waited for
	waiting   []*waiter
	standing  bool
	giveUp    context.CancelFunc // ends the attempt of stand that is under way; nil if there is none
	ownership *line.Ownership
	stopEnded func() bool // ends the wait for the ownership's end; nil if there is no ownership
	held      bool
	bound     bound
	watching  bool // a goroutine watches the servers' line for this ownership
	retained  retention
}

// lock waits for the turn of the contender, and for the caller's turn in the queue.
//
// Thousands of goroutines may wait here, and a stack that is deeper than the smallest one doubles what each of them
// costs. So a caller waits for one channel, which takes less of the stack than two do, and another goroutine sees the
// end of its context.
func (q *localQueue) lock(ctx context.Context) (*Hold, error) {
	w, h := q.enter(ctx)
	if h != nil {
		return h, nil
	}
	if w.queued != nil {
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

// lockTold is the rest of lock for a waiter with a hook that wants to know whether it has to wait.
func (q *localQueue) lockTold(ctx context.Context, w *waiter) (*Hold, error) {
	a, ok := w.await(ctx, q.mutex.name)
	if !ok {
		q.cancel(ctx, w)
		a = <-w.answer
	}
	return a.hold, a.err
}

// enter puts the caller at the end of the queue, or gives it the lock if that is retained.
func (q *localQueue) enter(ctx context.Context) (*waiter, *Hold) {
	q.mu.Lock()
	if h := q.serveRetained(); h != nil {
		q.mu.Unlock()
		return nil, h
	}
	w := newWaiter(&q.mutex.cfg.Hooks)
	if q.ownership != nil || len(q.waiting) > 0 {
		w.behind()
	}
	q.waiting = append(q.waiting, w)
	first := q.ownership == nil && !q.standing
	if first {
		q.standing = true
	}
	q.mu.Unlock()
	if first {
		q.lead(ctx)
	}
	return w, nil
}

// cancel takes a waiter whose context has ended out of the queue, and answers it, unless it has its answer already.
func (q *localQueue) cancel(ctx context.Context, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	w.answer <- answer{err: context.Cause(ctx)}
	if len(q.waiting) == 0 {
		q.onEmpty()
	}
}

// queuedAll tells all waiters that other contenders are ahead.
func (q *localQueue) queuedAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		w.behind()
	}
}

// try takes the lock if no other contender and no other goroutine has it or waits for it.
func (q *localQueue) try(ctx context.Context) (*Hold, error) {
	q.mu.Lock()
	if h := q.serveRetained(); h != nil {
		q.mu.Unlock()
		return h, nil
	}
	if q.ownership != nil || q.standing {
		q.mu.Unlock()
		return nil, ErrHeld
	}
	q.standing = true // goroutines that come meanwhile queue behind this try
	q.mu.Unlock()
	o, err := q.mutex.own(ctx, q.mutex.tryFirst(ctx))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.standing = false
	if err != nil {
		q.standAgain()
		return nil, err
	}
	q.begin(o)
	q.held = true
	return newHold(o, q), nil
}

// standAgain sends a goroutine to the end of the servers' line if any waits here, unless one is on its way. The caller
// holds q.mu.
func (q *localQueue) standAgain() {
	if len(q.waiting) > 0 && !q.standing {
		q.standing = true
		go q.stand(nil)
	}
}

// lead asks for a contender on the first caller's goroutine, and takes the lock if it is free: two switches between
// goroutines less than if stand did it. If it is not free, or ctx ends first, stand goes on from there for all waiters.
func (q *localQueue) lead(ctx context.Context) {
	sess, err := q.mutex.client.Session(ctx)
	if err != nil {
		go q.stand(nil)
		return
	}
	asked := q.mutex.line.Ask(sess)
	own, err := asked.Own(ctx)
	if err == nil && own.First() && q.mutex.cfg.Delay == 0 && sess.Certify(ctx, own.Path()) == nil {
		q.stood(q.mutex.begin(own))
		return
	}
	go q.stand(asked)
}

// stand stands in the servers' line for all waiters, with the contender that was asked for if that is not nil. It ends
// when it has an ownership to give out, when no goroutine waits any more, or when waiting makes no sense.
func (q *localQueue) stand(asked *line.Request) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.standing = false
			q.mu.Unlock()
			cancel()
			if asked != nil {
				asked.Cancel()
			}
			return
		}
		q.giveUp = cancel
		q.mu.Unlock()
		o, err := q.await(ctx, asked)
		asked = nil
		given := ctx.Err() != nil // no goroutine waited for a while; one may again
		cancel()
		q.mu.Lock()
		q.giveUp = nil
		q.mu.Unlock()
		if err != nil && given {
			continue
		}
		q.stood(o, err)
		return
	}
}

// await waits until our contender is first: the one that was asked for, if that is not nil and its session lives.
func (q *localQueue) await(ctx context.Context, asked *line.Request) (*line.Ownership, error) {
	defer func() {
		if asked != nil {
			asked.Cancel()
		}
	}()
	return q.mutex.own(ctx, func(sess *zk.Session) (*line.Own, error) {
		if asked != nil && asked.Session() != sess {
			asked.Cancel() // its node has ended with its session, but a merged release waits for its answer
			asked = nil
		}
		request := asked
		if asked = nil; request == nil {
			request = q.mutex.line.Ask(sess)
		}
		return q.mutex.first(ctx, request, q.queuedAll)
	})
}

// stood gives the waiters the ownership that standing in line has led to, or the error.
func (q *localQueue) stood(o *line.Ownership, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.standing = false
	if err != nil {
		for _, w := range q.waiting {
			w.answer <- answer{err: err}
		}
		q.waiting = nil
		return
	}
	q.begin(o)
	q.next()
}

// begin begins to serve from an ownership. The caller holds q.mu, and says what becomes of it.
func (q *localQueue) begin(o *line.Ownership) {
	q.ownership, q.held, q.watching = o, false, false
	q.bound = bound{at: time.Now()}
	q.retained = retention{}
	q.stopEnded = context.AfterFunc(o.Use(), func() { q.ended(o) })
}

// ended sees to the waiters when an ownership has stopped without our doing: its session ended, its node was deleted,
// or it was revoked. The next ownership serves them, in their order. The holder of a revoked lock has it until it
// unlocks.
func (q *localQueue) ended(o *line.Ownership) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ownership != o:
	case q.held && o.Err() == nil:
		q.stopEnded = context.AfterFunc(o.Context(), func() { q.ended(o) })
	case q.held && errors.Is(o.Err(), zk.ErrUncertain):
		// The node goes with the unlock, or when the holder has had time to stop: see line.Ownership.Lost. Our next
		// contender stands behind it.
		q.detach()
		q.standAgain()
	default:
		q.release()
	}
}

// take takes the lock back from a hold.
func (q *localQueue) take(o *line.Ownership) *line.Removal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ownership != o {
		return o.Release(ErrUnlocked) // it has ended before, and was released unless its session was uncertain
	}
	q.held = false
	return q.next()
}

// next decides what becomes of an ownership that is not held: it serves the next waiter, is retained or parked, or
// ends. The caller holds q.mu.
func (q *localQueue) next() *line.Removal {
	o := q.ownership
	switch {
	case o.Stopped() != nil:
		return q.release()
	case len(q.waiting) == 0:
		if q.retain() {
			return nil
		}
		return q.release()
	case o.Exhausted():
		return q.release()
	}
	now, turn, limits := time.Now(), o.Turn(), q.mutex.cfg.Handoff
	if q.bound.near(limits, turn, now) {
		q.bound.looking = true
		go q.look(o, turn, now)
	}
	switch {
	case !q.bound.reached(limits, turn, now):
		q.serve()
		return nil
	case q.bound.looking:
		return nil // parked: look decides
	default:
		return q.release()
	}
}

// serve gives the lock to the first waiter. The caller holds q.mu.
func (q *localQueue) serve() {
	w := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	q.held = true
	w.answer <- answer{hold: newHold(q.ownership, q)}
}

// release ends the ownership, and has the waiters stand in the servers' line anew. The caller holds q.mu.
func (q *localQueue) release() *line.Removal {
	removal := q.detach().Release(ErrUnlocked)
	q.standAgain()
	return removal
}

// detach parts with the ownership. The caller holds q.mu.
func (q *localQueue) detach() *line.Ownership {
	o := q.ownership
	q.ownership, q.held = nil, false
	q.retained.stop()
	q.stopEnded() // or it would start a goroutine, to no purpose
	return o
}

// onEmpty is called when the last waiter has left. The caller holds q.mu.
func (q *localQueue) onEmpty() {
	switch {
	case q.giveUp != nil:
		q.giveUp()
	case q.ownership != nil && !q.held: // parked
		q.next()
	}
}

// look finds out whether other contenders stand in the line. What it finds is as of when it was sent.
func (q *localQueue) look(o *line.Ownership, turn int, sent time.Time) {
	others, err := o.Own().Others(o.Context(), anyone)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ownership != o {
		return
	}
	q.bound.looking = false
	if err != nil || others { // a process that cannot know lets others have their turn
		q.bound.crowded = true
	} else {
		q.bound.turn, q.bound.at = turn, sent
		q.watchOnce() // a process that passes the lock on for long is told of others rather than asks again and again
	}
	if !q.held && len(q.waiting) > 0 {
		q.next()
	}
}
