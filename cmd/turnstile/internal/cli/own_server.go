package cli

// turnstile own-server.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// ownJSON is what "turnstile own-server status --json" prints.
type ownJSON struct {
	Running bool     `json:"running"`
	PID     int      `json:"pid,omitempty"`
	Connect []string `json:"connect"` // where it listens, or would
	Data    string   `json:"data"`
	Log     string   `json:"log"`
}

func newOwnServer(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "own-server",
		Short: "Show or stop this user's own server",
		Long: `Commands that name no server with --connect use this user's own server. The first such command starts it
in the background. It ends after ten minutes without a client (TURNSTILE_IDLE_EXIT, read when it starts),
and the next command starts it again. Its data, its log and its socket are in $XDG_STATE_HOME/turnstile, or
~/.local/state/turnstile. The server of "turnstile serve" is a different one.`,
		Example: "  turnstile own-server status\n  turnstile own-server stop",
	}, newOwnStatus(app), newOwnStop(app))
}

func newOwnStatus(app *command.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether this user's own server runs, and where its files are",
		Long: `Shows whether this user's own server runs, and where its files are. It does not start the server.

Exit codes: 0 it runs; 1 it does not; 64 usage; 69 it does not, and another server has its socket.`,
		Example: "  turnstile own-server status --json",
		Args:    command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := ownserver.Find(app.Env.Vars)
			if err != nil {
				return &command.Error{Code: command.ExitNoServer, Err: err}
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return showOwn(ctx, app, own, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (docs/cli-json.md)")
	return cmd
}

func showOwn(ctx context.Context, app *command.App, own *ownserver.Server, asJSON bool) error {
	s := ownJSON{Connect: []string{own.Address()}, Data: own.Data(), Log: own.Log()}
	var foreign error
	s.PID, s.Running, foreign = own.Running(ctx)
	state := "it does not run"
	switch {
	case s.Running && s.PID != 0:
		state = fmt.Sprintf("running, pid %d", s.PID)
	case s.Running:
		state = "running, in another container"
	}
	err := app.Report(asJSON, s, "%s\nconnect  %s\ndata     %s\nlog      %s\n",
		state, strings.Join(s.Connect, " "), s.Data, s.Log)
	if err == nil && foreign != nil {
		return &command.Error{Code: command.ExitNoServer, Err: foreign}
	}
	if err == nil && !s.Running {
		return &command.Error{Code: command.ExitNotAcquired} // which was printed
	}
	return err
}

func newOwnStop(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop this user's own server",
		Long: `Stops this user's own server, and returns when it has ended. Nothing is lost: holders and waiters start
it again when they notice, with their own program. So this is also how to upgrade it. It ends no process but
the one that listens on the server's socket and has locked its data.

Exit codes: 0 it has ended, or did not run; 64 usage; 69 it cannot be stopped.`,
		Example: "  turnstile own-server stop",
		Args:    command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := ownserver.Find(app.Env.Vars)
			if err == nil {
				ctx, stop := supervise.Until(cmd.Context())
				defer stop()
				err = own.Stop(ctx)
			}
			if _, signal := errors.AsType[supervise.SignalError](err); err != nil && !signal {
				return &command.Error{Code: command.ExitNoServer, Err: err}
			}
			return command.Failed(err)
		},
	}
}
