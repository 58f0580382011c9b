package lock

// A goroutine in a local queue.

import "context"

// A waiter is one goroutine in a local queue. It gets one answer.
type waiter struct {
	group  *group        // the queue's mu guards it
	report *report       // tells the hooks; nil if none wants to know
	answer chan answer   // one slot, so that answering never blocks
	queued chan struct{} // gets a value when another contender is found ahead; one slot; nil if that is known
}

type answer struct {
	hold *Hold
	err  error
}

// newWaiter returns a waiter. Behind says whether another contender is known to be ahead.
func newWaiter(r *report, behind bool) *waiter {
	w := &waiter{report: r, answer: make(chan answer, 1)}
	if r != nil && !behind { // without hooks, it makes no difference
		w.queued = make(chan struct{}, 1)
	}
	return w
}

// behind tells the waiter that another contender is ahead.
func (w *waiter) behind() {
	select {
	case w.queued <- struct{}{}:
	default: // it was told before, or has no hook
	}
}

// await waits for the answer, until ctx ends, and calls the hook when another contender is found ahead.
func (w *waiter) await(ctx context.Context) (a answer, ok bool) {
	queued := w.queued
	for {
		select {
		case <-queued:
			queued = nil // once is enough
			w.report.enqueued(ctx, w.report.took())
		case a := <-w.answer:
			select {
			case <-queued: // came first
				w.report.enqueued(ctx, w.report.took())
			default:
			}
			return a, true
		case <-ctx.Done():
			return answer{}, false
		}
	}
}
