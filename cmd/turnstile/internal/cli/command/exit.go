package command

// Exit codes and errors.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Exit codes of turnstile itself. A command that runs another one otherwise exits as that did: with its code, or 128+N
// if signal N ended it. They follow sysexits(3) where there is no older custom.
const (
	ExitOK          = 0
	ExitNotAcquired = 1   // not acquired as fast as --no-wait or --wait demand; -E chooses another code
	ExitUsage       = 64  // the command line or an environment variable is wrong; nothing was done
	ExitData        = 65  // the input is wrong, or what was to be put is too large
	ExitNoServer    = 69  // no server answers, or the server to be started cannot run
	ExitSoftware    = 70  // the server refused what should have worked
	ExitOutput      = 74  // standard output cannot be written; the message says if the work was done
	ExitLost        = 75  // the lock, or the claim of an item, was lost while the command ran
	ExitDeadlock    = 76  // the wait was part of a deadlock, and --on-deadlock fail had it give way
	ExitNoAccess    = 77  // the server refuses these credentials, or these credentials that path
	ExitConfig      = 78  // a configuration file is wrong
	ExitNoExec      = 126 // the command exists and cannot be executed
	ExitNotFound    = 127 // the command does not exist
	ExitSignal      = 128 // plus N: signal N ended the command, or the wait for the lock
)

// Error ends turnstile with an exit code. Without Err nothing is printed.
type Error struct {
	Code   int
	Err    error
	Hint   string           // what to do next
	Ending supervise.Ending // how the command ended, or the wait for the lock, if that decides; Code is its code then
}

func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return ""
	case e.Hint == "":
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Hint
}

func (e *Error) Unwrap() error { return e.Err }

// Ended ends turnstile as a command has ended.
func Ended(e supervise.Ending) *Error { return &Error{Code: e.Code, Ending: e} }

// Exit ends this process.
func (e *Error) Exit() {
	ending := e.Ending
	ending.Code = e.Code
	ending.Exit()
}

// Failed gives an error of the client or the server its exit code.
func Failed(err error) error {
	var exit *Error
	var sig supervise.SignalError
	switch {
	case err == nil, errors.As(err, &exit):
		return err
	case errors.As(err, &sig):
		return Ended(sig.Ending())
	case errors.Is(err, zk.SessionClosedRequireAuth):
		hint := "the server requires a login: see --sasl-user, --auth and --tls-cert"
		return &Error{Code: ExitNoAccess, Err: err, Hint: hint}
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.AuthFailed):
		return &Error{Code: ExitNoAccess, Err: err, Hint: "check --auth, --sasl-user and --sasl-password-file"}
	case errors.Is(err, zk.ErrUnsupported):
		return &Error{Code: ExitSoftware, Err: err, Hint: "docs/support.md says which servers there are tests with"}
	case errors.Is(err, zk.InvalidACL):
		hint := "the server rejects this access list: does it support the scheme and the id, " +
			"and are there credentials for creator and auth?"
		return &Error{Code: ExitNoAccess, Err: err, Hint: hint}
	case errors.Is(err, zk.NoAuth):
		return &Error{Code: ExitNoAccess, Err: err, Hint: "the path's ACL requires other credentials: see --auth"}
	case errors.Is(err, zk.ErrReplyTooLarge):
		hint := "a larger --reply-limit accepts it (or TURNSTILE_REPLY_LIMIT), such as 64MiB"
		return &Error{Code: ExitSoftware, Err: err, Hint: hint}
	case errors.Is(err, lock.ErrWider):
		hint := "turnstile acl set narrows the node's list; --acl-any accepts it"
		return &Error{Code: ExitNoAccess, Err: err, Hint: hint}
	case errors.Is(err, lock.ErrWrap): // which says what to delete, and when
		hint := "turnstile who shows its contenders; zkCli.sh delete removes it once it is empty"
		return &Error{Code: ExitSoftware, Err: err, Hint: hint}
	case errors.Is(err, zk.ErrLost), errors.Is(err, zk.ErrUncertain), errors.Is(err, zk.ErrExpired),
		errors.Is(err, zk.ErrConnectionLost):
		return &Error{Code: ExitNoServer, Err: err, Hint: "check that the server runs, and try again"}
	}
	return &Error{Code: ExitSoftware, Err: err}
}

// CannotRun is the error of a command that cannot be started, with the shell's exit codes.
func CannotRun(err error) error {
	code := ExitNoExec
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = ExitNotFound
	}
	return &Error{Code: code, Err: fmt.Errorf("cannot run the command: %w", err)}
}

// Usage is the error of a command line that is wrong.
func Usage(cmd *cobra.Command, err error) error {
	return &Error{Code: ExitUsage, Err: err, Hint: cmd.CommandPath() + " --help shows how to use it"}
}

// Usagef is Usage with an error of its own.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return Usage(cmd, fmt.Errorf(format, args...))
}

// ExactArgs checks the number of a command's arguments.
func ExactArgs(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return Usagef(cmd, "%s is missing", names)
		case len(args) > n:
			return Usagef(cmd, "unexpected argument %q", strings.Join(args[n:], " "))
		}
		return nil
	}
}

// OneFile returns the only argument of a command, the name of a file or a directory.
func OneFile(cmd *cobra.Command, args []string, what string) (string, error) {
	if err := ExactArgs(1, what)(cmd, args); err != nil {
		return "", err
	}
	if args[0] == "" {
		return "", Usagef(cmd, "%s is empty", what)
	}
	return args[0], nil
}

// Group makes cmd a command that only has subcommands.
func Group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(sub...)
	return cmd
}

// UntilSignal runs a command that a signal ends, the second one at once.
func UntilSignal(ctx context.Context, run func(ctx context.Context) error) error {
	ctx, stop := supervise.UntilTwice(ctx)
	defer stop()
	return Failed(run(ctx))
}

// ServeUntilSignal is UntilSignal for what serves until a signal comes: it has done then what it should.
func ServeUntilSignal(ctx context.Context, run func(ctx context.Context) error) error {
	return UntilSignal(ctx, func(ctx context.Context) error {
		err := run(ctx)
		if _, signal := errors.AsType[supervise.SignalError](err); signal {
			return nil
		}
		return err
	})
}
