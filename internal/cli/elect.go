package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
)

// elector is "turnstile elect": a locker of a leadership, again and again.
type elector struct {
	locker
	id      string
	layout  choice
	observe bool
	once    bool
}

// layouts are the words of --layout.
var layouts = map[string]elect.Layout{ //nolint:gochecknoglobals // a table
	"latch": elect.LeaderLatch, "selector": elect.LeaderSelector, "kazoo": elect.KazooElection,
}

func (c *cli) elect() *cobra.Command {
	e := &elector{locker: locker{cli: c, words: words{noun: "leadership", over: "resigned"}}}
	cmd := &cobra.Command{
		Use:   "elect [flags] PATH [-- COMMAND [ARG...]]",
		Short: "Run a command while elected leader, or observe who leads",
		Long: `Stands for election at PATH and runs the command while elected. When the command ends, we resign and exit as
it did. When the leadership is lost, the command's group gets SIGTERM, and SIGKILL before anybody else can
lead; then we stand for election again. On SIGTERM the command gets it, and we resign after it has ended.

The command finds TURNSTILE_PATH, TURNSTILE_ID, TURNSTILE_TOKEN (larger for every later leader),
TURNSTILE_SESSION and TURNSTILE_SESSION_TIMEOUT_MS in its environment.

With --observe nothing is run: a line is printed for who leads now, and after every change.

A server that is away at the start is waited for as --connect-timeout says; later, until it is back.

Exit codes: the command's, or 128+N if signal N ended it or our wait; 64 usage; 69 no server; 75 leadership
lost (with --once, or after a signal to end); 77 access denied; 126 command cannot be executed; 127 not found.`,
		Example: `  turnstile elect --connect zk1:2181,zk2:2181 /app/leader --id "$(hostname)" -- ./scheduler
  turnstile elect --observe /app/leader
  turnstile elect --observe --json /app/leader | jq -r .leader.id`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.take(cmd, args); err != nil {
				return err
			}
			if e.observe {
				return e.watch(cmd.Context())
			}
			return e.run(cmd.Context())
		},
	}
	e.grace = duration(time.Second)
	e.onLost = choice{value: onLostTerm, words: []string{onLostTerm, onLostKill}}
	e.layout = choice{value: "latch", words: []string{"latch", "selector", "kazoo"}}
	flags := cmd.Flags()
	flags.StringVar(&e.id, "id", "", "`name` by which others know this candidate (default: the host's name)")
	flags.Var(&e.layout, "layout", "with whose candidates to stand: Curator's LeaderLatch, its LeaderSelector, or kazoo's Election")
	flags.BoolVar(&e.observe, "observe", false, "print who leads, now and after every change")
	flags.BoolVar(&e.once, "once", false, "exit with 75 when the leadership is lost, do not stand again")
	flags.StringVarP(&e.shell, "command", "c", "", "run a command `line` with the shell")
	flags.Var(&e.grace, "grace", "when the leadership is lost, time between SIGTERM and SIGKILL; at most a quarter of the session timeout")
	flags.Var(&e.onLost, "on-lost", "how to end the command when the leadership is lost")
	flags.BoolVarP(&e.quiet, "quiet", "q", false, "say nothing of losses and short graces")
	flags.BoolVarP(&e.verbose, "verbose", "v", false, "say what happens, on standard error")
	flags.BoolVar(&e.json, "json", false, "with --observe, print one JSON object per change (docs/cli-json.md)")
	e.connection.flags(flags)
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
	return cmd
}

