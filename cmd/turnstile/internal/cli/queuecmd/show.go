package queuecmd

// turnstile queue ls, len and purge.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
)

// readyJSON is an item that is ready to be taken: what "turnstile queue ls --json" prints.
type readyJSON struct {
	ID         string            `json:"id"`
	Priority   int               `json:"priority"`
	EnqueuedAt string            `json:"enqueued_at"`
	Headers    map[string]string `json:"headers,omitempty"`
	bodyJSON
}

// countsJSON is what "turnstile queue len --json" prints.
type countsJSON struct {
	Path    string `json:"path"`
	Ready   int    `json:"ready"`
	Delayed int    `json:"delayed"`
	Claimed int    `json:"claimed"`
	Dead    int    `json:"dead"`
	Waiting int    `json:"waiting,omitempty"`
	Oldest  *int64 `json:"oldest_ready_ms,omitempty"`

	Paused *pauseJSON `json:"paused,omitempty"`
}

// purgedJSON is what the commands print that remove items.
type purgedJSON struct {
	Path   string `json:"path"`
	Purged int    `json:"purged"`
}

func newList(app *command.App) *cobra.Command {
	u := newAccess(app)
	ready := func(q *queue.Queue, ctx context.Context) iter.Seq2[queue.Peeked, error] {
		return q.Items(ctx, queue.Ready)
	}
	return listing(u, &cobra.Command{
		Use:   "ls PATH",
		Short: "Show the next items without taking them",
		Long: `Shows the items that are ready, in the order in which they will be served. It leaves out claimed and
delayed items, which turnstile queue items shows.`,
		Example: `  turnstile queue ls /mail
  turnstile queue ls /mail -n 0 --json | jq -r .body`,
	}, "per item", "ID\tPRIORITY\tPUT\tBYTES\tBODY", ready, func(t *table, item queue.Peeked) error {
		if u.AsJSON {
			return u.App.JSON(readyJSON{
				item.ID, item.Priority, command.Timestamp(item.EnqueuedAt), item.Headers, newBodyJSON(item.Body),
			})
		}
		return t.row("%s\t%d\t%s\t%d\t%s%s", item.ID, item.Priority, command.Since(item.EnqueuedAt), len(item.Body),
			excerpt(item.Body), headers(item.Headers))
	})
}

// listing makes a command that shows the first few of what a queue has.
func listing[T any](u *access, cmd *cobra.Command, each, title string,
	all func(*queue.Queue, context.Context) iter.Seq2[T, error], show func(*table, T) error,
) *cobra.Command {
	var most int
	cmd.Args = command.ExactArgs(1, "PATH")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := u.parsePath(cmd, args); err != nil {
			return err
		}
		if most < 0 {
			return command.Usagef(cmd, "-n must not be negative; 0 means all")
		}
		none := func() error { return nil }
		return u.inspect(cmd.Context(), none, func(ctx context.Context, q *queue.Queue) error {
			t := &table{Writer: u.App.Table(), title: title}
			n := 0
			for x, err := range all(q, ctx) {
				if err != nil {
					return err
				}
				if n++; most > 0 && n > most {
					break
				}
				if err := show(t, x); err != nil {
					return command.OutputError(err)
				}
			}
			return command.OutputError(t.Flush())
		})
	}
	cmd.Flags().IntVarP(&most, "count", "n", 20, "how many to show; 0 means all")
	u.flags(cmd, "one JSON object "+each)
	return cmd
}

