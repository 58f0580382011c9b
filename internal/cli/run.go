// Package cli is the command line of Turnstile. Run is the whole of it; cmd/turnstile hands it the process's arguments, environment
// and streams, and tests hand it their own.
package cli

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
)

// Run runs the command that args name, without the program's name, and returns the exit code for it: see the constants. It reads the
// environment from env alone. When ctx ends, the command ends as if it had been sent SIGTERM.
//
// Run catches signals while it runs, so a process should run one at a time.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, args, env, stdin, stdout, stderr).code
}

// Main is Run for this process, and ends the process: with the exit code, or by SIGINT if that ended the command or
// the wait.
//
// A shell stops its script at Ctrl-C if it got SIGINT itself and the program that it waits for died of it. (A program
// that exits has made its own use of the key, says bash, and the script goes on.) What the terminal has sent to the
// command's process group alone, our own, which is the script's, gets from us.
func Main() {
	run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr).end()
}

// run is Run, with all that there is to know of the end.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) *exitError {
	c := &cli{env: newEnviron(env), stdin: stdin, stdout: stdout, stderr: stderr}
	root := c.root() //nolint:contextcheck // cobra hands the context to the command that runs
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return c.exit(root.ExecuteContext(ctx))
}

// cli is what every command needs of the process.
type cli struct {
	env    environ
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "turnstile",
		Short: "Run commands under a fair distributed lock, or for the items of a queue",
		Long: `Turnstile runs a command while it holds a lock, or for every item of a queue: among the processes of this
machine with nothing configured, and among machines on Apache ZooKeeper with --connect.

Every flag has an environment variable of the same name: --connect is TURNSTILE_CONNECT,
--session-timeout is TURNSTILE_SESSION_TIMEOUT. A flag on the command line goes before it.`,
		Example: `  turnstile lock /jobs/report -- ./report.sh
  turnstile lock --connect zk1:2181,zk2:2181,zk3:2181 /jobs/report -- ./report.sh
  turnstile who /jobs/report
  turnstile queue work /mail --workers 4 -- ./send-mail`,
		Version:           thisVersion().text(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.env.bind(cmd.Flags()) },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if slices.Contains([]string{"lock", "elect", "take", "work"}, cmd.Name()) {
			return usage(cmd, fmt.Errorf("%w (flags of the command to run go after --)", err))
		}
		return usage(cmd, err)
	})
	root.AddCommand(c.lock(), c.elect(), c.who(), c.revoke(), c.queue())
	root.AddCommand(c.serve(), c.ownServer(), c.bench(), c.version(), c.man())
	completeChoices(root)
	return root
}

// completeChoices has shells complete the words of flags that have some.
func completeChoices(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeChoices(sub)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(*choice); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
		}
	})
}

// exit says why a command failed and returns how to end.
func (c *cli) exit(err error) *exitError {
	if err == nil {
		return &exitError{code: ExitOK}
	}
	var exit *exitError
	if !errors.As(err, &exit) { // cobra's own: no such command, wrong number of arguments
		exit = &exitError{code: ExitUsage, err: err, hint: "turnstile --help lists the commands"}
	}
	if exit.err != nil {
		fmt.Fprintln(c.stderr, "turnstile:", undoubled(exit.Error()))
	}
	return exit
}

// undoubled says only once where an error comes from when two layers have said so one after the other.
func undoubled(text string) string {
	for _, name := range []string{"lock", "elect", "queue", "zk", "tls", "server"} {
		text = strings.ReplaceAll(text, name+": "+name+": ", name+": ")
	}
	return text
}

// usage makes the error of a command line that is wrong.
func usage(cmd *cobra.Command, err error) error {
	return &exitError{code: ExitUsage, err: err, hint: cmd.CommandPath() + " --help shows how to use it"}
}

// args checks the number of a command's arguments.
func exactArgs(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usage(cmd, fmt.Errorf("%s is missing", names))
		case len(args) > n:
			return usage(cmd, fmt.Errorf("unexpected argument %q", strings.Join(args[n:], " ")))
		}
		return nil
	}
}
