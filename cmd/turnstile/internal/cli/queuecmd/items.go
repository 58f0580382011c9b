package queuecmd

// turnstile queue items, show and remove.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
)

// itemJSON is an item in whatever state: what "turnstile queue items --json" and "show --json" print.
type itemJSON struct {
	ID         string            `json:"id"`
	State      string            `json:"state"`
	Priority   int               `json:"priority"`
	Attempts   int               `json:"attempts"`
	EnqueuedAt string            `json:"enqueued_at"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
	Group      string            `json:"group,omitempty"`
	DueAt      string            `json:"due_at,omitempty"`
	Consumer   *consumerJSON     `json:"consumer,omitempty"`
	DiedAt     string            `json:"died_at,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Failures   []failureJSON     `json:"failures,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	bodyJSON
}

// consumerJSON is the consumer of a claimed item.
type consumerJSON struct {
	ID        string `json:"id"`
	Host      string `json:"host,omitempty"`
	PID       int    `json:"pid,omitempty"`
	Program   string `json:"program,omitempty"`
	Delivered bool   `json:"delivered"`
}

// removedJSON is what "turnstile queue remove --json" prints.
type removedJSON struct {
	Path    string `json:"path"`
	Removed int    `json:"removed"`
}

func newItemJSON(x queue.Peeked) itemJSON {
	j := itemJSON{
		ID: x.ID, State: x.State.String(), Priority: x.Priority, Attempts: x.Attempts,
		EnqueuedAt: command.Timestamp(x.EnqueuedAt), TimeoutMS: x.Timeout.Milliseconds(),
		Group:  x.Group,
		Reason: x.Reason, Headers: x.Headers, bodyJSON: newBodyJSON(x.Body),
	}
	for _, f := range x.Failures {
		j.Failures = append(j.Failures, failureJSON{command.Timestamp(f.At), f.Reason})
	}
	switch {
	case x.State == queue.Delayed:
		j.DueAt = command.Timestamp(x.DueAt)
	case x.State == queue.Dead:
		j.DiedAt = command.Timestamp(x.DiedAt)
	case x.Consumer != nil:
		c := x.Consumer
		j.Consumer = &consumerJSON{c.ID, c.Host, c.PID, c.Program, x.Delivered}
	}
	return j
}

// states are those of items, in the order in which "turnstile queue items" shows them.
var states = []queue.State{queue.Claimed, queue.Ready, queue.Waiting, queue.Delayed, queue.Dead}

// allStates is what --state takes beside the states.
const allStates = "all"

func newItems(app *command.App) *cobra.Command {
	u := newAccess(app)
	words := []string{allStates}
	for _, s := range states {
		words = append(words, s.String())
	}
	only := command.NewChoice(words...)
	items := func(q *queue.Queue, ctx context.Context) iter.Seq2[queue.Peeked, error] {
		return func(yield func(queue.Peeked, error) bool) {
			for _, s := range states {
				if only.Value != allStates && only.Value != s.String() {
					continue
				}
				for x, err := range q.Items(ctx, s) {
					if !yield(x, err) {
						return
					}
				}
			}
		}
	}
	cmd := listing(u, &cobra.Command{
		Use:   "items PATH",
		Short: "Show items with their states",
		Long: `Shows the items of the queue at PATH with their states: claimed, and by which consumer; ready, in the
order in which they will be served; waiting for another of their group; delayed; dead. It reads a part of
the queue at a time, so items that move meanwhile may be missing, or appear twice.`,
		Example: `  turnstile queue items /mail
  turnstile queue items /mail --state claimed
  turnstile queue items /mail --state delayed -n 0 --json | jq -r .due_at`,
	}, "per item", "ID\tSTATE\tPRIORITY\tPUT\tATTEMPTS\tBODY", items, func(t *table, x queue.Peeked) error {
		if u.AsJSON {
			return u.App.JSON(newItemJSON(x))
		}
		return t.row("%s\t%s\t%d\t%s\t%d\t%s%s", x.ID, stateText(x), x.Priority,
			command.Since(x.EnqueuedAt), x.Attempts, excerpt(x.Body), headers(x.Headers))
	})
	cmd.Flags().Var(&only, "state", "which items to show")
	return cmd
}

// stateText is an item's state for people.
func stateText(x queue.Peeked) string {
	switch x.State {
	case queue.Delayed:
		return "delayed until " + x.DueAt.Local().Format(time.DateTime)
	case queue.Claimed:
		return "claimed by " + consumerText(x)
	case queue.Dead:
		return "dead: " + command.Excerpt(x.Reason)
	case queue.Waiting:
		return "waiting in " + command.Excerpt(x.Group)
	case queue.Ready:
	}
	return x.State.String()
}

// consumerText names the consumer of an item.
func consumerText(x queue.Peeked) string {
	c := x.Consumer
	if c.Host == "" {
		return c.ID
	}
	return fmt.Sprintf("%s[%d] on %s", command.Excerpt(c.Program), c.PID, command.Excerpt(c.Host))
}

