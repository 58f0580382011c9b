package queue

// Giving back what was claimed.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// returner is the part of a consumer that gives back what was claimed and no taker wants.
type returner struct {
	co       *consumer
	claiming chan struct{} // one slot: held while claiming items, and while giving some back

	// The dispatcher's mutex guards what follows.
	unreturned []*lease // claims without buffered items that the server has refused to take back
	linger     *time.Timer
	rested     time.Time // when the consumer last claimed or delivered something
}

// restart restarts the time after which buffered items that nothing takes are given back. The caller holds the
// dispatcher's mutex.
func (r *returner) restart() {
	r.rested = time.Now()
	if r.linger == nil {
		r.linger = time.AfterFunc(r.co.d.cfg.Linger, r.over)
		return
	}
	r.linger.Reset(r.co.d.cfg.Linger)
}

// stop ends the linger: no items are buffered. The caller holds the dispatcher's mutex.
func (r *returner) stop() {
	if r.linger != nil {
		r.linger.Stop()
	}
}

// over gives back items that no taker has wanted for a while. If the server refuses, or takers want some now, it tries
// again after the next linger.
func (r *returner) over() {
	r.co.d.background(func() {
		_ = r.release(r.co.ctx, true)
		r.co.d.mu.Lock()
		defer r.co.d.mu.Unlock()
		if len(r.co.leases) > 0 || len(r.unreturned) > 0 {
			r.restart()
		}
	})
}

// release gives back the buffered items, and removes the watches that tell of more. If idle is set, it does nothing
// while takers want items.
func (r *returner) release(ctx context.Context, idle bool) error {
	if given, err := r.returnAll(ctx, idle); err != nil || !given {
		return err
	}
	r.co.d.mu.Lock()
	r.co.pace = 1
	watches := r.co.forgetAll()
	r.co.d.mu.Unlock()
	closeAll(watches)
	return nil
}

// returnAll gives back the buffered items. If idle is set and takers want items, it does nothing and returns false.
//
// It takes all items out of the buffer at once, and nothing is claimed until they are back. Otherwise a taker that
// comes meanwhile would get what is behind them: a later claim of this consumer, or the next one. If the server
// refuses to take items back they are buffered again, or given back later. If there is no answer, because ctx or the
// consumer has ended, it is unknown whose they are, and they go back when the consumer's node does.
func (r *returner) returnAll(ctx context.Context, idle bool) (bool, error) {
	if err := r.begin(ctx); err != nil {
		return false, err
	}
	defer r.end()
	errs := r.returnAgain(ctx)
	d := r.co.d
	d.mu.Lock()
	if idle && (len(d.takers) > 0 || time.Since(r.rested) < d.cfg.Linger) { // or a taker was served meanwhile
		d.mu.Unlock()
		return false, errors.Join(errs...)
	}
	leases := r.co.leases
	r.co.leases = nil
	buffers := make([][]bufferedItem, len(leases))
	for i, l := range leases {
		buffers[i], l.buffer, l.returning = l.buffer, nil, true
	}
	r.co.updateOwnership()
	d.mu.Unlock()
	for i, l := range leases {
		err := l.giveBack(ctx, buffers[i][0].seq)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if zk.OutcomeOf(err) != zk.Unknown && r.co.certify() == nil {
			r.rebuffer(l, buffers[i])
		}
	}
	return true, errors.Join(errs...)
}

// returnLater keeps a claim that has nothing to deliver and that the server has refused to take back: it is given
// back after the linger.
func (r *returner) returnLater(l *lease) {
	r.co.d.mu.Lock()
	defer r.co.d.mu.Unlock()
	if r.co.ctx.Err() != nil {
		return // it is free when the consumer's node goes
	}
	l.buffer = nil
	r.unreturned = append(r.unreturned, l)
	r.restart()
}

// returnAgain tries again to give back what the server has refused to take back. The caller has begun claiming.
func (r *returner) returnAgain(ctx context.Context) []error {
	r.co.d.mu.Lock()
	unreturned := r.unreturned
	r.unreturned = nil
	r.co.d.mu.Unlock()
	var errs []error
	for _, l := range unreturned {
		err := l.giveBack(ctx, l.claimed.First)
		switch {
		case err == nil:
			r.co.d.mu.Lock()
			r.co.dirty = true // it may come before what is claimed
			r.co.d.mu.Unlock()
		case zk.OutcomeOf(err) != zk.Unknown:
			r.returnLater(l)
		}
		errs = append(errs, err)
	}
	return errs
}

// rebuffer buffers items again that could not be given back, and certainly are this consumer's.
func (r *returner) rebuffer(l *lease, buffer []bufferedItem) {
	r.co.d.mu.Lock()
	defer r.co.d.mu.Unlock()
	if r.co.ctx.Err() != nil {
		return // it is free when the consumer's node goes
	}
	l.buffer, l.returning = buffer, false
	r.co.add(l)
	r.restart()
	r.co.dirty = true // other claims of ours, which come first, were given back
	r.co.updateOwnership()
}

// begin waits until no other goroutine claims items for the consumer, or gives some back.
func (r *returner) begin(ctx context.Context) error {
	select {
	case r.claiming <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.co.ctx.Done():
		return context.Cause(r.co.ctx)
	}
}

// end lets others claim items, or give some back.
func (r *returner) end() { <-r.claiming }
