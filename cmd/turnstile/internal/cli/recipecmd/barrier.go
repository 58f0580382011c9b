package recipecmd

// turnstile barrier.

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

const barrierPath = "/deploy/hold"

func newBarrier(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "barrier",
		Short: "Hold processes back, or let them begin and end together",
		Long: `A barrier that is set holds back those who wait for it. With enter, a number of processes begin
together and end together.`,
		Example: `  turnstile barrier set /deploy/hold
  turnstile barrier wait /deploy/hold && ./start
  turnstile barrier enter /load --parties 3 -- ./load-test`,
	}, newBarrierSet(app), newBarrierRemove(app), newBarrierWait(app), newBarrierEnter(app))
}

const barrierExit = `

Exit codes: 0; 1 other programs have nodes below PATH; 64 usage; 69 no server, or it is unknown whether it was
done: do it again; 77 access denied.`

// simple makes a command for a barrier that does one thing.
func simple(app *command.App, cmd *cobra.Command, state string, creates bool,
	do func(*barrier.Barrier, context.Context) error,
) *cobra.Command {
	a := newAccess(app)
	a.run(cmd, barrierPath, "a JSON object", func(ctx context.Context, client *zk.Client) error {
		cfg := barrier.Config{ACL: a.Connection.ACL(), AnyACL: a.Connection.AnyACL}
		b, err := barrier.NewBarrier(client, a.Path, cfg)
		if err != nil {
			return err
		}
		err = do(b, ctx)
		if errors.Is(err, zk.NotEmpty) {
			return &command.Error{Code: command.ExitMissing, Err: err, Hint: "nothing was changed"}
		}
		if err != nil {
			return err
		}
		if app.Did.Store(true); a.AsJSON {
			return app.JSON(map[string]string{"path": a.Path, "barrier": state})
		}
		return nil
	})
	if creates {
		a.Connection.ACLFlags(cmd.Flags())
	}
	return cmd
}

func newBarrierSet(app *command.App) *cobra.Command {
	return simple(app, &cobra.Command{
		Use:     "set PATH",
		Short:   "Put a barrier up",
		Long:    "Puts the barrier up, if it is not. It stays up until it is removed." + barrierExit,
		Example: "  turnstile barrier set /deploy/hold",
	}, "up", true, (*barrier.Barrier).Set)
}

func newBarrierRemove(app *command.App) *cobra.Command {
	return simple(app, &cobra.Command{
		Use:     "remove PATH",
		Short:   "Take a barrier down",
		Long:    "Takes the barrier down, if it is up, and so lets all who wait for it go on." + barrierExit,
		Example: "  turnstile barrier remove /deploy/hold",
	}, "down", false, (*barrier.Barrier).Remove)
}

func newBarrierWait(app *command.App) *cobra.Command {
	return simple(app, &cobra.Command{
		Use:   "wait PATH",
		Short: "Wait until a barrier is down",
		Long: `Waits until the barrier is down, which may be at once. For a limit, use timeout(1).

Exit codes: 0; 128+N if signal N ended the wait; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile barrier wait /deploy/hold && ./start
  timeout 60 turnstile barrier wait /deploy/hold`,
	}, "down", false, (*barrier.Barrier).Wait)
}

func newBarrierEnter(app *command.App) *cobra.Command {
	s := newStay(app)
	var parties int
	cmd := s.run(&cobra.Command{
		Use:   "enter [flags] PATH --parties N [-- COMMAND [ARG...]]",
		Short: "Begin together with others, and end together with them",
		Long: `Waits until N parties have entered, runs the command, and waits until the commands of all have ended.
Without a command it prints PATH and stays until standard input ends or a signal comes. All must give the
same N. A party that dies is not waited for once its session has ended.

The command's environment has TURNSTILE_PATH.` +
			fmt.Sprintf(stayExit, "75 its place was lost before all could leave\ntogether; "),
		Example: `  turnstile barrier enter /load --parties 3 -- ./load-test`,
	}, func(cmd *cobra.Command, args []string) error { return s.path(cmd, args, barrierPath, 1) },
		func(ctx context.Context, client *zk.Client) (place, error) {
			if parties == 0 {
				return place{}, misuse("--parties must say how many are to enter together, at least 1")
			}
			cfg := barrier.Config{ACL: s.Connection.ACL(), AnyACL: s.Connection.AnyACL}
			d, err := barrier.NewDouble(client, s.Path, parties, cfg)
			if err != nil {
				return place{}, misuse("%w", err)
			}
			m, err := d.Enter(ctx)
			if err != nil {
				return place{}, err
			}
			return place{
				lost: m.Context(), text: s.Path, leave: m.Leave,
				json: map[string]any{"path": s.Path, "parties": parties, "node": m.Path()},
			}, nil
		})
	cmd.Flags().IntVar(&parties, "parties", 0, "how many enter together")
	return cmd
}
