package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// wait waits until there may be something to take. Those who wait stand in line, and only the first of them has set alarms: a put wakes
// it, its leaving wakes the next, and nobody else.
//
// It returns when it is worth looking again. Whoever has become first looks once more after all alarms are set, so that nothing that has
// arrived before goes unseen.
func (d *desk) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // a new taker may not want to wait: he gets his look, and the place in the line stays
		select {
		case <-d.q.kick:
			cancel()
		case <-ctx.Done():
		}
	})
	defer cancel()
	err := d.await(ctx, cancel, &wg)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (d *desk) await(ctx context.Context, cancel func(), wg *sync.WaitGroup) error {
	if d.place == nil {
		place, err := line.Enter(ctx, d.sess, &d.waiting)
		if err != nil {
			return err
		}
		d.place = place
	}
	if !d.place.First() {
		d.q.mu.Lock()
		watches := d.silence()
		d.q.mu.Unlock()
		closeAll(watches)
		if err := d.place.Await(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			d.leave()
			if errors.Is(err, line.ErrGone) {
				return errAgain // somebody has deleted our node; the next step stands in line anew
			}
			return err
		}
	}
	if set, err := d.arm(ctx); set || err != nil {
		return err
	}
	d.q.mu.Lock()
	ready := d.complete(d.lines)
	deaf := slices.DeleteFunc(slices.Clone(d.lines), func(p int) bool { return !d.bells[p].rung() })
	due := d.nextDue
	all := d.all()
	d.q.mu.Unlock()
	for _, p := range deaf { // it has rung just now, or somebody has removed it
		if err := d.q.line(p).mend(ctx, d.sess); err != nil {
			return err
		}
	}
	if !ready {
		return nil
	}
	for _, a := range all {
		wg.Go(func() { d.listen(ctx, a, cancel) })
	}
	if due > 0 {
		timer := time.AfterFunc(time.Duration(max(1, due-d.q.clock.now()))*time.Millisecond, cancel)
		defer timer.Stop()
	}
	<-ctx.Done()
	return nil
}

// leave gives up the place among those who wait.
func (d *desk) leave() {
	if d.place != nil {
		d.place.Release()
		d.place = nil
	}
}

// relax takes back what only takers need.
func (d *desk) relax() {
	d.leave()
	d.q.mu.Lock()
	if len(d.windows) > 0 {
		d.q.mu.Unlock()
		return
	}
	watches := d.silence()
	d.q.mu.Unlock()
	closeAll(watches)
}

// arm sets the alarm that only the first of those who wait has, for what is put with a delay. It reports whether it
// had to.
func (d *desk) arm(ctx context.Context) (bool, error) {
	q := d.q
	q.mu.Lock()
	delayed := d.delayed.rung()
	q.mu.Unlock()
	if delayed {
		_, _, w, err := d.sess.GetW(ctx, q.path(dirDelayed))
		if err != nil {
			return false, err
		}
		q.mu.Lock()
		d.delayed = &alarm{watch: w}
		q.mu.Unlock()
	}
	return delayed, nil
}
