package queuecmd

// turnstile queue cron.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
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
signal ends it. SCHEDULE is a cron expression of five fields: minute, hour, day of the month, month, and day
of the week, which is 0 to 7 or SUN to SAT; 0 and 7 are Sunday. If neither of the day fields begins with a
star, a day needs to be in one of them only, as for cron. SCHEDULE can also be @hourly, @daily, @weekly,
@monthly, @yearly, or @every and a duration in whole seconds; @every 10m comes at each multiple of 10 minutes
since 1970.

Times are UTC, whatever TZ is, so that every machine has the same. A SCHEDULE that begins with
CRON_TZ=Europe/Berlin has another place's. Where clocks are put forward there, a time that they leave out has
no item; where they are put back, one that comes twice has two.

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
			if len(args) == 3 && args[2] == "-" {
				return command.Usagef(cmd, "BODY is not read from standard input: write it behind SCHEDULE")
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
			if schedule.unzoned && !isUTC(time.Local, time.Now().Year()) {
				c.App.Say("the times of SCHEDULE are UTC; to have another place's, begin it with CRON_TZ=Europe/Berlin")
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

// isUTC reports whether a zone's clocks show UTC all year.
func isUTC(zone *time.Location, year int) bool {
	_, winter := time.Date(year, time.January, 1, 0, 0, 0, 0, zone).Zone()
	_, summer := time.Date(year, time.July, 1, 0, 0, 0, 0, zone).Zone()
	return winter == 0 && summer == 0
}

// run puts items until a signal comes. It stays while no server is in reach.
func (c *crontab) run(ctx context.Context, s parsed, m queue.Message) error {
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
				c.App.Did.Store(true)
				if err := c.App.Report(c.AsJSON, out, "%s %s\n", due.In(s.zone).Format(time.DateTime), id); err != nil {
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
