package queue

// Waiting for items.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// waiter is the part of a consumer that waits for items. Only the goroutine of serve uses it.
type waiter struct {
	co      *claimant
	fetcher *fetcher // what it knows of the queue: only the goroutine of serve uses that, too
	line    line.Line
	place   *line.Own // among the waiting consumers; nil while not waiting
}

func newWaiter(f *fetcher) *waiter {
	co := f.co
	return &waiter{co: co, fetcher: f, line: line.Line{
		Dir:     co.q.layout.path(dirWaiters),
		There:   true,
		Prefix:  func(guid string) string { return guid + "-wait-" },
		Markers: []line.Marker{"wait-"},
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return []byte(co.id) },
		ACL:     co.q.cfg.ACL,
		AnyACL:  co.q.cfg.AnyACL,

		Unordered: true, // if two are first, both set watches, and both wake where one would do
	}}
}

// wait waits until there may be something to take. Waiting consumers stand in line, and only the first has set
// watches: a put wakes it, its leaving wakes the next, and no others.
//
// It returns when it is worth looking again. A consumer that has become first looks once more after all watches are
// set, so that it sees everything that arrived before.
func (w *waiter) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.co.ctx, cancel)()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // a new taker may not want to wait: it gets its look, and the place in line stays
		select {
		case <-w.fetcher.takers.wakeup:
			cancel()
		case <-ctx.Done():
		}
	})
	defer cancel()
	err := w.await(ctx, cancel, &wg)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (w *waiter) await(ctx context.Context, cancel func(), wg *sync.WaitGroup) error {
	if w.place == nil {
		place, err := line.Enter(ctx, w.co.sess, &w.line)
		if errors.Is(err, line.ErrGone) {
			return zk.NoNode // another client has deleted the directory: the next step makes the queue's nodes again
		}
		if err != nil {
			return err
		}
		w.place = place
	}
	if !w.place.First() {
		closeAll(w.co.claims.Forget())
		if err := w.place.Await(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			w.leave()
			if errors.Is(err, line.ErrGone) {
				return errAgain // another client has deleted our node; the next step enters the line anew
			}
			return err
		}
	}
	gate, paused := w.co.claims.GateWatch(), w.fetcher.paused
	if limit := w.fetcher.limit; gate != nil && (paused || limit != nil && limit.items == 0) {
		// Until the gate changes, or the next item may be claimed, nothing else matters.
		wg.Go(func() { w.awaitChange(ctx, gate, cancel) })
		if !paused {
			defer w.until(limit.next, cancel)()
		}
		<-ctx.Done()
		return nil
	}
	if set, err := w.arm(ctx); set || err != nil {
		return err
	}
	watches, deaf := w.co.claims.Quiet(w.fetcher.priorities)
	for _, p := range deaf { // it has fired just now, or another client has removed it
		if err := w.co.q.layout.readyList(p).Mend(ctx, w.co.sess); err != nil {
			return err
		}
	}
	if watches == nil {
		return nil
	}
	for _, a := range watches {
		wg.Go(func() { w.awaitChange(ctx, a, cancel) })
	}
	if due := w.co.claims.NextDue(); due > 0 {
		defer w.until(due, cancel)()
	}
	<-ctx.Done()
	return nil
}

// until calls f at a time, in ms since 1970 by the servers' clock, or in an hour, unless stop is called before. In
// nanoseconds a time that is centuries ahead would overflow.
func (w *waiter) until(ms int64, f func()) (stop func() bool) {
	left := min(ms-w.co.q.clock.now(), time.Hour.Milliseconds())
	return time.AfterFunc(time.Duration(max(1, left))*time.Millisecond, f).Stop
}

// leave gives up the place among the waiting consumers.
func (w *waiter) leave() {
	if w.place != nil {
		w.place.Release()
		w.place = nil
	}
}

// standDown gives up the place in line, and begins the linger, after which the returner removes the watches.
//
// They stay until then because most consumers come back at once, for the next item: to remove them and set them again
// would take a fifth of all requests. What they tell is true as long as none has fired, however old it is, and each
// fires once at most for a consumer that does not come back. That goes for the gate, too: claims are made on condition
// of its version besides.
func (w *waiter) standDown() {
	w.leave()
	w.fetcher.returner.restart()
}

// arm sets the watch that only the first of the waiting consumers has, for items that are put with a delay. It
// reports whether it had to.
func (w *waiter) arm(ctx context.Context) (bool, error) {
	if w.co.claims.Knows(claims.Delayed) {
		return false, nil
	}
	_, _, fired, err := w.co.sess.GetW(ctx, w.co.q.layout.path(dirDelayed))
	if err != nil {
		return false, err
	}
	w.co.claims.Watch(claims.Delayed, fired)
	return true, nil
}

// awaitChange waits for the watch and then calls wake, unless ctx ends first.
func (w *waiter) awaitChange(ctx context.Context, on *claims.Watch, wake func()) {
	if _, err := on.Next(ctx); err != nil && ctx.Err() != nil {
		return
	}
	w.co.claims.Fired(on)
	wake()
}

func closeAll(watches []*zk.Watch) {
	for _, w := range watches {
		w.Close()
	}
}
