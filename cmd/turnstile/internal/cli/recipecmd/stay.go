package recipecmd

// Taking part for as long as a command runs.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/zk"
)

// stay is a command that takes part in something while another command runs, or else until standard input ends.
type stay struct {
	*access
	argv []string // the command; empty if there is none
}

// place is what a stay has while it lasts.
type place struct {
	lost  context.Context             //nolint:containedctx // ends when it is lost for good; nil if it never is
	env   []string                    // more of the command's environment
	text  string                      // to print without a command
	json  any                         // likewise, with --json
	leave func(context.Context) error // waits until it has ended
}

const stayExit = `

Exit codes: the command's, or 128+N if signal N ended it or the wait; without a command 0 at the end of standard
input; 64 usage; 69 no server; %s77 access denied; 126 command cannot be executed; 127 not found.`

func newStay(app *command.App) *stay { return &stay{access: newAccess(app)} }

// run makes cmd a command that takes arguments, which parse checks, and then perhaps a command. enter waits for the
// place.
func (s *stay) run(cmd *cobra.Command, parse func(*cobra.Command, []string) error,
	enter func(context.Context, *zk.Client) (place, error),
) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		before := args
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			before, s.argv = args[:dash], args[dash:]
			if len(s.argv) == 0 {
				return command.Usagef(cmd, "there is no command after --")
			}
		}
		if len(s.argv) > 0 && cmd.Flags().Changed("json") {
			return command.Usagef(cmd, "--json is for use without a command: leave one out")
		}
		if len(before) > 1 && cmd.ArgsLenAtDash() < 0 {
			return command.Usagef(cmd, "put -- before the command: %s %s -- %s",
				cmd.CommandPath(), before[0], strings.Join(before[1:], " "))
		}
		return parse(cmd, before)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return command.Failed(s.stay(cmd.Context(), enter)) }
	s.Flags(cmd, "without a command, one JSON object at the beginning")
	s.Connection.ACLFlags(cmd.Flags())
	return cmd
}

// stay enters, runs the command and leaves.
func (s *stay) stay(ctx context.Context, enter func(context.Context, *zk.Client) (place, error)) error {
	program := ""
	if len(s.argv) > 0 {
		var err error
		if program, err = exec.LookPath(s.argv[0]); err != nil {
			return command.CannotRun(err)
		}
	}
	signals := supervise.Catch()
	defer s.App.Release(signals)
	until, stop := signals.Until(ctx)
	client, sess, err := s.Connection.Open(until, s.App)
	if err != nil {
		stop()
		return s.interrupted(ctx, until, err)
	}
	defer client.Close() // if it fails, the session ends by itself
	s.Connection.WarnOfTimeout(s.App, s.Path, sess.Timeout())
	p, err := s.enter(until, client, sess, enter)
	stop()
	if err = s.interrupted(ctx, until, err); err != nil {
		return err // closing the client ends the session, and so takes part no more
	}
	if program == "" {
		return s.hold(ctx, signals, p)
	}
	return s.command(ctx, sess, signals, p, program)
}

// enter waits for the place until the servers stay away for longer than --connect-timeout.
func (s *stay) enter(ctx context.Context, client *zk.Client, sess *zk.Session,
	enter func(context.Context, *zk.Client) (place, error),
) (place, error) {
	ctx, stop := s.Connection.Until(ctx, client, sess, nil)
	defer stop()
	p, err := enter(ctx, client)
	return p, s.Explain(ctx, client, err)
}

// interrupted returns why a wait under until has ended: a signal, the end of ctx, or err.
func (s *stay) interrupted(ctx, until context.Context, err error) error {
	if ctx.Err() != nil {
		return supervise.AsSignal(ctx.Err())
	}
	if cause := context.Cause(until); cause != nil {
		return cause
	}
	return err
}

// hold keeps the place until standard input ends or a signal comes.
func (s *stay) hold(ctx context.Context, signals *supervise.Signals, p place) error {
	eof := make(chan struct{})
	go func() { // a read of a terminal cannot be interrupted; the process ends soon after us
		defer close(eof)
		_, _ = io.Copy(io.Discard, s.App.Stdin) // an error also ends the input
	}()
	if err := s.App.Report(s.AsJSON, p.json, "%s\n", p.text); err != nil {
		return err
	}
	until, stop := signals.Until(ctx)
	defer stop()
	select {
	case <-eof:
		return s.left(until, p.leave(until))
	case <-p.done():
		return s.lost(context.Cause(p.lost)) //nolint:contextcheck // the place's context, not ours
	case <-until.Done():
		return supervise.AsSignal(context.Cause(until))
	}
}

// done is closed when the place is lost; nil if it never is.
func (p place) done() <-chan struct{} {
	if p.lost == nil {
		return nil
	}
	return p.lost.Done()
}

// left returns why a place was not left in good order.
func (s *stay) left(until context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case context.Cause(until) != nil:
		return supervise.AsSignal(context.Cause(until))
	}
	return s.lost(err)
}

func (s *stay) lost(cause error) error {
	return &command.Error{Code: command.ExitLost, Err: fmt.Errorf("%s: %w", s.Path, whyLost(cause))}
}

// whyLost says what has ended a place: the session, or another client that deleted its node.
func whyLost(cause error) error {
	if errors.Is(cause, barrier.ErrDeleted) {
		return cause
	}
	return fmt.Errorf("the session ended: %w", cause)
}

// command runs the command, and leaves when it has ended. The command runs on if its place is lost.
func (s *stay) command(ctx context.Context, sess *zk.Session, signals *supervise.Signals, p place, program string,
) error {
	held := context.WithoutCancel(ctx) //nolint:contextcheck // it is derived from ctx
	if p.lost != nil {
		held = p.lost
	}
	process, err := supervise.Start(supervise.Command{
		Program: program, Args: s.argv, Env: slices.Concat(s.App.Env.List, p.env, []string{"TURNSTILE_PATH=" + s.Path}),
		Stdin: s.App.Stdin, Stdout: s.App.Stdout, Stderr: s.App.Stderr, OnLost: supervise.Ignore,
		Lost: func(cause error, _ time.Duration) {
			s.App.Say("%s: place lost, the command runs on: %v", s.Path, cause)
		},
		Stopping: func(time.Duration) {},
	}, supervise.Hold{Context: held, Session: sess}, signals)
	if err != nil {
		return command.CannotRun(err)
	}
	result := process.Wait(ctx)
	sig := signals.AfterCommand()
	if result.Interrupted || sig != nil || ctx.Err() != nil {
		return command.Ended(result.Ending) // without waiting for others; the end of the session leaves, too
	}
	until, stop := signals.Until(ctx)
	defer stop()
	err = s.left(until, p.leave(until))
	if err != nil && result.Code == 0 {
		return err
	}
	return command.Ended(result.Ending)
}

// soon makes a function that waits return at a signal, and after a while without an answer: what it has begun goes on
// until the client is closed, and the end of the session does the rest.
func soon(leave func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, command.ReconnectWait)
		defer cancel()
		_ = leave(ctx)
		return nil
	}
}
