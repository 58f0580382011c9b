// Package recipecmd is the commands for recipes other than locks, elections and queues: counters, sequences, groups,
// barriers, services and shared items.
package recipecmd

// What the commands share: their list, their paths and their sessions.

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// New returns the commands.
func New(app *command.App) []*cobra.Command {
	return []*cobra.Command{
		newCounter(app), newSequence(app), newGroup(app), newBarrier(app), newDiscover(app), newShare(app),
	}
}

// access is how a command reaches its recipe.
type access struct{ command.Access }

func newAccess(app *command.App) *access { return &access{command.Access{App: app}} }

// run makes cmd a command with a PATH. Its Args, if it has none, takes nothing else.
func (a *access) run(
	cmd *cobra.Command, example, object string, f func(context.Context, *zk.Client) error,
) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return a.path(cmd, args, example, 1) }
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.With(cmd.Context(), f) }
	a.Flags(cmd, object)
	return cmd
}

// path takes PATH from args, which are at most so many.
func (a *access) path(cmd *cobra.Command, args []string, example string, most int) error {
	if err := a.ParsePath(cmd, args, example); err != nil {
		return err
	}
	if len(args) > most {
		return command.Usagef(cmd, "unexpected argument %q", strings.Join(args[most:], " "))
	}
	if err := lock.ValidatePath(a.Path); err != nil { // which also refuses the servers' own
		return command.Usage(cmd, err)
	}
	return nil
}

// checkName refuses a text that cannot be the name of a node.
func checkName(what, name string) error {
	if name == "" || strings.Contains(name, "/") || zk.ValidatePath("/"+name) != nil {
		const use = "use letters, digits, dots and dashes"
		return misuse("%s %.80q cannot be the name of a node; %s", what, name, use)
	}
	return nil
}

// number parses a number of the command line.
func number(cmd *cobra.Command, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, command.Usagef(cmd, "%q is not a whole number of at most 64 bits", text)
	}
	return n, nil
}

// differs is the error of a recipe that is in another state than the command requires.
func differs(hint, format string, args ...any) error {
	return &command.Error{Code: command.ExitMissing, Err: fmt.Errorf(format, args...), Hint: hint}
}

// misuse is the error of a flag that is missing or wrong.
func misuse(format string, args ...any) error {
	return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf(format, args...)}
}
