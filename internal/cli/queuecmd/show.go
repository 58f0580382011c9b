package queuecmd

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

	"github.com/seed-a3166700/turnstile/internal/cli/command"
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
	Oldest  *int64 `json:"oldest_ready_ms,omitempty"`
}

// purgedJSON is what the commands print that remove items.
type purgedJSON struct {
	Path   string `json:"path"`
	Purged int    `json:"purged"`
}

func newList(app *command.App) *cobra.Command {
	u := &access{app: app}
	return listing(u, &cobra.Command{
		Use:   "ls PATH",
		Short: "Show the next items, and take none",
		Long: `Shows the items that are ready, in the order in which they will be served. Those that somebody works on and
those that are delayed are left out; turnstile queue len counts them.`,
		Example: `  turnstile queue ls /mail
  turnstile queue ls /mail -n 0 --json | jq -r .body`,
	}, "an item", "ID\tPRIORITY\tPUT\tBYTES\tBODY", func(ctx context.Context, q *queue.Queue) iter.Seq2[queue.Peeked, error] {
		return q.Items(ctx)
	}, func(t *table, item queue.Peeked) error {
		if u.asJSON {
			return u.app.JSON(readyJSON{
				item.ID, item.Priority, command.Timestamp(item.EnqueuedAt), item.Headers, newBodyJSON(item.Body),
			})
		}
		return t.row("%s\t%d\t%s\t%d\t%s%s", item.ID, item.Priority, command.Since(item.EnqueuedAt), len(item.Body), excerpt(item.Body), headers(item.Headers))
	})
}

// listing makes a command that shows the first few of what a queue has.
func listing[T any](u *access, cmd *cobra.Command, each, title string,
	all func(context.Context, *queue.Queue) iter.Seq2[T, error], show func(*table, T) error,
) *cobra.Command {
	var most int
	cmd.Args = command.ExactArgs(1, "PATH")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := u.parsePath(cmd, args); err != nil {
			return err
		}
		if most < 0 {
			return command.Usage(cmd, errors.New("-n must not be negative; 0 is all"))
		}
		return u.inspect(cmd.Context(), nothing, func(ctx context.Context, q *queue.Queue) error {
			t := &table{Writer: tabwriter.NewWriter(u.app.Stdout, 0, 0, 2, ' ', 0), title: title}
			n := 0
			for x, err := range all(ctx, q) {
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
	cmd.Flags().IntVarP(&most, "count", "n", 20, "how many; 0 is all")
	u.flags(cmd, "one JSON object "+each)
	return cmd
}

func nothing() error { return nil }

// headers writes an item's headers behind its body.
func headers(h map[string]string) string {
	var list []string
	for name, value := range h {
		list = append(list, command.Printable(name)+"="+excerpt([]byte(value)))
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
		fmt.Fprintln(t, t.title)
	}
	fmt.Fprintf(t, format+"\n", a...)
	if t.rows%200 == 0 {
		return t.Flush()
	}
	return nil
}

func newLen(app *command.App) *cobra.Command {
	u := &access{app: app}
	cmd := &cobra.Command{
		Use:   "len PATH",
		Short: "Count the items by state",
		Long: `Counts the items: ready ones, delayed ones, claimed ones, which somebody works on or is about to, and dead
letters. If some are ready it tells for how long the oldest of those that are next has been ready; a delay before
does not count.`,
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
	none := func() error { return u.printCounts(queue.Counts{}, nil) }
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
		return u.printCounts(n, oldest)
	})
}

func (u *access) printCounts(n queue.Counts, oldest *time.Duration) error {
	if u.asJSON {
		j := countsJSON{Path: u.path, Ready: n.Ready, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead}
		if oldest != nil {
			ms := oldest.Milliseconds()
			j.Oldest = &ms
		}
		return u.app.JSON(j)
	}
	waits := ""
	if oldest != nil {
		waits = fmt.Sprintf("  (the oldest for %v)", oldest.Round(time.Second))
	}
	return u.app.Printf("ready    %d%s\ndelayed  %d\nclaimed  %d\ndead     %d\n", n.Ready, waits, n.Delayed, n.Claimed, n.Dead)
}

func newPurge(app *command.App) *cobra.Command {
	u := &access{app: app}
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge PATH --yes",
		Short: "Remove all items that nobody works on",
		Long: `Removes every item that is ready or delayed, for good. Without --yes it only tells how many those are. Items
that somebody works on and dead letters stay (turnstile queue dead purge).`,
		Example: `  turnstile queue purge /mail --yes`,
		Args:    command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			return u.purge(cmd.Context(), yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
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
			return &command.Error{
				Code: command.ExitUsage, Err: fmt.Errorf("%s: %d ready and %d delayed items would be lost for good", u.path, n.Ready, n.Delayed),
				Hint: "--yes removes them",
			}
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
		u.app.Say("%s: %s %s before it was interrupted; the rest is as it was", u.path, command.Plural(n, "item"), done)
	}
	return err
}

func (u *access) purged(n int) error {
	if u.asJSON {
		return u.app.JSON(purgedJSON{Path: u.path, Purged: n})
	}
	return u.app.Printf("%s removed\n", command.Plural(n, "item"))
}
