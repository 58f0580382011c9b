// Package cli is the command line of Turnstile. cmd/turnstile calls Main; tests call Run with their own arguments,
// environment and streams.
package cli

// The root command, and how it ends.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/queuecmd"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/recipecmd"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/treecmd"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// Run runs the command that args name, without the program's name, and returns its exit code: see the constants of
// package command. It reads the environment from env alone, and no settings of the machine. When ctx ends, the command
// ends as if it had been sent SIGTERM.
//
// Run catches signals while it runs, so a process should run one at a time.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := &command.App{Args: args, Env: command.NewEnviron(env), Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return run(ctx, app, "").Code
}

// Main is Run for this process, and ends the process: with the exit code, or by SIGINT if that ended the command or
// the wait (see supervise.Ending).
func Main() { MainWith(settings) }

// MainWith is Main with another file for the settings of the machine, for tests. A variable for it would make commands
// of one machine use different settings.
func MainWith(settings string) {
	supervise.DieOfQuit()
	if os.Getpid() == 1 {
		runAsInit()
	}
	app := &command.App{
		Args: os.Args[1:], Env: command.NewEnviron(os.Environ()), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Exits: true,
	}
	run(context.Background(), app, settings).Exit()
}

// run is Run, and returns how to end the process.
func run(ctx context.Context, app *command.App, settings string) *command.Error {
	root := newRoot(app, app.Args...) //nolint:contextcheck // cobra hands the context to the command that runs
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if detached := cmd.Flags().Lookup(detachedFlag); detached != nil && detached.Changed {
			return nil // the flags of a user's own server are complete; what the machine sets is for its clients
		}
		if err := app.Env.ReadSettings(settings, allCommands); err != nil {
			return &command.Error{Code: command.ExitConfig, Err: err}
		}
		if err := command.RefuseRivals(cmd); err != nil {
			return err
		}
		return app.Env.Bind(cmd.Flags())
	}
	root.SetArgs(app.Args)
	root.SetIn(app.Stdin)
	out := &output{Writer: app.Stdout}
	root.SetOut(out) // of cobra: help, versions and completions
	root.SetErr(app.Stderr)
	refuseUnknownShells(root, app.Args)
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil {
		err = app.OutputError(out.err)
	}
	return exit(app, cmd, err)
}

// output is a writer that remembers its first error: cobra looks at none.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// newRoot returns the root with the command that the first argument names. Without one it has all commands, as for help
// and completion: to make them all takes a third of the time of a command that only prints something.
func newRoot(app *command.App, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "turnstile",
		Short: "Run commands under a fair distributed lock, or for the items of a queue",
		Long: `Turnstile runs a command while it holds a lock, or for each item of a queue: among the processes of this
machine without any setup, and among machines with --connect and Apache ZooKeeper.

Every flag has an environment variable of the same name: --connect is TURNSTILE_CONNECT, --session-timeout
is TURNSTILE_SESSION_TIMEOUT. If other commands mean something else by a flag, its variable names the command:
--listen of serve is TURNSTILE_SERVE_LISTEN. A flag on the command line takes precedence. A variable that is set
is checked as the flag is, also if it is empty. /etc/turnstile/turnstile.env sets variables for all users of this
machine, one NAME=VALUE per line; those of the environment take precedence. TURNSTILE_OWN_SERVER=never makes
commands that name no server fail instead of using this user's own server.

Each command's help has its exit codes. With every command, 74 means that the output cannot be written, and 78
that the machine's settings are wrong.`,
		Example: `  turnstile lock /jobs/report -- ./report.sh
  turnstile lock --connect zk1:2181,zk2:2181,zk3:2181 /jobs/report -- ./report.sh
  turnstile who /jobs/report
  turnstile queue work /mail --workers 4 -- ./send-mail`,
		Version:       thisVersion().text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if word := unknownCommand(cmd, app.Args); word != "" {
			return fmt.Errorf("unknown command %q for %q", word, cmd.CommandPath())
		}
		return command.Usage(cmd, flagError(cmd, err))
	})
	root.AddGroup(
		&cobra.Group{ID: recipes, Title: "Commands for other recipes:"},
		&cobra.Group{ID: nodes, Title: "Commands for single nodes and trees:"})
	wanted := parts()
	named := func(p part) bool { return len(args) > 0 && slices.Contains(p.names, args[0]) }
	if i := slices.IndexFunc(wanted, named); i >= 0 {
		wanted = wanted[i : i+1]
	}
	for _, p := range wanted {
		for _, cmd := range p.new(app) {
			cmd.GroupID = p.group
			root.AddCommand(cmd)
		}
	}
	command.CountInTens(root)
	refuseUnknownTopics(root)
	command.Complete(app, root)
	return root
}

