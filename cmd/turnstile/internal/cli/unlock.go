package cli

// turnstile unlock.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

func newUnlock(app *command.App) *cobra.Command {
	var pid int
	cmd := &cobra.Command{
		Use:   "unlock --pid PID PATH...",
		Short: "Unlock what turnstile lock --pid holds",
		Long: `Unlocks what turnstile lock --pid PID PATH... has locked, with the same PATHs, and returns when it is
unlocked. The end of process PID unlocks it, too. If the lock is lost or revoked and PID is to end, it is no
longer killed once it has unlocked.

Exit codes: 0 it is unlocked; 1 nothing is held for that process at PATH; 64 usage; 69 it is not known whether
it is unlocked.`,
		Example: "  turnstile lock --pid $$ /shell || exit; ./step1; turnstile unlock --pid $$ /shell; ./step2",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case pid == 0:
				return command.Usagef(cmd, "--pid is missing: name the process, $$ in a script")
			case !isPID(pid):
				return command.Usagef(cmd, "--pid must be the id of a process: %d", pid)
			case len(args) == 0:
				return command.Usagef(cmd, "PATH is missing: name what turnstile lock --pid has locked")
			}
			for _, path := range args {
				if err := command.CheckPath(path); err != nil {
					return command.Usage(cmd, err)
				}
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return unlock(ctx, app, pid, slices.Clone(args))
			})
		},
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "the process `PID` that it is held for")
	return cmd
}

func unlock(ctx context.Context, app *command.App, pid int, paths []string) error {
	held, err := askToUnlock(ctx, app.Env.Vars, pid, paths)
	path := strings.Join(paths, " ")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &command.Error{Code: command.ExitNoServer, Err: fmt.Errorf("%s: %w", path, err)}
	case !held:
		return &command.Error{
			Code: command.ExitNotAcquired, Err: fmt.Errorf("%s: nothing is held for process %d", path, pid),
		}
	}
	return nil
}
