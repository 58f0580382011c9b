package queuecmd

// turnstile queue consumers.

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
)

// activeJSON is a consumer: what "turnstile queue consumers --json" prints.
type activeJSON struct {
	ID      string `json:"id"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Session string `json:"session"`
	Since   string `json:"since"`
	Claimed int    `json:"claimed"`
}

func newConsumers(app *command.App) *cobra.Command {
	u := newAccess(app)
	consumers := func(q *queue.Queue, ctx context.Context) iter.Seq2[queue.ActiveConsumer, error] {
		return func(yield func(queue.ActiveConsumer, error) bool) {
			list, err := q.Consumers(ctx)
			if err != nil {
				yield(queue.ActiveConsumer{}, err)
			}
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
	return listing(u, &cobra.Command{
		Use:   "consumers PATH",
		Short: "Show who takes items",
		Long: `Shows the processes that take items from the queue at PATH, also those that wait for some, and how many
items each has claimed: it works on them, or is about to. Those with the most come first.
turnstile queue items --state claimed shows the consumer of each item.`,
		Example: `  turnstile queue consumers /mail
  turnstile queue consumers /mail --json | jq -r .host`,
	}, "per consumer", "HOST\tPID\tPROGRAM\tCLAIMED\tSINCE\tSESSION", consumers,
		func(t *table, c queue.ActiveConsumer) error {
			session := command.SessionID(c.Session)
			if u.AsJSON {
				return u.App.JSON(activeJSON{
					c.ID, c.Host, c.PID, c.Program, session, command.Timestamp(c.Since), c.Claimed,
				})
			}
			return t.row("%s\t%d\t%s\t%d\t%s\t%s", command.Excerpt(cmp.Or(c.Host, "?")), c.PID,
				command.Excerpt(cmp.Or(c.Program, "?")), c.Claimed, command.Since(c.Since), session)
		})
}
