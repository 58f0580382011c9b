package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
)

// elector is "turnstile elect": a runner under a leadership, again and again.
type elector struct {
	runner
	id      string
	json    bool
	layout  choice
	observe bool
	once    bool
}

// layouts are the words of --layout.
var layouts = map[string]elect.Layout{ //nolint:gochecknoglobals // a table
	"latch": elect.LeaderLatch, "selector": elect.LeaderSelector, "kazoo": elect.KazooElection,
}

func (c *cli) elect() *cobra.Command {
	e := &elector{runner: runner{cli: c, valid: checkPath, words: words{
		path: "election", noun: "leadership", won: "elected", over: "resigned",
		busy: "somebody leads or waits to", late: "not elected after this time, at first or after a loss", next: "turnstile who shows the line",
	}}}
	cmd := &cobra.Command{
		Use:   "elect [flags] PATH [-- COMMAND [ARG...]]",
		Short: "Run a command while elected leader, or observe who leads",
		Long: `Stands for election at PATH and runs the command while elected. When the command ends, we resign and exit as
it did. When the leadership is lost, the command's group gets SIGTERM, and SIGKILL before anybody else can
lead; then we stand for election again. The command gets every signal that we get: on SIGTERM it can end in
peace, and the next candidate leads as soon as it has ended.

The command finds TURNSTILE_PATH, TURNSTILE_ID, TURNSTILE_TOKEN (larger for every later leader),
TURNSTILE_SESSION and TURNSTILE_SESSION_TIMEOUT_MS in its environment. (A candidate that runs under another
turnstile command does not take its --id from TURNSTILE_ID, which is that one's.)

With --observe nothing is run: a line is printed for who leads now, and after every change, until a signal
comes. A change back within a moment may be left out, the last one never is.

A server that is away at the start is waited for as --connect-timeout says; later, until it is back.

Exit codes: the command's, or 128+N if signal N ended it or our wait; 1 (or -E) not elected; 64 usage;
69 no server; 75 leadership lost (with --once, or after a signal to end); 77 access denied; 126 command
cannot be executed; 127 not found.`,
		Example: `  turnstile elect --connect zk1:2181,zk2:2181 /app/leader --id "$(hostname)" -- ./scheduler
  turnstile elect -n -E 75 /app/leader -- ./only-if-nobody-leads
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
	e.layout = choice{value: "latch", words: []string{"latch", "selector", "kazoo"}}
	flags := cmd.Flags()
	e.waitFlags(flags, "n")
	flags.StringVar(&e.id, "id", "", "`name` by which others know this candidate (default: the host's name)")
	flags.Var(&e.layout, "layout", "with whose candidates to stand: Curator's LeaderLatch, its LeaderSelector, or kazoo's Election")
	flags.BoolVar(&e.observe, "observe", false, "print who leads, now and after every change")
	flags.BoolVar(&e.once, "once", false, "exit with 75 when the leadership is lost, do not stand again")
	flags.BoolVar(&e.json, "json", false, "with --observe, print one JSON object per change (docs/cli-json.md)")
	e.runner.flags(cmd, onLostTerm, onLostKill)
	e.connection.aclFlag(flags)
	return cmd
}

// take checks the command line.
func (e *elector) take(cmd *cobra.Command, args []string) error {
	if err := e.parse(cmd, args, e.takeMode); err != nil {
		return err
	}
	if e.id == "" {
		e.id, _ = os.Hostname() // without a name it stands without an id
	}
	e.extra = []string{"TURNSTILE_ID=" + e.id}
	return nil
}

// takeMode checks whether there is something to run, or to observe.
func (e *elector) takeMode(cmd *cobra.Command) error {
	flags := cmd.Flags()
	wrong := func(text string) error { return usage(cmd, errors.New(text)) }
	if e.observe && cmd.ArgsLenAtDash() < 0 && !flags.Changed("command") {
		e.argv = nil // TURNSTILE_COMMAND is for those who run something
	}
	switch {
	case len(e.paths) > 1:
		return wrong("an election has one PATH")
	case e.observe && e.argv != nil:
		return wrong("--observe runs no command: leave one of the two out")
	case e.observe && (flags.Changed("no-wait") || flags.Changed("wait") || flags.Changed("once")):
		return wrong("--observe goes on until a signal comes: leave --no-wait, --wait and --once out")
	case !e.observe && e.argv == nil:
		return wrong("the command to run while elected is missing (or --observe)")
	case !e.observe && flags.Changed("json"):
		return wrong("--json is for --observe: a command's output is its own")
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
	fits := placeLock // whose names a LeaderSelector has, and kazoo's Election
	if layouts[e.layout.value] == elect.LeaderLatch {
		fits = placeElection
	}
	if err := refuseOthers(ctx, client, sess, e.paths, fits); err != nil {
		return client, nil, err
	}
	cfg := elect.Config{Layout: layouts[e.layout.value], ACL: e.connection.acl.list}
	candidate, err := elect.NewCandidate(client, e.path, e.id, cfg)
	if err != nil {
		return client, nil, &exitError{code: ExitUsage, err: err, hint: "see --id"}
	}
	return client, candidate, nil
}

// run campaigns and runs the command while elected, until it has ended by itself or a signal has come.
func (e *elector) run(ctx context.Context) error {
	program, err := e.program()
	if err != nil {
		return err
	}
	signals := catchSignals(ending()...)
	defer func() { signals.release() }()
	calm, settle := signals.ending(ctx)
	client, candidate, err := e.candidate(calm)
	settle()
	if client != nil {
		defer client.Close() // the session ends by itself if it cannot be closed now
	}
	if err = calledOff(ctx, calm, err); err != nil {
		return failed(err)
	}
	for {
		l, err := e.campaign(ctx, client, candidate, signals)
		if err != nil {
			return failed(err)
		}
		e.detail("%s: elected, token %d, session %s with a timeout of %v", e.path, l.Token(), sessionID(l.Session().ID()), l.Session().Timeout())
		s, err := e.attend(ctx, leaderHeld{l}, signals, program)
		switch {
		case err != nil:
			return err
		case s.lost == nil:
			return s.ended()
		case e.once || s.called:
			return e.lostError(s.lost)
		}
		e.say("%s: leadership lost, standing for election again: %v", e.path, s.lost)
		next, sig := signals.next()
		if signals = next; sig != nil {
			return failed(signalled{sig})
		}
	}
}

// calledOff returns why what was done under calm has ended: a signal, ctx, or err.
func calledOff(ctx, calm context.Context, err error) error {
	if cause := context.Cause(calm); cause != nil { // a signal may have come with what was waited for
		err = cause
	}
	if ctx.Err() != nil {
		err = asSignal(err)
	}
	return err
}

// campaign stands for election as --no-wait and --wait say, until a signal comes. The caller closes the client, which takes along what a
// signal has left behind.
func (e *elector) campaign(ctx context.Context, client *zk.Client, candidate *elect.Candidate, signals *signals) (*elect.Leadership, error) {
	calm, settle := signals.ending(ctx)
	l, err := e.stand(calm, client, candidate)
	settle()
	if err := calledOff(ctx, calm, nil); err != nil {
		return nil, err
	}
	switch {
	case errors.Is(err, elect.ErrLed), errors.Is(err, errWaited):
		return nil, e.conflicted(ctx, client, func(ctx context.Context, _ *zk.Client) string { return leads(ctx, candidate) })
	case errors.Is(err, errNoAnswer):
		return nil, e.connection.noServer(client.LastError())
	}
	return l, err
}

func (e *elector) stand(ctx context.Context, client *zk.Client, candidate *elect.Candidate) (*elect.Leadership, error) {
	if e.noWait {
		ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(e.connection.connectTimeout), errNoAnswer)
		defer cancel()
		sess, err := client.Session(ctx)
		if err == nil {
			err = e.sync(ctx, sess) // who resigned before we came has resigned, also for the server that we are connected to
		}
		if err != nil {
			return nil, err
		}
		return candidate.TryCampaign(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if e.waits {
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(e.wait), errWaited)
		defer cancel()
	}
	defer e.tellLater(func() string { return leads(ctx, candidate) })()
	return candidate.Campaign(ctx)
}

// leads says who leads. It is empty if nobody does, or nobody knows.
func leads(ctx context.Context, candidate *elect.Candidate) string {
	list, err := candidate.Participants(ctx)
	if err != nil || len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s leads, %d in line", plain(list[0].ID), len(list))
}

// leaderHeld is a leadership that a command runs under.
type leaderHeld struct{ *elect.Leadership }

func (h leaderHeld) number() int64                         { return int64(h.Token()) }
func (h leaderHeld) release() error                        { return h.Resign() }
func (h leaderHeld) releaseWait(ctx context.Context) error { return h.ResignWait(ctx) }
