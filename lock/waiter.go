package lock

import "context"

// A waiter is one goroutine in a local queue. It gets one answer.
type waiter struct {
	group  *group // the queue's mu guards it
	hooks  *Hooks
	answer chan answer   // one slot, so that answering never blocks
	queued chan struct{} // gets a value when somebody is found ahead; one slot; nil if nobody wants to know
}

type answer struct {
	hold *Hold
	err  error
}

func newWaiter(hooks *Hooks) *waiter {
	w := &waiter{hooks: hooks, answer: make(chan answer, 1)}
	if hooks.Enqueued != nil {
		w.queued = make(chan struct{}, 1)
	}
	return w
}

// behind tells the waiter that somebody is ahead.
func (w *waiter) behind() {
	select {
	case w.queued <- struct{}{}:
	default: // knows, or does not want to
	}
}

// await waits for the answer, until ctx ends, and tells the hook when somebody is found ahead.
func (w *waiter) await(ctx context.Context, path string) (a answer, ok bool) {
	queued := w.queued
	for {
		select {
		case <-queued:
			queued = nil // once is enough
			w.hooks.enqueued(ctx, path)
		case a := <-w.answer:
			select {
			case <-queued: // came first
				w.hooks.enqueued(ctx, path)
			default:
			}
			return a, true
		case <-ctx.Done():
			return answer{}, false
		}
	}
}
