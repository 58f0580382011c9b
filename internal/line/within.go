package line

// A context that ends with the ownership and with the caller.

import (
	"context"
	"time"
)

// Within returns the context of work that is done under own, the context of a hold or a leadership, on behalf of
// caller: it ends with either of the two, for its cause, and has the values of both and the caller's deadline. Stop
// must be called when the work is done.
func Within(own, caller context.Context) (work context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(own)
	w := &within{Context: ctx, cancel: cancel, own: own, caller: caller}
	detach := context.AfterFunc(caller, w.callOff)
	return w, func() {
		detach()
		cancel(nil)
	}
}

// within is the context of Within.
type within struct {
	context.Context //nolint:containedctx // it is one, and descends from own
	cancel          context.CancelCauseFunc
	own, caller     context.Context //nolint:containedctx // the two that end it
}

func (w *within) callOff() { w.cancel(context.Cause(w.caller)) }

// Deadline returns the caller's: a hold has none.
func (w *within) Deadline() (time.Time, bool) { return w.caller.Deadline() }

// Err returns nil until own or the caller's context has ended. It asks both: they look at the clock themselves, and
// work under this context must not learn of the end later than work under them. Once own has ended, w is about to.
func (w *within) Err() error {
	if w.caller.Err() != nil {
		w.callOff()
	}
	if w.own.Err() != nil {
		<-w.Done()
	}
	return w.Context.Err()
}

// Value returns own's value, or else the caller's.
func (w *within) Value(key any) any {
	if v := w.Context.Value(key); v != nil {
		return v
	}
	return w.caller.Value(key)
}
