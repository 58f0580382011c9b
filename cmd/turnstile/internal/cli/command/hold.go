package command

// A hold that a command runs under.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// ReconnectWait is how long a command that has ended waits for a server: to give its hold back to, or to say why
	// it got none.
	ReconnectWait = 3 * time.Second

	// leftoverWait is how long processes that a command leaves behind may take to end before that is worth a
	// warning: a tee(1) whose input has just ended is not.
	leftoverWait = 500 * time.Millisecond
)

// Hold is a lock or a leadership that a command runs under.
type Hold struct {
	zk.Held
	Release     func() error                    // returns why the hold had ended before, if it had
	ReleaseWait func(ctx context.Context) error // also waits until the servers know
}

// GiveBack releases the hold, and returns why it had ended before if it had. Closing the client sends what is on its
// way if there is a connection. If there is none, GiveBack waits a little for the next one: otherwise the next holder
// would have to wait for the session timeout.
func (h Hold) GiveBack(ctx context.Context) error {
	err := h.Release()
	if state, _ := h.Session().State(); state == zk.Suspended {
		ctx, cancel := context.WithTimeout(ctx, ReconnectWait)
		defer cancel()
		_ = h.ReleaseWait(ctx) // if it fails, the hold ends with the session
	}
	return err
}

// Run runs the command under a hold, gives the hold back when the command has ended, and returns what happened to
// both. It returns an error if the command cannot be started.
func (r *Runner) Run(ctx context.Context, h Hold, signals *supervise.Signals, program string) (
	supervise.Result, error,
) {
	begin := time.Now()
	c := r.Command(program, h)
	c.Stdin = r.App.Stdin
	p, err := supervise.Start(c, Under(h), signals)
	if err != nil {
		_ = h.GiveBack(context.WithoutCancel(ctx)) // nothing ran under it
		return supervise.Result{}, CannotRun(err)
	}
	result := r.Await(ctx, h, p, begin)
	if result.Lost == nil && p.RunsOn(leftoverWait) {
		r.App.Say("%s: warning: the command has ended, but processes that it started still run without the %s; "+
			"end the command with wait", r.Path, r.Words.Noun)
	}
	return result, nil
}

// Await waits until a process has ended that runs under a hold since some time, gives the hold back, and returns what
// happened to both.
func (r *Runner) Await(ctx context.Context, h Hold, p *supervise.Process, since time.Time) supervise.Result {
	result := p.Wait(ctx)
	if err := h.GiveBack(context.WithoutCancel(ctx)); result.Lost == nil {
		result.Lost = err
	}
	r.App.Detail("%s: %s after %v", r.Path, r.Words.Over, time.Since(since).Round(time.Millisecond))
	return result
}

// Release lets signals go when a command ends. A process that ends, too, keeps them: see supervise.Catch.
func (a *App) Release(signals *supervise.Signals) {
	if !a.Exits {
		signals.Release()
	}
}

// Under is what a supervisor must know of what a command runs under.
func Under(h zk.Held) supervise.Hold {
	return supervise.Hold{Context: h.Context(), Session: h.Session()}
}

// Command returns the command for a hold, without standard input. env is added to its environment.
func (r *Runner) Command(program string, h zk.Held, env ...string) supervise.Command {
	return supervise.Command{
		Program: program, Args: r.Argv, Env: r.environment(h.Session(), int64(h.Token()), env),
		Stdout: r.App.Stdout, Stderr: r.App.Stderr,
		OnLost: r.OnLost(), Grace: time.Duration(r.grace),
		Lost: func(cause error, grace time.Duration) {
			at := time.Now()
			r.lostAt.CompareAndSwap(nil, &at)
			if r.OnLost() == supervise.Ignore {
				r.App.Say("%s: %s lost, the command runs on: %v (%s)", r.Path, r.Words.Noun, cause, Timestamp(at))
				return
			}
			r.App.Detail("%s: %s lost, the command has %v to end: %v (%s)",
				r.Path, r.Words.Noun, grace.Round(time.Millisecond), cause, Timestamp(at))
		},
		Stopping: func(left time.Duration) {
			r.App.Say("%s: stopped: if it does not continue within %v, the %s is lost and the command is ended; "+
				"--session-timeout sets a longer time", r.Path, left.Round(100*time.Millisecond), r.Words.Noun)
		},
	}
}

// OnLost is what --on-lost says.
func (r *Runner) OnLost() supervise.OnLost { return supervise.OnLost(r.onLost.Value) }

// environment is the command's environment, our variables last: of several with one name, exec takes the last.
func (r *Runner) environment(sess *zk.Session, token int64, env []string) []string {
	return slices.Concat(r.App.Env.List, r.Env, env, []string{
		"TURNSTILE_PATH=" + r.Paths[0],
		"TURNSTILE_PATHS=" + strings.Join(r.Paths, "\n"),
		"TURNSTILE_TOKEN=" + strconv.FormatInt(token, 10),
		"TURNSTILE_SESSION=" + SessionID(sess.ID()),
		"TURNSTILE_SESSION_TIMEOUT_MS=" + strconv.FormatInt(sess.Timeout().Milliseconds(), 10),
	})
}

// WarnOfTimes tells of a --session-timeout that was asked for and that the server has not granted, and of a --grace
// that the session has no room for.
func (r *Runner) WarnOfTimes(timeout time.Duration) {
	r.Connection.WarnOfTimeout(r.App, r.Path, timeout)
	wanted, granted := time.Duration(r.grace), supervise.MaxGrace(timeout)
	if r.graceGiven && len(r.Argv) > 0 && r.OnLost() == supervise.Term && granted < wanted {
		r.App.Say("%s: a session of %v allows a grace of only %v: for %v use --session-timeout %v "+
			"(the server may have a limit)", r.Path, timeout, granted, wanted, 8*wanted)
	}
}

// WarnOfStranger warns, once, that a node stands in the line whose program does not look for ours.
func (r *Runner) WarnOfStranger(node string) {
	r.strangers.Do(func() {
		r.App.Say("%s: warning: the program whose node is %s does not look for this command's: both may have the %s "+
			"at the same time; choose another --layout (docs/interop.md)", r.Path, node, r.Words.Noun)
	})
}

// BelongsToNone says of a node that contenders wait for what is wrong with it.
const BelongsToNone = "which belongs to no session: delete it with turnstile rm, unless something else needs it"

// WarnOfStray warns, once, that what the command waits for belongs to no session.
func (r *Runner) WarnOfStray(node string) {
	r.strays.Do(func() {
		r.App.Say("%s: warning: waiting for %s, %s", r.Path, node, BelongsToNone)
	})
}

// LostError is the error of a hold that was lost, with the time at which that was noticed.
func (r *Runner) LostError(cause error) error {
	if r.App.Quiet {
		return &Error{Code: ExitLost}
	}
	at := time.Now()
	if noticed := r.lostAt.Load(); noticed != nil {
		at = *noticed
	}
	return &Error{
		Code: ExitLost, Err: fmt.Errorf("%s: %s lost: %w (%s)", r.Path, r.Words.Noun, cause, Timestamp(at)),
	}
}
