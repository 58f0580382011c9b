package elect

// Running a function while elected.

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Run campaigns, calls lead while it leads, and resigns when lead has returned: not before, so that no other candidate
// leads while the function still works. The context that lead gets carries ctx's values, and ends with ctx as well as
// with the leadership.
//
// If the leadership was lost or revoked before lead returned, Run campaigns again, whatever lead returned
// (Hooks.Returned is told): so lead may be called many times. Otherwise Run returns what lead returned, and if no
// campaign is possible any more, what Campaign returns. To end ctx is the way to stop Run: then it returns nil, or an
// error that lead has returned by then, unless that only says that ctx has ended.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, l *Leadership) error) error {
	if lead == nil {
		return fmt.Errorf("elect: %w: lead is nil", zk.BadArguments)
	}
	for {
		l, err := c.Campaign(ctx)
		if err != nil {
			return attempt.Stopped(ctx, err)
		}
		lost, err := c.lead(ctx, l, lead)
		if lost == nil || ctx.Err() != nil {
			return attempt.Stopped(ctx, err)
		}
		l.report.returned(err)
	}
}

// lead calls the function for one leadership. It returns why the leadership ended before the function returned, if it
// did, and the function's error.
func (c *Candidate) lead(
	ctx context.Context, l *Leadership, lead func(ctx context.Context, l *Leadership) error,
) (lost, err error) {
	defer func() { // also when the function panics
		lost = l.ownership.Stopped() // revocation ends the leadership's context, and Resign then ends a leadership
		if err := l.Resign(); err != nil {
			lost = err
		}
	}()
	term, stop := line.Within(l.Context(), ctx)
	defer stop()
	if term.Err() != nil {
		return nil, context.Cause(term)
	}
	return nil, lead(term, l)
}
