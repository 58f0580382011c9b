package recipecmd

// turnstile counter.

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
)

const counterPath = "/visits"

// counterJSON is what the commands for counters print.
type counterJSON struct {
	Path  string `json:"path"`
	Value int64  `json:"value"`
}

// counterAccess is how a command reaches a counter.
type counterAccess struct {
	*access
	layout command.Choice
}

func newCounter(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "counter",
		Short: "Read and change a number that many processes share",
		Long: `Reads and changes a number. A change is made once, also if the connection breaks while it is under way.
A counter that does not exist is 0.`,
		Example: `  turnstile counter add /visits
  turnstile counter get /visits`,
	}, newCounterGet(app), newCounterAdd(app), newCounterSet(app))
}

func (a *counterAccess) layoutFlag(cmd *cobra.Command) {
	a.layout = command.NewChoice("long", "int", "text")
	cmd.Flags().Var(&a.layout, "layout", "how the node holds the number: long, eight bytes, as Curator's "+
		"DistributedAtomicLong; int, four, as its SharedCount; text, digits, as kazoo's Counter")
	command.VariablesOf("counter", cmd.Flags(), "layout")
}

// newCounterAccess returns the access to a counter.
func newCounterAccess(app *command.App) *counterAccess { return &counterAccess{access: newAccess(app)} }

// open returns the counter.
func (a *counterAccess) open(client *zk.Client) (*counter.Counter, error) {
	layout := map[string]counter.Layout{"long": counter.Long, "int": counter.Int, "text": counter.Text}[a.layout.Value]
	cfg := counter.Config{Layout: layout, ACL: a.Connection.ACL(), AnyACL: a.Connection.AnyACL}
	return counter.New(client, a.Path, cfg)
}

// closeWithin is how long a command waits until its receipts are removed. Other processes remove what stays.
const closeWithin = time.Second

// change calls f with the counter, and then removes the receipts of f's writes.
func (a *counterAccess) change(ctx context.Context, client *zk.Client, f func(*counter.Counter) error) error {
	c, err := a.open(client)
	if err != nil {
		return err
	}
	a.App.Did.Store(true) // by the time that f prints something
	err = f(c)
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	_ = c.Close(ctx)
	return err
}

// explain returns what an error of the counter means for the user.
func explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, counter.ErrUnresolved):
		exit := &command.Error{Code: command.ExitNoServer, Err: err, Hint: "look with turnstile counter get"}
		if sig, ok := errors.AsType[supervise.SignalError](context.Cause(ctx)); ok {
			exit.Ending = sig.Ending()
			exit.Code = exit.Ending.Code
		}
		return exit
	case errors.Is(err, counter.ErrUnreadable):
		return &command.Error{Code: command.ExitMissing, Err: err, Hint: "see --layout"}
	case errors.Is(err, counter.ErrOverflow):
		return &command.Error{Code: command.ExitMissing, Err: err, Hint: "nothing was changed"}
	}
	return err
}

// result prints the value, or returns what the error means.
func (a *counterAccess) result(ctx context.Context, value int64, err error) error {
	if err != nil {
		return explain(ctx, err)
	}
	return a.App.Report(a.AsJSON, counterJSON{a.Path, value}, "%d\n", value)
}

func newCounterGet(app *command.App) *cobra.Command {
	a := newCounterAccess(app)
	cmd := a.run(&cobra.Command{
		Use:   "get PATH",
		Short: "Print the value",
		Long: "Prints the value; 0 if there is no such counter.\n\n" +
			"Exit codes: 0; 1 the node holds no number of the layout; 64 usage; 69 no server; 77 access denied.",
		Example: `  turnstile counter get /visits
  turnstile counter get --layout text /kazoo/counter`,
	}, counterPath, "a JSON object", func(ctx context.Context, client *zk.Client) error {
		c, err := a.open(client)
		if err != nil {
			return err
		}
		value, err := c.Get(ctx)
		return a.result(ctx, value, err)
	})
	a.layoutFlag(cmd)
	return cmd
}

func newCounterAdd(app *command.App) *cobra.Command {
	a := newCounterAccess(app)
	var n, by, limit int64
	named := false // N is on the command line
	var limited func() bool
	cmd := a.run(&cobra.Command{
		Use:   "add PATH [N]",
		Short: "Add a number, and print the value after it",
		Long: `Adds N, or 1, and prints the value after it. With --up-to it adds nothing if the value would then be past
that limit: above it, or below it if N is negative. A negative N goes after -- or into --by.

Exit codes: 0; 1 nothing was added: the limit, a value too large, or no number of the layout; 64 usage; 69 no
server, or it is unknown whether the change was made; 77 access denied.`,
		Example: `  turnstile counter add /visits
  turnstile counter add /stock -- -5
  turnstile counter add /stock --by -5 --up-to 0`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			limited = func() bool { return command.Given(cmd.Flags().Lookup("up-to")) }
			if err := a.path(cmd, args, counterPath, 2); err != nil || len(args) < 2 {
				return err
			}
			if cmd.Flags().Changed("by") {
				return command.Usagef(cmd, "N and --by contradict each other: leave one out")
			}
			n, err = number(cmd, args[1])
			named = true
			return err
		},
	}, counterPath, "a JSON object", func(ctx context.Context, client *zk.Client) error {
		if !named {
			n = by
		}
		return a.change(ctx, client, func(c *counter.Counter) error {
			if !limited() {
				value, err := c.Add(ctx, n)
				return a.result(ctx, value, err)
			}
			value, added, err := c.AddUpTo(ctx, n, limit)
			if err == nil && !added {
				return differs("nothing was added", "%s is %d: with %d it would be past %d", a.Path, value, n, limit)
			}
			return a.result(ctx, value, err)
		})
	})
	a.layoutFlag(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&by, "by", 1, "the `number` to add, in place of N")
	flags.Int64Var(&limit, "up-to", 0, "add nothing if the value would be past this `number`")
	a.Connection.ACLFlags(flags)
	return cmd
}

func newCounterSet(app *command.App) *cobra.Command {
	a := newCounterAccess(app)
	var n, old int64
	var conditional func() bool
	cmd := a.run(&cobra.Command{
		Use:   "set PATH N",
		Short: "Set the value",
		Long: `Sets the value to N, whatever it is; with --if only if it is that number. A negative N goes after --.

Exit codes: 0; 1 the value is another one, or N does not fit into the layout; 64 usage; 69 no server, or it is
unknown whether the change was made; 77 access denied.`,
		Example: `  turnstile counter set /stock 100
  turnstile counter set --if 7 /stock -- -1`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			conditional = func() bool { return command.Given(cmd.Flags().Lookup("if")) }
			if err := a.path(cmd, args, counterPath, 2); err != nil {
				return err
			}
			if len(args) < 2 {
				return command.Usagef(cmd, "N is missing: the number to set")
			}
			n, err = number(cmd, args[1])
			return err
		},
	}, counterPath, "a JSON object", func(ctx context.Context, client *zk.Client) error {
		return a.change(ctx, client, func(c *counter.Counter) error {
			if !conditional() {
				return a.result(ctx, n, c.Set(ctx, n))
			}
			set, err := c.CompareAndSet(ctx, old, n)
			if err == nil && !set {
				return differs("nothing was changed", "%s is not %d", a.Path, old)
			}
			return a.result(ctx, n, err)
		})
	})
	a.layoutFlag(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&old, "if", 0, "set it only if it is this `number`")
	a.Connection.ACLFlags(flags)
	return cmd
}
