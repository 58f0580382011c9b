package cli

// turnstile elect.

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// elector is "turnstile elect".
type elector struct {
	app     *command.App
	run     command.Runner
	id      string
	json    bool
	layout  command.Choice
	observe bool
	once    bool
	delay   command.Duration
	nesting nesting
}

// layouts are the words of --layout.
var layouts = map[string]elect.Layout{ //nolint:gochecknoglobals // a table
	"latch": elect.LeaderLatch, "selector": elect.LeaderSelector, "kazoo": elect.KazooElection,
	layoutBoth: elect.Both, "support": elect.LeaderElectionSupport,
}

func newElect(app *command.App) *cobra.Command {
	e := &elector{app: app, nesting: nesting{app: app}}
	e.run = command.Runner{App: app, CheckPath: command.CheckPath, Words: command.Words{
		Path: "election", Noun: "leadership", Won: "elected", Over: "resigned",
		Busy: "another candidate leads or waits", Late: "not elected after this time, at first or after a loss",
		Next: "turnstile who shows the line",
	}}
	cmd := &cobra.Command{
		Use:   "elect [flags] PATH [-- COMMAND [ARG...]]",
		Short: "Run a command while elected leader, or observe the leader",
		Long: `Stands for election at PATH and runs the command while elected. When the command ends, turnstile resigns
and exits as the command did. When the leadership is lost, the command's group receives SIGTERM, and SIGKILL
before another candidate can lead; then turnstile stands for election again. The same happens when another
client asks for the leadership ("turnstile revoke"), except that no other candidate leads before the command
has ended, and that turnstile then stands behind the others. The command receives every
signal that turnstile receives: after SIGTERM it can shut down, and the next candidate leads as soon as it
has ended.

The command's environment has TURNSTILE_PATH, TURNSTILE_ID, TURNSTILE_TOKEN (larger for every later leader),
TURNSTILE_SESSION and TURNSTILE_SESSION_TIMEOUT_MS. (A candidate that runs under another turnstile command
does not take its --id from TURNSTILE_ID, which is that command's.)

A command that runs while elected may use turnstile lock or elect itself. See turnstile lock about such commands
that wait for what each other holds: --on-deadlock is the same there.

With --observe it runs nothing: it prints a line with the leader now and after every change, until a signal
comes. It may skip changes that follow each other quickly, but never the last one.

At the start it waits for a server as long as --connect-timeout says; later it waits until one is back.

Exit codes: the command's, or 128+N if signal N ended it or the wait; 1 (or -E) not elected; 64 usage; 69 no
server; 75 leadership lost (with --once, or after a signal to end); 76 deadlock; 77 access denied; 126 command
cannot be executed; 127 not found.`,
		Example: `  turnstile elect --connect zk1:2181,zk2:2181 /app/leader --id "$(hostname)" -- ./scheduler
  turnstile elect -n -E 75 /app/leader -- ./only-if-nobody-leads
  turnstile elect --observe /app/leader
  turnstile elect --observe --json /app/leader | jq -r .leader.id`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.parse(cmd, args); err != nil {
				return err
			}
			if e.observe {
				return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
					return app.WhileRead(ctx, e.watch)
				})
			}
			return e.lead(cmd.Context())
		},
	}
	e.layout = command.NewChoice("latch", "selector", "kazoo", layoutBoth, "support")
	flags := cmd.Flags()
	e.run.WaitFlags(cmd, "n")
	flags.StringVar(&e.id, "id", "", "`name` of this candidate (default: the host's name)")
	flags.Var(&e.layout, "layout",
		"whose candidates to compete with: Curator's LeaderLatch, its LeaderSelector, kazoo's Election, "+
			"both of these two, or zookeeper-recipes' LeaderElectionSupport")
	command.VariablesOf("elect", flags, "layout")
	flags.Var(&e.delay, "delay", "cool-down before the next leader with a --delay may start if this one crashes")
	flags.BoolVar(&e.observe, "observe", false, "print the leader, now and after every change")
	flags.BoolVar(&e.once, "once", false, "exit with 75 when the leadership is lost, instead of standing again")
	flags.BoolVar(&e.json, "json", false, "with --observe, print one JSON object per change (docs/cli-json.md)")
	e.nesting.flags(cmd)
	e.run.Flags(cmd, supervise.Term, supervise.Kill)
	return cmd
}

// parse checks the command line.
func (e *elector) parse(cmd *cobra.Command, args []string) error {
	if err := e.run.Parse(cmd, args, e.checkMode); err != nil {
		return err
	}
	if e.id == "" {
		e.id, _ = os.Hostname() // without a name it stands without an id
	}
	return e.nesting.parse(cmd)
}

