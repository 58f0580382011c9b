package queuecmd

// turnstile queue cron.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// cronJSON is what "turnstile queue cron --json" prints for each item that it has put.
type cronJSON struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Due  string `json:"due"`
	ID   string `json:"id"`
}

// crontab is "turnstile queue cron".
type crontab struct {
	*access
	messageFlags
	name string
}

func newCron(app *command.App) *cobra.Command {
	c := &crontab{access: newAccess(app)}
	cmd := &cobra.Command{
		Use:   "cron PATH SCHEDULE [BODY]",
		Short: "Put an item at each time of a schedule",
		Long: `Puts an item with the given BODY into the queue at PATH at each time that SCHEDULE tells, until a
signal ends it. SCHEDULE is a cron expression of five fields (minute, hour, day of the month, month, day of
the week), or @hourly, @daily, @weekly, @monthly, @yearly, or @every and a time. Times are local; a SCHEDULE
that begins with CRON_TZ=Europe/Berlin has another place's. Where clocks are put forward, a time that they
leave out has no item; where they are put back, one that comes twice has two. CRON_TZ=UTC knows neither.

Run the same command on several machines: each item is put exactly once, by one of them, and if that one
stops, another goes on. They belong together by --name, by default SCHEDULE and BODY. If none runs for a
while, one item is put for all times that were missed.

For each item that this process has put it prints its time and id. Exit codes: 0 after SIGTERM or SIGINT;
64 usage; 65 too large; 69 no server; 77 access denied.`,
		Example: `  turnstile queue cron /jobs '30 3 * * *' backup
  turnstile queue cron /jobs '@every 10m' --priority -5 'check the disks'
  turnstile queue cron /jobs 'CRON_TZ=Europe/Berlin 0 8 * * MON-FRI' --name greeting 'good morning'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parsePath(cmd, args); err != nil {
				return err
			}
			switch {
			case len(args) == 1:
				return command.Usagef(cmd, "SCHEDULE is missing: such are '30 3 * * *' and '@every 10m'")
			case len(args) > 3:
				const quote = "unexpected argument %q: quote a SCHEDULE and a BODY of several words"
				return command.Usagef(cmd, quote, args[3])
			}
			m, err := c.messageFlags.parse(cmd)
			if err != nil {
				return err
			}
			m.Body = []byte(strings.Join(args[2:], ""))
			if c.name == "" {
				c.name = strings.Join(args[1:], " ")
			}
			schedule, err := parseSchedule(args[1])
			if err != nil {
				return command.Usage(cmd, err)
			}
			return c.run(cmd.Context(), schedule, m)
		},
	}
	flags := cmd.Flags()
	c.messageFlags.flags(flags)
	flags.StringVar(&c.name, "name", "", "`name` of the periodic item in the queue (default SCHEDULE and BODY)")
	c.access.flags(cmd, "one JSON object an item")
	return cmd
}

// parseSchedule parses a cron expression.
func parseSchedule(text string) (queue.Schedule, error) {
	s, err := cron.ParseStandard(text)
	if after, ok := strings.CutPrefix(text, "@every "); ok && err == nil {
		if d, _ := time.ParseDuration(after); d < time.Second { // the parser takes such for one second
			err = errors.New("the time must be at least 1s")
		}
	}
	if err != nil {
		const such = "SCHEDULE %q is not understood: %w; such are '30 3 * * *' (daily at 3:30) and '@every 10m'"
		return nil, fmt.Errorf(such, text, err)
	}
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return multiples(every.Delay), nil
	}
	if s.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("SCHEDULE %q never comes: there is no such day", text)
	}
	return s, nil
}

// multiples are the times that are a multiple of a duration after 1970: the same for all processes, whenever they
// began, unlike those of cron's @every.
type multiples time.Duration

// Next returns the first multiple after t.
func (m multiples) Next(t time.Time) time.Time {
	d := time.Duration(m)
	return t.Add(d - time.Duration(t.UnixNano())%d)
}

// run puts items until a signal comes. It stays while no server is in reach.
func (c *crontab) run(ctx context.Context, s queue.Schedule, m queue.Message) error {
	repeat := func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
		output, fail := context.WithCancelCause(context.WithoutCancel(ctx))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(output, cancel)()
		err := q.Repeat(ctx, queue.Periodic{
			Name: c.name, Schedule: s,
			Message: func(time.Time) queue.Message { return m },
			Put: func(due time.Time, id string) {
				out := cronJSON{c.Path, c.name, command.Timestamp(due), id}
				c.App.Did = true
				if err := c.App.Report(c.AsJSON, out, "%s %s\n", due.Local().Format(time.DateTime), id); err != nil {
					fail(err)
				}
			},
		})
		if errors.Is(err, queue.ErrTooLarge) {
			hint := "store it elsewhere, and put its location"
			return &command.Error{Code: command.ExitData, Err: fmt.Errorf("%s: %w", c.Path, err), Hint: hint}
		}
		return cmp.Or(err, context.Cause(output))
	}
	return command.UntilSignal(ctx, func(ctx context.Context) error { return c.open(ctx, false, repeat) })
}