// allCommands returns the root with all commands, to look at. Their App is their own, because making them sets it.
func allCommands() *cobra.Command { return newRoot(silent()) }

// silent returns an App for commands that are not run.
func silent() *command.App {
	return &command.App{Env: command.NewEnviron(nil), Stdout: io.Discard, Stderr: io.Discard}
}

// Groups of commands, for help.
const (
	recipes = "recipes"
	nodes   = "nodes"
)

// part is commands that are made together.
type part struct {
	names []string
	group string // empty for most
	new   func(*command.App) []*cobra.Command
}

// parts are all commands, in the order in which help lists them.
func parts() []part {
	one := func(name string, create func(*command.App) *cobra.Command) part {
		return part{names: []string{name}, new: func(app *command.App) []*cobra.Command {
			return []*cobra.Command{create(app)}
		}}
	}
	return []part{
		one("lock", newLock), one("unlock", newUnlock), one("elect", newElect), one("who", newWho),
		one("locks", newLocks), one("top", newTop), one("sessions", newSessions), one("revoke", newRevoke),
		one("gc", newGC), one("deadlocks", newDeadlocks), one("doctor", newDoctor), one("verify", newVerify),
		one("queue", queuecmd.New),
		{[]string{"counter", "sequence", "group", "barrier", "discover", "share"}, recipes, recipecmd.New},
		{[]string{
			"ls", "tree", "get", "stat", "set", "create", "rm", "watch", "acl", "export", "import",
		}, nodes, treecmd.New},
		one("serve", newServe), one("backup", newBackup), one("restore", newRestore), one("exporter", newExporter),
		one("dashboard", newDashboard), one("own-server", newOwnServer), one("bench", newBench),
		one("version", newVersion), one("man", newMan),
	}
}

// unknownCommand returns the first word after a command that has commands, if it is none of theirs. Cobra parses the
// flags behind it first, of which the mistyped command may have some.
func unknownCommand(cmd *cobra.Command, args []string) string {
	_, rest, _ := cmd.Root().Find(args) // what it fails for is looked at here
	if !cmd.HasAvailableSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return ""
	}
	return rest[0]
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	_, unknown := errors.AsType[*pflag.NotExistError](err)
	switch {
	case unknown && slices.Contains([]string{
		"lock", "elect", "take", "work", "join", "enter", "register", "share",
	}, cmd.Name()):
		return fmt.Errorf("%w (flags of the command to run go after --)", err)
	case unknown && cmd.HasParent() && cmd.Parent().Name() == "counter":
		return fmt.Errorf("%w (a negative number goes after --)", err)
	}
	value, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	if want := command.Takes(value.GetFlag()); want != "" {
		return fmt.Errorf("--%s must be %s: %q", value.GetFlag().Name, want, value.GetValue())
	}
	return err
}

// refuseUnknownTopics makes the help command fail if it is asked for a command that there is not.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() == "help" {
			help.Run, help.RunE = nil, func(_ *cobra.Command, topic []string) error {
				cmd, rest, err := root.Find(topic)
				if err != nil || len(rest) > 0 {
					return command.Usage(root, fmt.Errorf("unknown command %q", strings.Join(topic, " ")))
				}
				cmd.InitDefaultHelpFlag()
				return cmd.Help()
			}
		}
	}
}

// refuseUnknownShells makes the completion command fail if it is asked for a shell that there is not. Cobra gives the
// command the root's output, which must be set before.
func refuseUnknownShells(root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	for _, completion := range root.Commands() {
		if completion.Name() == "completion" {
			command.Group(completion)
		}
	}
}

// exit says why a command failed, and returns how to end.
func exit(app *command.App, cmd *cobra.Command, err error) *command.Error {
	if err == nil {
		return &command.Error{Code: command.ExitOK}
	}
	var exit *command.Error
	if !errors.As(err, &exit) { // cobra's own: no such command
		err = errors.New(strings.Join(strings.Fields(err.Error()), " ")) // "Did you mean" comes on lines of its own
		exit = &command.Error{Code: command.ExitUsage, Err: err, Hint: cmd.CommandPath() + " --help lists the commands"}
	}
	complain(app, exit)
	return exit
}

// complain says why a command ends, unless that was said.
func complain(app *command.App, exit *command.Error) {
	if exit.Err != nil {
		app.Complain("%s", command.OneLine(exit))
	}
}