// checkMode checks that there is either something to run or an election to observe.
func (e *elector) checkMode(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if e.observe && cmd.ArgsLenAtDash() < 0 && !flags.Changed("command") {
		e.run.Argv = nil // TURNSTILE_COMMAND is for commands that run something
	}
	switch {
	case len(e.run.Paths) > 1:
		return command.Usagef(cmd, "an election has one PATH")
	case e.observe && e.run.Argv != nil:
		return command.Usagef(cmd, "--observe runs no command: leave one of them out")
	case e.observe && (flags.Changed("no-wait") || flags.Changed("wait") || flags.Changed("once")):
		return command.Usagef(cmd, "--observe runs until a signal comes: leave --no-wait, --wait and --once out")
	case !e.observe && e.run.Argv == nil:
		return command.Usagef(cmd, "the command is missing: name one to run while elected, or use --observe")
	case e.delay > 0 && layouts[e.layout.Value] == elect.LeaderElectionSupport:
		return command.Usagef(cmd, "--layout support has no --delay: its names can come again; leave one of them out")
	case !e.observe && flags.Changed("json"):
		return command.Usagef(cmd, "--json is for --observe: leave it out, or the command")
	}
	return nil
}

// connect connects and returns the candidate. The caller closes the client, which is also returned with an error.
func (e *elector) connect(ctx context.Context) (*zk.Client, *elect.Candidate, error) {
	client, sess, err := e.run.Connection.Open(ctx, e.app)
	if err != nil {
		return nil, nil, err
	}
	e.run.WarnOfTimes(sess.Timeout())
	fits := survey.Lock // LeaderSelector and kazoo's Election name their nodes as locks do
	switch layouts[e.layout.Value] {
	case elect.LeaderLatch:
		fits = survey.Election
	case elect.LeaderElectionSupport:
		fits = survey.Support
	case elect.LeaderSelector, elect.KazooElection, elect.Both:
	}
	err = e.run.Connection.During(ctx, client, sess, func(ctx context.Context) error {
		return refuseOthers(ctx, client, sess, e.run.Paths, fits)
	})
	if err != nil {
		return client, nil, err
	}
	cfg := elect.Config{
		Layout: layouts[e.layout.Value], ACL: e.run.Connection.ACL(), AnyACL: e.run.Connection.AnyACL,
		Delay: time.Duration(e.delay), OnDeadlock: e.nesting.mode(), Hooks: elect.Hooks{
			Stranger: e.run.WarnOfStranger, Stray: e.run.WarnOfStray,
			Deadlock: func(ev elect.Event) { e.nesting.warn(e.run.Path, ev.Err) },
		},
	}
	candidate, err := elect.NewCandidate(client, e.run.Path, e.id, cfg)
	if err != nil {
		return client, nil, &command.Error{Code: command.ExitUsage, Err: err, Hint: "see --id"}
	}
	return client, candidate, nil
}

// lead campaigns and runs the command while elected, until it has ended by itself or a signal has come.
func (e *elector) lead(ctx context.Context) error {
	program, err := e.run.Program()
	if err != nil {
		return err
	}
	signals := supervise.Catch()
	defer e.app.Release(signals)
	until, stop := signals.Until(ctx)
	client, candidate, err := e.connect(until)
	stop()
	if client != nil {
		defer client.Close() // if it fails, the session ends by itself
	}
	if err = interrupted(ctx, until, err); err != nil {
		return command.Failed(err)
	}
	for {
		l, err := e.campaign(ctx, client, candidate, signals)
		if err != nil {
			return command.Failed(deadlocked(err))
		}
		//nolint:contextcheck // the leadership's context, not ours
		e.run.Env = []string{"TURNSTILE_ID=" + e.id, e.nesting.variable(l)}
		e.app.Detail("%s: elected, token %d, session %s with a timeout of %v",
			e.run.Path, l.Token(), command.SessionID(l.Session().ID()), l.Session().Timeout())
		h := command.Hold{Held: l, Release: l.Resign, ReleaseWait: l.ResignWait}
		result, err := e.run.Run(ctx, h, signals, program)
		switch {
		case err != nil:
			return err
		case result.Lost == nil:
			return command.Ended(result.Ending)
		case e.once || result.Interrupted:
			return e.run.LostError(result.Lost)
		}
		e.app.Say("%s: leadership lost, standing for election again: %v", e.run.Path, result.Lost)
		if sig := signals.AfterCommand(); sig != nil {
			return command.Failed(supervise.SignalError{Signal: sig})
		}
	}
}

// campaign stands for election until a signal comes. What that leaves at the servers ends when the caller closes the
// client.
func (e *elector) campaign(ctx context.Context, client *zk.Client, candidate *elect.Candidate,
	signals *supervise.Signals,
) (*elect.Leadership, error) {
	until, stop := signals.Until(e.nesting.within(ctx))
	leads := func(ctx context.Context) string { return e.leads(ctx, candidate) }
	l, err := command.Acquire(until, &e.run, client, candidate.TryCampaign, candidate.Campaign, elect.ErrLed, leads)
	stop()
	if err := interrupted(ctx, until, nil); err != nil {
		return nil, err
	}
	return l, err
}

// leads says who leads; empty if nobody does, or that is not known.
func (e *elector) leads(ctx context.Context, candidate *elect.Candidate) string {
	list, err := candidate.Participants(ctx)
	switch {
	case err != nil:
		return ""
	case len(list) > 0:
		return fmt.Sprintf("%s leads, %d in line", command.Plain(list[0].ID), len(list)-1)
	case e.delay > 0:
		return "the previous leader was lost, and its --delay has not passed"
	}
	return ""
}
