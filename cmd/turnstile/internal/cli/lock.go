package cli

// turnstile lock.

import (
	"context"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// locker is "turnstile lock".
type locker struct {
	app      *command.App
	run      command.Runner
	label    string
	shared   bool
	layout   command.Choice
	permits  permits
	newLimit bool
	delay    command.Duration
	nesting  nesting

	json   bool
	forPID int  // of --pid: the process to hold it for; 0 if there is none
	holder bool // this is the process that holds it for another one

	host string // with pid: tells our own contender from others
	pid  int
}

func newLock(app *command.App) *cobra.Command {
	l := &locker{app: app, nesting: nesting{app: app}}
	l.run = command.Runner{App: app, CheckPath: command.CheckPath, Words: command.Words{
		Path: "lock", Noun: "lock", Won: "acquired", Over: "unlocked",
		Busy: "the lock is held or waited for", Late: "the lock is not acquired after this time",
		Next: "turnstile who shows the line",
	}}
	cmd := &cobra.Command{
		Use:   "lock [flags] PATH... [-- COMMAND [ARG...]]",
		Short: "Run a command while holding a lock",
		Long: `Waits in line for the lock at PATH, runs the command while holding it, and exits as the command did.
Without --connect the lock belongs to this user on this machine, and nothing needs to be set up. With
--connect it is shared with all clients of the same ZooKeeper servers.

Several PATHs are a set: turnstile acquires all of them or none, and sets that overlap never deadlock. With
--shared any number of holders share the lock, but never with a holder without --shared. With --permits
N/LIMIT each holder takes N permits of LIMIT in all. A PATH has either permits or a lock. The first holder
stores its LIMIT at PATH, and a command with another LIMIT fails; --new-limit changes it for all.

In a script it behaves as flock(1) does: Ctrl-C stops the script, and it prints nothing if all goes well.
Two things differ. If Ctrl-Z stops it for longer than the session lasts (--session-timeout), it loses the
lock. And it releases the lock when the command itself has ended, even if the command has left processes in
the background: end the command with wait.

The command runs in a process group of its own with the same standard input, output and error, and receives
every signal that turnstile receives. Its environment has TURNSTILE_PATH, TURNSTILE_PATHS (one per line),
TURNSTILE_TOKEN (larger for every later holder of the lock), TURNSTILE_SESSION and
TURNSTILE_SESSION_TIMEOUT_MS. If the lock is lost, the command's group receives SIGTERM, and SIGKILL before
another client can acquire the lock. If the lock is revoked, the same happens, and turnstile then releases
it. (If SIGKILL ends turnstile itself, no process is left to do that; on Linux the command then receives
SIGTERM, but the processes that it has started do not.)

Without a command it prints one line with path and token when it has the lock, and holds it until the end of
standard input or a signal.

With --pid it prints that line and returns, and a process in the background holds the lock until process PID
has ended, in whatever way, or until turnstile unlock. In a script PID is $$. If the lock is lost or revoked,
PID receives SIGTERM, and SIGKILL before another client can acquire the lock; --on-lost says otherwise. (If a
signal ends the process in the background, the lock is released, and nothing tells PID.)

--layout puts it in one line with programs that use Curator, kazoo or go-zookeeper: curator is
InterProcessMutex (with --shared, the readers of InterProcessReadWriteLock); curator-rw is
InterProcessReadWriteLock, as a writer without --shared; kazoo is Lock, WriteLock and ReadLock; both is
curator and kazoo. Turnstile's own locks exclude each other in all layouts. With --permits, curator is
InterProcessSemaphoreV2 and kazoo is Semaphore; a PATH has one of the two.

A command that runs under a lock may use turnstile lock or elect itself. If such commands wait for what each
other holds, each says so, and waits on. With --on-deadlock fail the last one that came exits with 76
instead, within about a second, and the others go on when the command around it has ended. Several PATHs in
one command cannot deadlock. TURNSTILE_HOLDS tells the inner command of the locks around it.

Exit codes: the command's, or 128+N if signal N ended it or the wait; 1 (or -E) lock not acquired; 64 usage;
69 no server; 75 lock lost; 76 deadlock; 77 access denied; 126 command cannot be executed; 127 not found.`,
		Example: `  turnstile lock /jobs/report -- ./report.sh --all
  turnstile lock -n /jobs/report -c 'date >> log; ./report.sh'
  turnstile lock --shared /data -- ./read.sh
  turnstile lock --permits 1/4 /encoders -- ./encode.sh
  turnstile lock /accounts/7 /accounts/9 -- ./transfer.sh 7 9
  turnstile lock -w 30s -E 75 --connect zk1:2181,zk2:2181/app /deploy -- make deploy
  turnstile lock --pid $$ /shell || exit; ./step1; ./step2; turnstile unlock --pid $$ /shell`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.parse(cmd, args); err != nil {
				return err
			}
			switch {
			case l.holder:
				return l.holdForProcess(cmd.Context())
			case l.forPID != 0:
				return l.startHolder(cmd.Context())
			}
			return l.lock(cmd.Context())
		},
	}
	l.layout = command.NewChoice(layoutCurator, layoutCuratorRW, layoutKazoo, layoutBoth)
	flags := cmd.Flags()
	l.run.WaitFlags(cmd, "n")
	flags.BoolVarP(&l.shared, "shared", "s", false, "acquire in shared (reader) mode")
	flags.Var(&l.permits, "permits", "take N permits of LIMIT in all, instead of a lock")
	flags.BoolVar(&l.newLimit, "new-limit", false, "with --permits, change the limit for all users of PATH")
	flags.Var(&l.delay, "delay", "cool-down before the next holder with a --delay may start if this one crashes")
	l.nesting.flags(cmd)
	flags.Var(&l.layout, "layout", "whose programs to share the line with")
	flags.StringVar(&l.label, "label", "", "`text` shown to others (default: the command's name)")
	command.MayBeEmpty(flags, "label")
	flags.BoolVar(&l.json, "json", false,
		"without a command, print one JSON object when the lock is held (docs/cli-json.md)")
	flags.IntVar(&l.forPID, "pid", 0, "return when the lock is held, and hold it until process `PID` has ended")
	flags.BoolVar(&l.holder, holderFlag, false, "hold the lock for --pid, in the background")
	flags.Lookup(holderFlag).Hidden = true
	l.run.Flags(cmd, supervise.Term, supervise.Kill, supervise.Ignore)
	return cmd
}

