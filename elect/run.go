package elect

import (
	"context"
	"time"
)

// Run campaigns, calls lead while it leads, and resigns when lead has returned: not before, so that nobody else leads while the function
// still works. Lead's context ends when the leadership does, or ctx; it carries ctx's values.
//
// If the leadership ended before lead returned, Run campaigns again, whatever lead returned (Hooks.Lost is told): so lead may be called
// many times. Otherwise, and if ctx has ended, Run returns what lead returned. If ctx ends while Run campaigns, or no campaign is
// possible any more, it returns what Campaign does.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	for {
		l, err := c.Campaign(ctx)
		if err != nil {
			return err
		}
		lost, err := c.lead(ctx, l, lead)
		if lost == nil || ctx.Err() != nil {
			return err
		}
		if c.cfg.Hooks.Lost != nil {
			c.cfg.Hooks.Lost(lost, err)
		}
	}
}

// lead calls the function for one leadership. It returns why the leadership had ended when the function returned, and the
// function's error.
func (c *Candidate) lead(ctx context.Context, l *Leadership, lead func(ctx context.Context) error) (lost, err error) {
	defer func() { lost = l.Resign() }() // also when the function panics
	term, stop := newTermContext(ctx, l)
	defer stop()
	if c.cfg.Hooks.Elected != nil {
		c.cfg.Hooks.Elected(l)
	}
	if term.Err() != nil {
		return nil, context.Cause(term)
	}
	return nil, lead(term)
}

// termContext is what a leadership and the context of the caller have in common: it ends with either. Its Err looks at both, because who
// asks must not hear of the end late.
type termContext struct {
	context.Context //nolint:containedctx // it is one, of the leadership
	cancel          context.CancelCauseFunc
	caller          context.Context //nolint:containedctx // the other one
}

func newTermContext(ctx context.Context, l *Leadership) (context.Context, func()) {
	own, cancel := l.ownership.NewContext()
	t := &termContext{Context: own, cancel: cancel, caller: ctx}
	stop := context.AfterFunc(ctx, t.callOff)
	return t, func() {
		stop()
		cancel(nil)
	}
}

func (t *termContext) callOff() { t.cancel(context.Cause(t.caller)) }

// Deadline returns the caller's: a leadership has none.
func (t *termContext) Deadline() (time.Time, bool) { return t.caller.Deadline() }

// Err returns nil until the leadership or the caller's context has ended.
func (t *termContext) Err() error {
	if t.caller.Err() != nil {
		t.callOff()
	}
	return t.Context.Err()
}

// Value returns the caller's values, besides what contexts know of each other.
func (t *termContext) Value(key any) any {
	if v := t.Context.Value(key); v != nil {
		return v
	}
	return t.caller.Value(key)
}
