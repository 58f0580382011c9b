package queuecmd

// turnstile queue pause and resume.

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// pauseJSON is a pause in JSON.
type pauseJSON struct {
	At      string `json:"at"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// pausedJSON is what "turnstile queue pause --json" and "resume --json" print.
type pausedJSON struct {
	Path   string     `json:"path"`
	Paused *pauseJSON `json:"paused"`
}

func newPauseJSON(p *queue.Pause) *pauseJSON {
	if p == nil {
		return nil
	}
	return &pauseJSON{command.Timestamp(p.At), p.Host, p.PID, p.Program, p.Reason}
}

// pauseText is a pause for people.
func pauseText(p *queue.Pause) string {
	text := "since " + p.At.Local().Format(time.DateTime)
	if p.Host != "" {
		text += fmt.Sprintf(" by %s[%d] on %s", command.Excerpt(p.Program), p.PID, command.Excerpt(p.Host))
	}
	if p.Reason != "" {
		text += ": " + command.Excerpt(p.Reason)
	}
	return text
}

func newPause(app *command.App) *cobra.Command {
	u := newAccess(app)
	var reason string
	cmd := &cobra.Command{
		Use:   "pause PATH",
		Short: "Let no consumer take items until resume",
		Long: `Pauses the queue at PATH for all consumers, until turnstile queue resume, also across their restarts.
Items that consumers have begun are finished; puts go on. If the queue is paused already, the first pause stays.
A queue that does not exist is created.`,
		Example: `  turnstile queue pause /mail --reason 'the mail server is down'`,
		Args:    command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			return u.with(cmd.Context(), func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
				if err := q.Pause(ctx, reason); err != nil {
					return err
				}
				return u.printPause(ctx, q)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that others see")
	command.MayBeEmpty(cmd.Flags(), "reason")
	u.flags(cmd, "one JSON object")
	return cmd
}

func newResume(app *command.App) *cobra.Command {
	u := newAccess(app)
	cmd := &cobra.Command{
		Use:     "resume PATH",
		Short:   "Let consumers take items again",
		Long:    `Ends the pause of the queue at PATH. If it is not paused, nothing happens.`,
		Example: `  turnstile queue resume /mail`,
		Args:    command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.parsePath(cmd, args); err != nil {
				return err
			}
			none := func() error { return u.reportPause(nil) }
			return u.inspect(cmd.Context(), none, func(ctx context.Context, q *queue.Queue) error {
				if err := q.Resume(ctx); err != nil {
					return err
				}
				return u.printPause(ctx, q)
			})
		},
	}
	u.flags(cmd, "one JSON object")
	return cmd
}

// printPause prints whether the queue is paused now.
func (u *access) printPause(ctx context.Context, q *queue.Queue) error {
	p, err := q.Paused(ctx)
	if err != nil {
		return err
	}
	return u.reportPause(p)
}

func (u *access) reportPause(p *queue.Pause) error {
	j := pausedJSON{Path: u.Path, Paused: newPauseJSON(p)}
	if p == nil {
		return u.App.Report(u.AsJSON, j, "running\n")
	}
	return u.App.Report(u.AsJSON, j, "paused %s\n", pauseText(p))
}
