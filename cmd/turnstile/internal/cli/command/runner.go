package command

// Running a command under a hold.

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/lock"
)

// Words are what messages and flags call what a command runs under.
type Words struct {
	Path string // what PATH names
	Noun string // what is lost
	Won  string // what is done to have it
	Over string // what was done with it at the end
	Busy string // when --no-wait gives up
	Late string // what --wait limits
	Next string // what to do when it cannot be had
}

// Runner is what commands have in common that run another command under a hold: a lock, a leadership, the claim of an
// item.
type Runner struct {
	App        *App
	Words      Words
	CheckPath  func(path string) error
	Connection Connection
	Wait       Wait

	Paths []string // of a lock, a set if there are several; one otherwise
	Path  string   // all of them, for messages
	Argv  []string // the command; empty if there is none
	Env   []string // more of its environment

	lostAt     atomic.Pointer[time.Time] // when it was first noticed that a hold was lost
	shell      string
	onLost     Choice
	grace      Duration
	graceGiven bool
	strangers  sync.Once // of WarnOfStranger
	strays     sync.Once // of WarnOfStray
}

// Flags adds the flags that all of them have. onLost is what --on-lost can be, its default first.
func (r *Runner) Flags(cmd *cobra.Command, onLost ...supervise.OnLost) {
	for _, word := range onLost {
		r.onLost.Words = append(r.onLost.Words, string(word))
	}
	r.onLost.Value, r.grace = r.onLost.Words[0], Duration(time.Second)
	flags := cmd.Flags()
	flags.StringVarP(&r.shell, "command", "c", "", "run a command `line` in the shell")
	flags.Var(&r.grace, "grace", "time between SIGTERM and SIGKILL if the "+r.Words.Noun+" is lost; "+
		"at most an eighth of the session timeout")
	flags.Var(&r.onLost, "on-lost", "what to do with the command if the "+r.Words.Noun+" is lost")
	flags.BoolVarP(&r.App.Quiet, "quiet", "q", false, "print only usage errors and server errors")
	flags.BoolVarP(&r.App.Verbose, "verbose", "v", false, "log what happens to standard error")
	r.Connection.Flags(flags)
	r.Connection.ACLFlags(flags)
	Rivals(cmd, "quiet", "verbose")
}

// Parse checks the command line. check checks what is the command's own, once paths and command are known.
func (r *Runner) Parse(cmd *cobra.Command, args []string, check func(*cobra.Command) error) error {
	before, err := r.splitArgs(cmd, args)
	if err != nil {
		return err
	}
	if err := r.parsePaths(cmd, before); err != nil {
		return err
	}
	if err := check(cmd); err != nil {
		return err
	}
	r.graceGiven = Given(cmd.Flags().Lookup("grace"))
	return r.Wait.parse(cmd)
}

// splitArgs takes the command from the arguments, and returns those before it.
func (r *Runner) splitArgs(cmd *cobra.Command, args []string) (before []string, err error) {
	before = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		before, r.Argv = args[:dash], args[dash:]
		if len(r.Argv) == 0 {
			return nil, Usagef(cmd, "there is no command after --")
		}
	}
	switch shell := cmd.Flags().Changed("command"); {
	case shell && r.Argv != nil:
		return nil, Usagef(cmd, "-c and a command after -- contradict each other: leave one out")
	case shell || r.Argv == nil && r.shell != "":
		r.Argv = shellCommand(r.shell)
	}
	return before, nil
}

// parsePaths checks the arguments before the command.
func (r *Runner) parsePaths(cmd *cobra.Command, list []string) error {
	switch {
	case len(list) == 0:
		return Usagef(cmd, "PATH is missing: name the %s, such as /jobs/report", r.Words.Path)
	case len(list) > 1 && r.Argv == nil && isCommand(list[1]):
		return Usage(cmd, fmt.Errorf("put -- before the command: %s %s -- %s",
			cmd.CommandPath(), list[0], strings.Join(list[1:], " ")))
	}
	for i, path := range list {
		if err := r.CheckPath(path); err != nil {
			return Usage(cmd, err)
		}
		if slices.Contains(list[:i], path) {
			return Usagef(cmd, "%s is named twice", path)
		}
	}
	r.Paths, r.Path = list, strings.Join(list, " ")
	return nil
}

// isCommand guesses whether a word after PATH is a command whose -- was forgotten. /bin/true is also a valid path of a
// lock, but to hold that for a command that does not run would be worse than to refuse it.
func isCommand(word string) bool {
	if !strings.HasPrefix(word, "/") {
		return true
	}
	_, err := exec.LookPath(word)
	return err == nil
}

// CheckPath returns an error if path cannot be the path of a lock or an election.
func CheckPath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("PATH %q must begin with a slash, such as /jobs/report", path)
	}
	return lock.ValidatePath(path)
}

func shellCommand(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"/bin/sh", "-c", line} // not $SHELL: a line must mean the same from every account
}

// Name is what others see of the command: its first word without the arguments, which may be secret.
func (r *Runner) Name() string {
	if r.shell != "" {
		if words := strings.Fields(r.shell); len(words) > 0 {
			return filepath.Base(words[0])
		}
	}
	return filepath.Base(r.Argv[0])
}

// Program returns the file of the command, empty if there is no command. It is called before anything is acquired, so
// that a typing error does not have to wait for its turn.
func (r *Runner) Program() (string, error) {
	if len(r.Argv) == 0 {
		return "", nil
	}
	program, err := exec.LookPath(r.Argv[0])
	if err != nil {
		return "", CannotRun(err)
	}
	return program, nil
}