// take checks the command line.
func (e *elector) take(cmd *cobra.Command, args []string) error {
	wrong := func(format string, a ...any) error { return usage(cmd, fmt.Errorf(format, a...)) }
	flags, before := cmd.Flags(), args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, e.argv = args[:dash], args[dash:]
		if len(e.argv) == 0 {
			return wrong("there is no command after --")
		}
	}
	switch {
	case len(before) == 0:
		return wrong("PATH is missing: name the election, such as /app/leader")
	case len(before) > 1:
		return wrong("put -- before the command: turnstile elect %s -- %s", before[0], strings.Join(before[1:], " "))
	}
	e.path = before[0]
	if err := checkPath(e.path); err != nil {
		return wrong("%w", err)
	}
	switch shell := flags.Changed("command"); {
	case shell && e.argv != nil:
		return wrong("-c and a command after -- contradict each other: leave one out")
	case shell || e.argv == nil && e.shell != "" && !e.observe:
		e.argv = shellCommand(e.shell)
	}
	switch {
	case e.observe && e.argv != nil:
		return wrong("--observe runs no command: leave one of the two out")
	case !e.observe && e.argv == nil:
		return wrong("the command to run while elected is missing (or --observe)")
	case !e.observe && flags.Changed("json"):
		return wrong("--json is for --observe: a command's output is its own")
	}
	if e.id == "" {
		e.id, _ = os.Hostname() // without a name it stands without an id
	}
	e.extra, e.graced = []string{"TURNSTILE_ID=" + e.id}, given(flags, e.env, "grace")
	if e.verbose {
		e.connection.logger = slog.New(slog.NewTextHandler(e.stderr, nil))
	}
	return nil
}

// candidate connects. The caller closes the client, which comes back with an error, too.
func (e *elector) candidate(ctx context.Context) (*zk.Client, *elect.Candidate, error) {
	client, sess, err := e.open(ctx, &e.connection)
	if err != nil {
		return nil, nil, err
	}
	e.mentionGrace(sess.Timeout())
	candidate, err := elect.NewCandidate(client, e.path, e.id, elect.Config{Layout: layouts[e.layout.value]})
	if err != nil {
		return client, nil, &exitError{code: ExitUsage, err: err, hint: "see --id"}
	}
	return client, candidate, nil
}

// run campaigns and runs the command while elected, until it has ended by itself or a signal has come.
func (e *elector) run(ctx context.Context) error {
	program, err := exec.LookPath(e.argv[0])
	if err != nil { // a typing error need not wait in line
		return cannotRun(err)
	}
	signals := catchSignals(ending()...)
	defer func() { signals.release() }()
	calm, settle := signals.ending(ctx)
	client, candidate, err := e.candidate(calm)
	settle()
	if client != nil {
		defer client.Close() // the session ends by itself if it cannot be closed now
	}
	for err == nil && context.Cause(calm) == nil {
		calm, settle = signals.ending(ctx)
		var l *elect.Leadership
		l, err = candidate.Campaign(calm)
		settle()
		if err != nil || context.Cause(calm) != nil { // a signal may have come with the election
			break
		}
		e.detail("%s: elected, token %d, session %s with a timeout of %v", e.path, l.Token(), sessionID(l.Session().ID()), l.Session().Timeout())
		var s *supervisor
		s, err = e.attend(ctx, leaderHeld{l}, signals, program)
		switch {
		case err != nil:
			return err
		case s.lost == nil:
			return &exitError{code: s.child.code}
		case e.once || s.called:
			return e.lostError(s.lost)
		}
		e.say("%s: leadership lost, standing for election again: %v", e.path, s.lost)
		next, sig := signals.next()
		if signals = next; sig != nil {
			err = signalled{sig}
		}
	}
	if cause := context.Cause(calm); cause != nil {
		err = cause
	}
	if ctx.Err() != nil {
		err = asSignal(err)
	}
	return failed(err)
}

// leaderHeld is a leadership that a command runs under.
type leaderHeld struct{ *elect.Leadership }

func (h leaderHeld) number() int64                         { return int64(h.Token()) }
func (h leaderHeld) release(ctx context.Context) error     { return h.Resign(ctx) }
func (h leaderHeld) releaseWait(ctx context.Context) error { return h.ResignWait(ctx) }
