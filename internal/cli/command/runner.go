package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/seed-a3166700/turnstile/zk"
)

// words are what messages call what a command runs under.
type words struct {
	path string // what PATH names
	noun string // what is lost
	won  string // what is done to have it
	over string // what was done with it at the end
	busy string // when --no-wait gives up
	late string // what --wait limits
	next string // what to do when it is not to be had
}

// runner is what the commands have in common that run a command under something that may be lost: a lock, a leadership, the claim of an
// item.
type runner struct {
	*cli
	words      words
	valid      func(path string) error // checks a PATH
	connection connection
	noWait     bool
	wait       duration
	waits      bool // wait is a limit
	conflict   exitCode
	grace      duration
	graced     bool // grace was asked for
	onLost     choice
	shell      string
	quiet      bool
	verbose    bool

	paths []string // of lock, a set if they are several; one otherwise
	path  string   // all of them, for messages
	argv  []string // the command; empty if there is none
	extra []string // more of the command's environment
}

// flags are those of all runners; onLost is what --on-lost can be, its default first.
func (r *runner) flags(cmd *cobra.Command, onLost ...string) {
	r.grace, r.onLost = duration(time.Second), choice{value: onLost[0], words: onLost}
	flags := cmd.Flags()
	flags.StringVarP(&r.shell, "command", "c", "", "run a command `line` with the shell")
	flags.Var(&r.grace, "grace", "when the "+r.words.noun+" is lost, time between SIGTERM and SIGKILL; at most an eighth of the session timeout")
	flags.Var(&r.onLost, "on-lost", "what to do with the command when the "+r.words.noun+" is lost")
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "say nothing but errors of use and of servers")
	flags.BoolVarP(&r.verbose, "verbose", "v", false, "say what happens, on standard error")
	r.connection.flags(flags)
	cmd.MarkFlagsMutuallyExclusive("quiet", "verbose")
}

// waitFlags are those of runners that can do without what they wait for. Now is the short form of --no-wait, if it has one.
func (r *runner) waitFlags(flags *pflag.FlagSet, now string) {
	r.conflict = ExitNotAcquired
	flags.BoolVarP(&r.noWait, "no-wait", now, false, "fail at once if "+r.words.busy)
	flags.VarP(&r.wait, "wait", "w", "fail if "+r.words.late+"; 0 is --no-wait (default: wait for ever)")
	flags.VarP(&r.conflict, "conflict-exit-code", "E", "exit code when not "+r.words.won)
}

// parse checks the command line; own checks what is this command's own, once paths and command are known.
func (r *runner) parse(cmd *cobra.Command, args []string, own func(*cobra.Command) error) error {
	before, err := r.divide(cmd, args)
	if err == nil {
		err = r.takePaths(cmd, before)
	}
	if err == nil {
		err = own(cmd)
	}
	if err == nil && cmd.Flags().Lookup("wait") != nil {
		err = r.takeWait(cmd)
	}
	if err != nil {
		return err
	}
	r.graced = given(cmd.Flags(), r.env, "grace")
	r.connection.quiet, r.connection.verbose = r.quiet, r.verbose
	if r.verbose {
		r.connection.logger = newLogger(r.stderr, slog.LevelInfo)
	}
	return nil
}

// divide takes the command from the arguments, and returns those before it.
func (r *runner) divide(cmd *cobra.Command, args []string) (before []string, err error) {
	before = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, r.argv = args[:dash], args[dash:]
		if len(r.argv) == 0 {
			return nil, usage(cmd, errors.New("there is no command after --"))
		}
	}
	switch shell := cmd.Flags().Changed("command"); {
	case shell && r.argv != nil:
		return nil, usage(cmd, errors.New("-c and a command after -- contradict each other: leave one out"))
	case shell || r.argv == nil && r.shell != "":
		r.argv = shellCommand(r.shell)
	}
	return before, nil
}

