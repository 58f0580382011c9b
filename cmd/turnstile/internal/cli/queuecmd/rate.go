package queuecmd

// turnstile queue rate.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// rateJSON is what "turnstile queue rate --json" prints. Items, PerMS and Burst are missing if there is no rate.
type rateJSON struct {
	Path  string  `json:"path"`
	Items int     `json:"items,omitempty"`
	PerMS float64 `json:"per_ms,omitempty"`
	Burst int     `json:"burst,omitempty"`
}

// noRate ends a rate.
const noRate = "none"

// parseRate parses a rate such as 100/1m or 10/s.
func parseRate(text string, burst int) (queue.Rate, error) {
	if text == noRate {
		if burst != 0 {
			return queue.Rate{}, fmt.Errorf("--burst makes no sense with %s", noRate)
		}
		return queue.Rate{}, nil
	}
	count, per, ok := strings.Cut(text, "/")
	items, err := strconv.Atoi(count)
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per // 10/s is 10/1s
	}
	d, durationErr := command.ParseDuration(per)
	if !ok || err != nil || durationErr != nil || items < 1 || d <= 0 {
		const want = "RATE %q must be a number of items, a slash and a time, such as 10/s or 100/1m30s, or %s"
		err := fmt.Errorf(want, text, noRate)
		if ok && durationErr != nil {
			err = fmt.Errorf("%w: %w", err, durationErr)
		}
		return queue.Rate{}, err
	}
	return queue.Rate{Items: items, Per: d, Burst: burst}, nil
}

func newRate(app *command.App) *cobra.Command {
	u := newAccess(app)
	var burst int
	cmd := &cobra.Command{
		Use:   "rate PATH [RATE]",
		Short: "Bound how many items are delivered in a time",
		Long: `Sets how many items the queue at PATH delivers in a time, to all its consumers together, such as 10/s or
100/1m; none ends the bound. Each delivery counts, also that of an item that comes again. Without RATE it shows
the rate. A queue that does not exist is created when its rate is set.`,
		Example: `  turnstile queue rate /mail 100/1m --burst 10
  turnstile queue rate /mail
  turnstile queue rate /mail none`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			if len(args) > 2 {
				return command.Usagef(cmd, "unexpected argument %q", args[2])
			}
			if command.Given(cmd.Flags().Lookup("burst")) && burst < 1 {
				return command.Usagef(cmd, "--burst must be at least 1: %d", burst)
			}
			if len(args) == 1 {
				if burst != 0 {
					return command.Usagef(cmd, "--burst needs a RATE, such as 100/1m")
				}
				none := func() error { return u.reportRate(queue.Rate{}) }
				return u.inspect(cmd.Context(), none, u.printRate)
			}
			r, err := parseRate(args[1], burst)
			if err != nil {
				return command.Usage(cmd, err)
			}
			return u.with(cmd.Context(), func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
				if err := q.SetRate(ctx, r); err != nil {
					return err
				}
				return u.printRate(ctx, q)
			})
		},
	}
	cmd.Flags().IntVar(&burst, "burst", 0, "deliver at most so many at once (default 1)")
	u.flags(cmd, "one JSON object")
	return cmd
}

// printRate prints the queue's rate.
func (u *access) printRate(ctx context.Context, q *queue.Queue) error {
	r, err := q.Rate(ctx)
	if err != nil {
		return err
	}
	return u.reportRate(r)
}

func (u *access) reportRate(r queue.Rate) error {
	j := rateJSON{u.Path, r.Items, float64(r.Per) / float64(time.Millisecond), r.Burst}
	if r == (queue.Rate{}) {
		return u.App.Report(u.AsJSON, j, "none\n")
	}
	return u.App.Report(u.AsJSON, j, "%d/%v, at most %d at once\n", r.Items, r.Per, r.Burst)
}