// headers writes an item's headers behind its body.
func headers(h map[string]string) string {
	var list []string
	for name, value := range h {
		list = append(list, name+"="+excerpt([]byte(value)))
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	return "  [" + strings.Join(list, " ") + "]"
}

// table is lines for people in columns. It is written now and then, because a queue may be long.
type table struct {
	*tabwriter.Writer
	title string
	rows  int
}

func (t *table) row(format string, a ...any) error {
	if t.rows++; t.rows == 1 {
		_ = command.Fprintf(t, "%s\n", command.Text(t.title))
	}
	_ = command.Fprintf(t, format+"\n", a...) // Flush says whether it could be written
	if t.rows%200 == 0 {
		return t.Flush()
	}
	return nil
}

func newLen(app *command.App) *cobra.Command {
	u := newAccess(app)
	cmd := &cobra.Command{
		Use:   "len PATH",
		Short: "Count the items by state",
		Long: `Counts the items: ready, delayed, claimed by a consumer, dead letters, and those
that wait for others of their groups. If some are ready, it also
shows how long the oldest of the next ones has been ready, without any delay before that. If the queue is
paused, it shows since when, and which process has paused it.`,
		Example: `  turnstile queue len /mail
  turnstile queue len --json /mail | jq .ready`,
		Args: command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			return u.count(cmd.Context())
		},
	}
	u.flags(cmd, "one JSON object")
	return cmd
}

func (u *access) count(ctx context.Context) error {
	none := func() error { return u.printCounts(queue.Counts{}, nil, nil) }
	return u.inspect(ctx, none, func(ctx context.Context, q *queue.Queue) error {
		n, err := q.Len(ctx)
		if err != nil {
			return err
		}
		var oldest *time.Duration
		if n.Ready > 0 {
			age, err := q.Age(ctx)
			switch {
			case err == nil:
				oldest = &age
			case !errors.Is(err, queue.ErrEmpty): // another consumer was quicker
				return err
			}
		}
		p, err := q.Paused(ctx)
		if err != nil {
			return err
		}
		return u.printCounts(n, oldest, p)
	})
}

func (u *access) printCounts(n queue.Counts, oldest *time.Duration, p *queue.Pause) error {
	j := countsJSON{
		Path: u.Path, Ready: n.Ready, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead,
		Waiting: n.Waiting, Paused: newPauseJSON(p),
	}
	waits, more := "", command.Text("")
	if n.Waiting > 0 {
		more = command.Sprintf("waiting  %d  (for others of their groups)\n", n.Waiting)
	}
	if p != nil {
		more += command.Sprintf("paused   %s\n", pauseText(p))
	}
	if oldest != nil {
		ms := oldest.Milliseconds()
		j.Oldest = &ms
		waits = fmt.Sprintf("  (the oldest for %v)", oldest.Round(time.Second))
	}
	return u.App.Report(u.AsJSON, j, "ready    %d%s\ndelayed  %d\nclaimed  %d\ndead     %d\n%s",
		n.Ready, waits, n.Delayed, n.Claimed, n.Dead, more)
}

func newPurge(app *command.App) *cobra.Command {
	u := newAccess(app)
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge PATH --yes",
		Short: "Remove all items that are not claimed",
		Long: `Removes every item that is ready, delayed, or waiting for others of its group, for good. Without --yes it
only counts them. Claimed items and dead letters stay (turnstile queue dead purge).`,
		Example: `  turnstile queue purge /mail --yes`,
		Args:    command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			return u.purge(cmd.Context(), yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "really remove them")
	u.flags(cmd, "one JSON object")
	return cmd
}

func (u *access) purge(ctx context.Context, yes bool) error {
	none := func() error { return u.purged(0) }
	return u.inspect(ctx, none, func(ctx context.Context, q *queue.Queue) error {
		if !yes {
			n, err := q.Len(ctx)
			if err != nil {
				return err
			}
			const lost = "%s: %d ready, %d delayed and %d waiting items would be lost for good"
			err = fmt.Errorf(lost, u.Path, n.Ready, n.Delayed, n.Waiting)
			return &command.Error{Code: command.ExitUsage, Err: err, Hint: "--yes removes them"}
		}
		n, err := q.Purge(ctx)
		if err != nil {
			return u.partly(n, "removed", err)
		}
		return u.purged(n)
	})
}

// partly is the error of what was done to some only.
func (u *access) partly(n int, done string, err error) error {
	if n > 0 {
		u.App.Say("%s: %s %s before the interruption; the rest is unchanged", u.Path, command.Plural(n, "item"), done)
	}
	return err
}

func (u *access) purged(n int) error {
	u.App.Did.Store(true)
	return u.App.Report(u.AsJSON, purgedJSON{Path: u.Path, Purged: n}, "%s removed\n", command.Plural(n, "item"))
}