func newShow(app *command.App) *cobra.Command {
	u := newAccess(app)
	cmd := &cobra.Command{
		Use:   "show PATH ID",
		Short: "Show one item",
		Long: `Shows the item with that ID, whatever its state: what is known of it, then an empty line, and then its
body, byte for byte; at a terminal control characters are escaped. It looks through the queue for it.

Exit codes: 0; 1 there is no such item, because it is done or never was; 64 usage; 69 no server; 77 access
denied.`,
		Example: `  turnstile queue show /mail 9aad1607bfba5ebe8dcd8969fda19fc3
  turnstile queue show /mail 9aad1607bfba5ebe8dcd8969fda19fc3 --json | jq -r .state`,
		Args: command.ExactArgs(2, "PATH or ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			none := func() error { return u.notFound(args[1]) }
			return u.inspect(cmd.Context(), none, func(ctx context.Context, q *queue.Queue) error {
				x, err := q.Item(ctx, args[1])
				switch {
				case errors.Is(err, queue.ErrNotFound):
					return none()
				case err != nil:
					return err
				case u.AsJSON:
					return u.App.JSON(newItemJSON(x))
				}
				return command.OutputError(u.show(x))
			})
		},
	}
	u.flags(cmd, "one JSON object")
	return cmd
}

func (u *access) notFound(id string) error {
	err := fmt.Errorf("%s: there is no item %s", u.Path, id)
	hint := "turnstile queue items shows those that are there"
	return &command.Error{Code: command.ExitNotAcquired, Err: err, Hint: hint}
}

// show prints an item for people.
func (u *access) show(x queue.Peeked) error {
	var out bytes.Buffer
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name, format string, a ...any) { _ = command.Fprintf(t, name+"\t"+format+"\n", a...) }
	row("id", "%s", x.ID)
	row("state", "%s", stateText(x))
	if x.State == queue.Claimed && !x.Delivered {
		row("", "not begun yet")
	}
	row("priority", "%d", x.Priority)
	row("put", "%s", x.EnqueuedAt.Local().Format(time.DateTime))
	row("attempts", "%d", x.Attempts)
	if x.Group != "" {
		row("group", "%s", x.Group)
	}
	if x.Timeout > 0 {
		row("timeout", "%v", x.Timeout)
	}
	if x.State == queue.Dead {
		row("died", "%s", x.DiedAt.Local().Format(time.DateTime))
	}
	for _, f := range x.Failures {
		row("failed", "%s: %s", f.At.Local().Format(time.DateTime), command.Excerpt(f.Reason))
	}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		row("header", "%s=%s", name, x.Headers[name])
	}
	row("bytes", "%d", len(x.Body))
	_ = t.Flush() // to memory
	out.WriteByte('\n')
	body := u.App.Bytes(x.Body)
	out.Write(body)
	if !bytes.HasSuffix(body, []byte("\n")) {
		out.WriteByte('\n')
	}
	_, err := u.App.Stdout.Write(out.Bytes())
	return err
}

func newRemove(app *command.App) *cobra.Command {
	u := newAccess(app)
	cmd := &cobra.Command{
		Use:   "remove PATH ID...",
		Short: "Remove items that no consumer has, for good",
		Long: `Removes the items with these IDs, whether they are ready, delayed, dead, or waiting for others of their
group. An item that a consumer has claimed stays, and so do items that it has claimed ahead; the message says
which consumer it is. An item that was removed is not delivered any more. The command looks through the queue
for each ID.

Exit codes: 0 all are removed; 1 some are not there, or a consumer has them; 64 usage; 69 no server; 77 access
denied.`,
		Example: `  turnstile queue remove /mail 9aad1607bfba5ebe8dcd8969fda19fc3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			ids := slices.Compact(slices.Sorted(slices.Values(args[1:])))
			if len(ids) == 0 {
				return command.Usagef(cmd, "ID is missing: name items that turnstile queue items shows")
			}
			none := func() error { return u.notFound(ids[0]) }
			return u.inspect(cmd.Context(), none, func(ctx context.Context, q *queue.Queue) error {
				return u.remove(ctx, q, ids)
			})
		},
	}
	u.flags(cmd, "one JSON object")
	return cmd
}

// remove removes items, and tells how many.
func (u *access) remove(ctx context.Context, q *queue.Queue, ids []string) error {
	n := 0
	var left error
	for _, id := range ids {
		err := q.Remove(ctx, id)
		claimed, ok := errors.AsType[*queue.ClaimedError](err)
		switch {
		case err == nil:
			n++
			continue
		case ok:
			err = fmt.Errorf("%s: item %s stays: %w", u.Path, id, claimed)
		case errors.Is(err, queue.ErrNotFound):
			err = fmt.Errorf("%s: there is no item %s", u.Path, id)
		default:
			return u.partly(n, "removed", err)
		}
		if left != nil {
			u.App.Say("%v", left) // the last one is the command's error
		}
		left = err
	}
	j := removedJSON{Path: u.Path, Removed: n}
	u.App.Did.Store(true)
	if err := u.App.Report(u.AsJSON, j, "%s removed\n", command.Plural(n, "item")); err != nil || left == nil {
		return err
	}
	return &command.Error{Code: command.ExitNotAcquired, Err: left}
}