// takePaths checks the arguments before the command.
func (r *runner) takePaths(cmd *cobra.Command, list []string) error {
	switch {
	case len(list) == 0:
		return usage(cmd, fmt.Errorf("PATH is missing: name the %s, such as /jobs/report", r.words.path))
	case len(list) > 1 && r.argv == nil && isCommand(list[1]):
		return usage(cmd, fmt.Errorf("put -- before the command: %s %s -- %s", cmd.CommandPath(), list[0], strings.Join(list[1:], " ")))
	}
	for i, path := range list {
		if err := r.valid(path); err != nil {
			return usage(cmd, err)
		}
		if slices.Contains(list[:i], path) {
			return usage(cmd, fmt.Errorf("%s is named twice", path))
		}
	}
	r.paths, r.path = list, strings.Join(list, " ")
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

// checkPath refuses what cannot be the path of a lock, or of anything else of ours.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("PATH %q must begin with a slash, such as /jobs/report", path)
	}
	return lock.ValidatePath(path)
}

// takeWait checks the flags that say for how long to wait.
func (r *runner) takeWait(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if err := exclusive(flags, "no-wait", "wait"); err != nil {
		return usage(cmd, err)
	}
	r.waits = given(flags, r.env, "wait") && !flags.Changed("no-wait")
	if r.waits && r.wait == 0 {
		r.noWait, r.waits = true, false
	}
	return nil
}

// name is what the command is called in the line: its first word, and no arguments, which may be nobody's business.
func (r *runner) name() string {
	if r.shell != "" {
		if words := strings.Fields(r.shell); len(words) > 0 {
			return filepath.Base(words[0])
		}
	}
	return filepath.Base(r.argv[0])
}

func shellCommand(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"/bin/sh", "-c", line} // not $SHELL: a line must mean the same from every account
}

// program returns the file of the command, and empty if there is no command. A typing error need not wait in line.
func (r *runner) program() (string, error) {
	if len(r.argv) == 0 {
		return "", nil
	}
	program, err := exec.LookPath(r.argv[0])
	if err != nil {
		return "", cannotRun(err)
	}
	return program, nil
}

// environment is the command's environment, ours last.
func (r *runner) environment(hold held, more ...string) []string {
	sess := hold.Session()
	return r.env.with(append(slices.Concat(r.extra, more),
		"TURNSTILE_PATH="+r.paths[0],
		"TURNSTILE_PATHS="+strings.Join(r.paths, "\n"),
		"TURNSTILE_TOKEN="+strconv.FormatInt(hold.number(), 10),
		"TURNSTILE_SESSION="+sessionID(sess.ID()),
		"TURNSTILE_SESSION_TIMEOUT_MS="+strconv.FormatInt(sess.Timeout().Milliseconds(), 10),
	)...)
}

// sync has the server that we happen to be connected to hear of all that has happened at our paths.
func (r *runner) sync(ctx context.Context, sess *zk.Session) error {
	b := sess.Batch()
	var last *zk.Future[struct{}]
	for _, path := range r.paths {
		last = b.Sync(path)
	}
	b.Send()
	_, err := last.Get(ctx) // answers come in the order of the requests
	return err
}

// conflicted is the error of who did not get it, and says why not.
func (r *runner) conflicted(ctx context.Context, client *zk.Client, why func(context.Context, *zk.Client) string) error {
	if r.quiet {
		return &exitError{code: int(r.conflict)}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := fmt.Errorf("%s: not %s", r.path, r.words.won)
	if why := why(ctx, client); why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return &exitError{code: int(r.conflict), err: err, hint: r.words.next}
}

// tellLater tells, to those who want to know and to who sits at a terminal, why we wait, if we still do in a moment.
// The caller calls stop.
func (r *runner) tellLater(why func() string) (stop func() bool) {
	if r.quiet || !r.verbose && !atTerminal(r.stderr) {
		return func() bool { return false }
	}
	return time.AfterFunc(tellAfter, func() {
		if why := why(); why != "" {
			r.say("%s: waiting, %s", r.path, why)
		}
	}).Stop
}

// lostError is the error of what was lost.
func (r *runner) lostError(cause error) error {
	if r.quiet {
		return &exitError{code: ExitLost}
	}
	return &exitError{code: ExitLost, err: fmt.Errorf("%s: %s lost: %w", r.path, r.words.noun, cause)}
}

// say writes a line for people, unless they want none.
func (r *runner) say(format string, a ...any) {
	if !r.quiet {
		fmt.Fprintf(r.stderr, "turnstile: "+format+"\n", a...)
	}
}

// detail writes a line for people who want to know.
func (r *runner) detail(format string, a ...any) {
	if r.verbose {
		r.say(format, a...)
	}
}