// isPID reports whether a process can have this id. Systems cut larger ones to 32 bits: 4294967295 would be -1, which
// means every process.
func isPID(pid int) bool { return 0 < pid && pid <= math.MaxInt32 }

// parse checks the command line.
func (l *locker) parse(cmd *cobra.Command, args []string) error {
	if err := l.run.Parse(cmd, args, l.checkKind); err != nil {
		return err
	}
	if l.run.Argv != nil && cmd.Flags().Changed("json") {
		return command.Usagef(cmd, "--json is for holding the lock without a command: leave one out")
	}
	switch given := cmd.Flags().Changed("pid"); {
	case given && l.run.Argv != nil:
		return command.Usagef(cmd, "--pid and a command contradict each other: leave one out")
	case given && !isPID(l.forPID):
		return command.Usagef(cmd, "--pid must be the id of a process: %d", l.forPID)
	case given && l.label == "":
		l.label = "for process " + strconv.Itoa(l.forPID)
	case l.label == "" && len(l.run.Argv) > 0:
		l.label = l.run.Name()
	}
	if err := l.nesting.parse(cmd); err != nil {
		return err
	}
	l.pid = os.Getpid()
	l.host, _ = os.Hostname() // as the lock records it; without one, our own node may be shown as in the way
	return nil
}

// lock waits for the lock, and holds it while the command runs.
func (l *locker) lock(ctx context.Context) error {
	program, err := l.run.Program()
	if err != nil {
		return err
	}
	signals := supervise.Catch()
	defer l.app.Release(signals)
	until, stop := signals.Until(ctx)
	client, hold, err := l.acquire(until)
	stop()
	if client != nil {
		defer client.Close() // if it fails, the session ends by itself
	}
	if err := interrupted(ctx, until, err); err != nil {
		return command.Failed(deadlocked(err))
	}
	l.run.Env = append(l.run.Env, l.nesting.variable(hold)) //nolint:contextcheck // the hold's context, not ours
	h := command.Hold{Held: hold, Release: hold.Unlock, ReleaseWait: hold.UnlockWait}
	if len(l.run.Argv) == 0 {
		return l.holdUntilEOF(ctx, h, signals)
	}
	result, err := l.run.Run(ctx, h, signals, program)
	switch {
	case err != nil:
		return err
	case result.Lost == nil || l.run.OnLost() == supervise.Ignore:
		return command.Ended(result.Ending)
	}
	return l.run.LostError(result.Lost)
}

// interrupted returns why a wait under until has ended: a signal, the end of ctx, or err.
func interrupted(ctx, until context.Context, err error) error {
	if cause := context.Cause(until); cause != nil { // a signal may have come together with what was waited for
		err = cause
	}
	if ctx.Err() != nil {
		err = supervise.AsSignal(err)
	}
	return err
}
