package queue

// Giving back what was claimed.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// returner is the part of a consumer that gives back what was claimed and no taker wants.
type returner struct {
	co       *claimant
	takers   *takers
	claiming chan struct{} // one slot: held while claiming items, and while giving some back
	linger   *time.Timer   // calls over
}

func newReturner(co *claimant, takers *takers) *returner {
	r := &returner{co: co, takers: takers, claiming: make(chan struct{}, 1)}
	r.linger = time.AfterFunc(time.Hour, r.over)
	r.stop()
	return r
}

// restart restarts the time after which buffered items that nothing takes are given back.
func (r *returner) restart() { r.linger.Reset(r.co.q.cfg.Linger) }

// stop ends the linger: no items are buffered.
func (r *returner) stop() { r.linger.Stop() }

// over gives back items that no taker has wanted for a while. If the server refuses, or takers want some now, it tries
// again after the next linger.
func (r *returner) over() {
	r.co.q.background(func() {
		_ = r.release(r.co.ctx, true)
		if r.co.claims.Returnable() {
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
	r.co.claims.SetPace(1)
	closeAll(r.co.claims.Forget())
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
	buffered, ok := r.takeOut(idle)
	if !ok {
		return false, errors.Join(errs...)
	}
	for _, b := range buffered {
		err := r.co.giveBack(ctx, b.Lease, b.Items[0].Seq)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if zk.OutcomeOf(err) != zk.Unknown && r.co.certify() == nil {
			r.co.claims.Rebuffer(b)
			r.restart()
			r.takers.wake() // it may have found nothing meanwhile
		}
	}
	return true, errors.Join(errs...)
}

// takeOut takes out the buffered items, and returns false if idle is set and takers want them, or were served lately.
// No taker comes before it has all.
func (r *returner) takeOut(idle bool) (out []claims.Buffered, ok bool) {
	r.takers.between(func(waiting bool) {
		switch {
		case !idle:
			out, ok = r.co.claims.TakeOut(0)
		case !waiting:
			out, ok = r.co.claims.TakeOut(r.co.q.cfg.Linger)
		}
	})
	return out, ok
}

// returnLater keeps a claim that has nothing to deliver and that the server has refused to take back: it is given
// back after the linger.
func (r *returner) returnLater(l *claims.Lease) {
	r.co.claims.ReturnLater(l)
	r.restart()
}

// returnAgain tries again to give back what the server has refused to take back. The caller has begun claiming.
func (r *returner) returnAgain(ctx context.Context) []error {
	var errs []error
	for _, l := range r.co.claims.TakeUnreturned() {
		err := r.co.giveBack(ctx, l, l.Item)
		switch {
		case err == nil:
			r.co.claims.LookFirst() // it may come before what is claimed
		case zk.OutcomeOf(err) != zk.Unknown:
			r.returnLater(l)
		}
		errs = append(errs, err)
	}
	return errs
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
