package queuecmd

// turnstile queue dead.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
)

// deadJSON is what "turnstile queue dead ls --json" prints of each.
type deadJSON struct {
	ID         string            `json:"id"`
	Reason     string            `json:"reason"`
	Attempts   int               `json:"attempts"`
	Priority   int               `json:"priority"`
	Group      string            `json:"group,omitempty"`
	EnqueuedAt string            `json:"enqueued_at"`
	DiedAt     string            `json:"died_at"`
	Failures   []failureJSON     `json:"failures"`
	Headers    map[string]string `json:"headers,omitempty"`
	bodyJSON
}

type failureJSON struct {
	At     string `json:"at"`
	Reason string `json:"reason"`
}

// requeuedJSON is what "turnstile queue dead requeue --json" prints.
type requeuedJSON struct {
	Path     string `json:"path"`
	Requeued int    `json:"requeued"`
}

func newDead(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "dead",
		Short: "Show dead letters, requeue them, or remove them",
		Long: `Dead letters are items that are no longer delivered: their command has failed --max-attempts times, or a
program has rejected them.`,
		Example: `  turnstile queue dead ls /mail
  turnstile queue dead requeue /mail --all`,
	}, newDeadList(app), newDeadRequeue(app), newDeadPurge(app))
}

func newDeadList(app *command.App) *cobra.Command {
	u := newAccess(app)
	const title = "ID\tDIED\tATTEMPTS\tREASON\tBODY"
	return listing(u, &cobra.Command{
		Use:   "ls PATH",
		Short: "Show dead letters in the order in which they died",
		Example: `  turnstile queue dead ls /mail
  turnstile queue dead ls -n 0 --json /mail | jq -r .reason`,
	}, "per dead letter", title, (*queue.Queue).DeadLetters, func(t *table, l queue.DeadLetter) error {
		if u.AsJSON {
			return u.App.JSON(deadLetter(l))
		}
		return t.row("%s\t%s\t%d\t%s\t%s%s", l.ID, l.DiedAt.Local().Format(time.DateTime), l.Attempts,
			command.Excerpt(l.Reason), excerpt(l.Body), headers(l.Headers))
	})
}

func deadLetter(l queue.DeadLetter) deadJSON {
	j := deadJSON{
		ID: l.ID, Reason: l.Reason, Attempts: l.Attempts, Priority: l.Priority, Group: l.Group, Headers: l.Headers,
		EnqueuedAt: command.Timestamp(l.EnqueuedAt), DiedAt: command.Timestamp(l.DiedAt),
		Failures: []failureJSON{}, bodyJSON: newBodyJSON(l.Body),
	}
	for _, f := range l.Failures {
		j.Failures = append(j.Failures, failureJSON{command.Timestamp(f.At), f.Reason})
	}
	return j
}

func newDeadRequeue(app *command.App) *cobra.Command {
	u := newAccess(app)
	return u.someDead(&cobra.Command{
		Use:   "requeue PATH [ID... | --all]",
		Short: "Put dead letters back into the queue, with all attempts left",
		Example: `  turnstile queue dead requeue /mail 0f2c8ea9d1b44e0f8a4c1f2f5f0b7a11
  turnstile queue dead requeue /mail --all`,
	}, "put back", (*queue.Queue).Requeue, func(n int) error {
		j := requeuedJSON{Path: u.Path, Requeued: n}
		u.App.Did.Store(true)
		return u.App.Report(u.AsJSON, j, "%s put back\n", command.Plural(n, "item"))
	})
}

func newDeadPurge(app *command.App) *cobra.Command {
	u := newAccess(app)
	return u.someDead(&cobra.Command{
		Use:   "purge PATH [ID... | --all]",
		Short: "Remove dead letters, for good",
		Example: `  turnstile queue dead purge /mail 0f2c8ea9d1b44e0f8a4c1f2f5f0b7a11
  turnstile queue dead purge /mail --all`,
	}, "removed", (*queue.Queue).PurgeDead, u.purged)
}

// someDead makes a command that does something to the dead letters that are named, and prints to how many.
func (u *access) someDead(cmd *cobra.Command, done string,
	do func(q *queue.Queue, ctx context.Context, ids ...string) (int, error), tell func(n int) error,
) *cobra.Command {
	var all bool
	cmd.Long = cmd.Short + `. Name them by the ids that turnstile queue dead ls shows,
or use --all. Exit code 1 means that some of the ids are not dead letters, or no longer.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := u.parsePath(cmd, args); err != nil {
			return err
		}
		ids := slices.Compact(slices.Sorted(slices.Values(args[1:])))
		switch {
		case all && len(ids) > 0:
			return command.Usagef(cmd, "ids and --all contradict each other: leave one out")
		case !all && len(ids) == 0:
			return command.Usagef(cmd, "name ids that turnstile queue dead ls shows, or use --all")
		case slices.Contains(ids, ""):
			return command.Usagef(cmd, "an id is empty")
		}
		none := func() error { return found(len(ids), 0, u.Path, tell) }
		return u.inspect(cmd.Context(), none, func(ctx context.Context, q *queue.Queue) error {
			n, err := do(q, ctx, ids...)
			if err != nil {
				return u.partly(n, done, err)
			}
			return found(len(ids), n, u.Path, tell)
		})
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	u.flags(cmd, "one JSON object")
	return cmd
}

// found prints how many of those that were asked for were there, and is an error if some were not.
func found(asked, n int, path string, tell func(int) error) error {
	if err := tell(n); err != nil || n >= asked {
		return err
	}
	err := fmt.Errorf("%s: %d of %s are not dead letters", path, asked-n, command.Plural(asked, "id"))
	if asked == 1 {
		err = fmt.Errorf("%s: there is no dead letter with this id", path)
	}
	return &command.Error{Code: command.ExitNotAcquired, Err: err, Hint: "turnstile queue dead ls shows them all"}
}
