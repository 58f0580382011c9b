package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/lock"
)

// words are what messages call what a command runs under.
type words struct {
	path string // what PATH names
	noun string // what is lost
	won  string // what is done to have it
	over string // what was done with it at the end
}

// locker is "turnstile lock".
type locker struct {
	*cli
	words      words
	connection connection
	noWait     bool
	wait       duration
	waits      bool // wait is a limit
	conflict   exitCode
	label      string
	shared     bool
	layout     choice
	permits    permits
	newLimit   bool
	delay      duration
	grace      duration
	graced     bool // grace was asked for
	onLost     choice
	shell      string
	quiet      bool
	verbose    bool
	json       bool

	paths []string // what is locked; several are a set
	path  string   // all of them, for messages
	argv  []string // the command; empty to hold the lock without one

	host string // who we are, in a line
	pid  int

	extra []string // more of the command's environment
}

func (c *cli) lock() *cobra.Command {
	l := &locker{cli: c, words: words{path: "lock", noun: "lock", won: "acquired", over: "unlocked"}}
	cmd := &cobra.Command{
		Use:   "lock [flags] PATH... [-- COMMAND [ARG...]]",
		Short: "Run a command while holding a lock",
		Long: `Waits in line for the lock at PATH, runs the command while holding it, and exits as the command did.
Without --connect the lock is this user's, on this machine: nothing needs to be set up. With --connect it
is shared by all who use the same ZooKeeper servers.

Several PATHs are a set: all of them or none, and sets that have some in common never wait for each other.
With --shared any number of holders have the lock together, and none while one without --shared has it.
With --permits N/LIMIT holders take N permits each, of which there are LIMIT in all; a PATH has either
permits or a lock.

The command runs in a process group of its own with our standard input, output and error, and gets every
signal that we get. It finds TURNSTILE_PATH, TURNSTILE_PATHS (one a line, if they are several),
TURNSTILE_TOKEN (larger for every later holder of the lock), TURNSTILE_SESSION and
TURNSTILE_SESSION_TIMEOUT_MS in its environment. If the lock is lost, its group gets SIGTERM, and SIGKILL
before anybody else can have the lock; if it is revoked, likewise, and the lock is given up then. (If turnstile itself is killed with SIGKILL nobody is left to see to
that; on Linux the command, but not what it has started, gets SIGTERM then.)

Without a command it prints one line, path and token, when it has the lock, and holds it until standard
input ends or a signal comes.

Programs that use Curator, kazoo or go-zookeeper stand in the same line if --layout says with whom: curator
is InterProcessMutex (and, with --shared, the readers of InterProcessReadWriteLock); curator-rw is
InterProcessReadWriteLock, of which we are a writer without --shared; kazoo is Lock, WriteLock and ReadLock;
both is curator and kazoo. Among ourselves all layouts exclude each other.

Exit codes: the command's, or 128+N if signal N ended it or our wait; 1 (or -E) lock not acquired;
64 usage; 69 no server; 75 lock lost; 77 access denied; 126 command cannot be executed; 127 not found.`,
		Example: `  turnstile lock /jobs/report -- ./report.sh --all
  turnstile lock -n /jobs/report -c 'date >> log; ./report.sh'
  turnstile lock --shared /data -- ./read.sh
  turnstile lock --permits 1/4 /encoders -- ./encode.sh
  turnstile lock /accounts/7 /accounts/9 -- ./transfer.sh 7 9
  turnstile lock -w 30s -E 75 --connect zk1:2181,zk2:2181/app /deploy -- make deploy
  exec 3< <(sleep infinity | turnstile lock /shell); read -r path token <&3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.take(cmd, args); err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
	}
	l.conflict, l.grace = ExitNotAcquired, duration(time.Second)
	l.onLost = choice{value: onLostTerm, words: []string{onLostTerm, onLostKill, onLostIgnore}}
	l.layout = choice{value: layoutCurator, words: []string{layoutCurator, layoutCuratorRW, layoutKazoo, layoutBoth}}
	flags := cmd.Flags()
	flags.BoolVarP(&l.noWait, "no-wait", "n", false, "fail at once if the lock is held or waited for")
	flags.VarP(&l.wait, "wait", "w", "fail if the lock is not ours after this time; 0 is --no-wait (default: wait for ever)")
	flags.VarP(&l.conflict, "conflict-exit-code", "E", "exit code when the lock is not acquired")
	flags.BoolVarP(&l.shared, "shared", "s", false, "share the lock with others that say so, too")
	flags.Var(&l.permits, "permits", "take so many permits, of which there are so many in all, instead of a lock")
	flags.BoolVar(&l.newLimit, "new-limit", false, "with --permits, change the limit for all who use PATH")
	flags.Var(&l.delay, "delay", "if we are lost, the next holder with a --delay is to wait so long after that")
	flags.Var(&l.layout, "layout", "with whose programs to stand in one line")
	flags.StringVarP(&l.shell, "command", "c", "", "run a command `line` with the shell")
	flags.StringVar(&l.label, "label", "", "`text` that others see in the line (default: the command's name)")
	flags.Var(&l.grace, "grace", "when the lock is lost, time between SIGTERM and SIGKILL; at most a quarter of the session timeout")
	flags.Var(&l.onLost, "on-lost", "what to do with the command when the lock is lost")
	flags.BoolVarP(&l.quiet, "quiet", "q", false, "say nothing but errors of use and of servers")
	flags.BoolVarP(&l.verbose, "verbose", "v", false, "say what happens, on standard error")
	flags.BoolVar(&l.json, "json", false, "without a command, print one JSON object when the lock is held (docs/cli-json.md)")
	l.connection.flags(flags)
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
	return cmd
}

// take checks the command line.
func (l *locker) take(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	before, err := l.divide(cmd, args)
	if err == nil {
		err = l.takePaths(cmd, before)
	}
	if err == nil {
		err = l.takeKind(cmd)
	}
	if err == nil {
		err = l.takeWait(cmd)
	}
	if err != nil {
		return err
	}
	if l.argv != nil && flags.Changed("json") {
		return usage(cmd, errors.New("--json is for holding the lock without a command, whose output is its own"))
	}
	if l.label == "" && len(l.argv) > 0 {
		l.label = l.name()
	}
	l.ready(flags)
	return nil
}

// divide takes the command from the arguments, and returns those before it.
func (l *locker) divide(cmd *cobra.Command, args []string) (before []string, err error) {
	before = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, l.argv = args[:dash], args[dash:]
		if len(l.argv) == 0 {
			return nil, usage(cmd, errors.New("there is no command after --"))
		}
	}
	switch shell := cmd.Flags().Changed("command"); {
	case shell && l.argv != nil:
		return nil, usage(cmd, errors.New("-c and a command after -- contradict each other: leave one out"))
	case shell || l.argv == nil && l.shell != "":
		l.argv = shellCommand(l.shell)
	}
	return before, nil
}

// takePaths checks the arguments before the command.
func (l *locker) takePaths(cmd *cobra.Command, list []string) error {
	switch {
	case len(list) == 0:
		return usage(cmd, fmt.Errorf("PATH is missing: name the %s, such as /jobs/report", l.words.path))
	case len(list) > 1 && l.argv == nil && isCommand(list[1]):
		return usage(cmd, fmt.Errorf("put -- before the command: %s %s -- %s", cmd.CommandPath(), list[0], strings.Join(list[1:], " ")))
	}
	for i, path := range list {
		if err := checkPath(path); err != nil {
			return usage(cmd, err)
		}
		if slices.Contains(list[:i], path) {
			return usage(cmd, fmt.Errorf("%s is named twice", path))
		}
	}
	l.paths, l.path = list, strings.Join(list, " ")
	return nil
}

// isCommand reports whether a word after PATH is a command whose -- was forgotten, as far as one can tell. /bin/true is a path of a
// lock, too: to hold that for a command that does not run would be worse than to refuse it.
func isCommand(word string) bool {
	if !strings.HasPrefix(word, "/") {
		return true
	}
	_, err := exec.LookPath(word)
	return err == nil
}

// takeWait checks the flags that say for how long to wait.
func (l *locker) takeWait(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if err := exclusive(flags, "no-wait", "wait"); err != nil {
		return usage(cmd, err)
	}
	l.waits = given(flags, l.env, "wait") && !flags.Changed("no-wait")
	if l.waits && l.wait == 0 {
		l.noWait, l.waits = true, false
	}
	return nil
}

// ready takes what flags come to.
func (l *locker) ready(flags *pflag.FlagSet) {
	l.graced = given(flags, l.env, "grace")
	l.pid = os.Getpid()
	l.host, _ = os.Hostname() // as the lock says it of us; who has none is told of itself at worst
	l.connection.quiet = l.quiet
	if l.verbose {
		l.connection.logger = slog.New(slog.NewTextHandler(l.stderr, nil))
	}
}

// name is what the command is called in the line: its first word, and no arguments, which may be nobody's business.
func (l *locker) name() string {
	if l.shell != "" {
		if words := strings.Fields(l.shell); len(words) > 0 {
			return filepath.Base(words[0])
		}
	}
	return filepath.Base(l.argv[0])
}

func shellCommand(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"/bin/sh", "-c", line} // not $SHELL: a line must mean the same from every account
}

// checkPath refuses what cannot be the path of a lock.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("PATH %q must begin with a slash, such as /jobs/report", path)
	}
	return lock.ValidatePath(path)
}

// run waits for the lock, and holds it while the command runs.
func (l *locker) run(ctx context.Context) error {
	var program string
	if len(l.argv) > 0 {
		var err error
		if program, err = exec.LookPath(l.argv[0]); err != nil { // a typing error need not wait in line
			return cannotRun(err)
		}
	}
	signals := catchSignals(ending()...)
	defer signals.release()
	calm, settle := signals.ending(ctx)
	client, hold, err := l.acquire(calm)
	settle()
	if client != nil {
		defer client.Close() // the session ends by itself if it cannot be closed now
	}
	if err == nil {
		err = context.Cause(calm) // a signal may have come with the lock
	}
	if err != nil {
		if ctx.Err() != nil {
			err = asSignal(err)
		}
		return failed(err)
	}
	if len(l.argv) == 0 {
		return l.stand(ctx, hold, signals)
	}
	return l.supervise(ctx, lockHeld{hold}, signals, program)
}

// environment is the command's environment, ours last.
func (l *locker) environment(hold held) []string {
	sess := hold.Session()
	return l.env.with(append(l.extra,
		"TURNSTILE_PATH="+l.paths[0],
		"TURNSTILE_PATHS="+strings.Join(l.paths, "\n"),
		"TURNSTILE_TOKEN="+strconv.FormatInt(hold.number(), 10),
		"TURNSTILE_SESSION="+sessionID(sess.ID()),
		"TURNSTILE_SESSION_TIMEOUT_MS="+strconv.FormatInt(sess.Timeout().Milliseconds(), 10),
	)...)
}

// say writes a line for people, unless they want none.
func (l *locker) say(format string, a ...any) {
	if !l.quiet {
		fmt.Fprintf(l.stderr, "turnstile: "+format+"\n", a...)
	}
}

// detail writes a line for people who want to know.
func (l *locker) detail(format string, a ...any) {
	if l.verbose {
		l.say(format, a...)
	}
}
