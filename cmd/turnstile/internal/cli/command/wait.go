package command

// The flags that limit a wait.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/zk"
)

// errWaited is the cause of a context that ended because of --wait.
var errWaited = errors.New("waited long enough")

// Wait is the flags that say how long to wait for a hold.
type Wait struct {
	not      bool // fail at once
	limit    Duration
	limited  bool // limit was given
	conflict ExitCode
}

// WaitFlags adds the flags to commands that can do without the hold. Short is the short form of --no-wait, if it has
// one.
func (r *Runner) WaitFlags(cmd *cobra.Command, short string) {
	w, flags := &r.Wait, cmd.Flags()
	w.conflict = ExitNotAcquired
	flags.BoolVarP(&w.not, "no-wait", short, false, "fail at once if "+r.Words.Busy)
	flags.VarP(&w.limit, "wait", "w",
		"fail if "+r.Words.Late+", connecting not counted; 0 means --no-wait (default: wait for ever)")
	Rivals(cmd, "no-wait", "wait")
	flags.VarP(&w.conflict, "conflict-exit-code", "E", "exit code when not "+r.Words.Won)
}

// parse checks the flags, if the command has them.
func (w *Wait) parse(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if flags.Lookup("wait") == nil {
		return nil
	}
	w.limited = Given(flags.Lookup("wait"))
	if w.limited && w.limit == 0 {
		w.not, w.limited = true, false
	}
	return nil
}

// context returns a context that ends as --wait says, with errWaited.
func (w *Wait) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.limited {
		return context.WithTimeoutCause(ctx, time.Duration(w.limit), errWaited)
	}
	return context.WithCancel(ctx)
}

// Acquire acquires what the command runs under, as --no-wait and --wait say: with try, or with wait. The client has
// connected, within --connect-timeout, which is no part of the wait. busy is the error of a try that fails at once. why
// says what is in the way; it is empty if that is not known.
func Acquire[H any](ctx context.Context, r *Runner, client *zk.Client, try, wait func(context.Context) (H, error),
	busy error, why func(context.Context) string,
) (h H, err error) {
	if r.Wait.not {
		ctx, cancel := r.Connection.Answering(ctx)
		defer cancel()
		if _, err = r.Sync(ctx, client); err == nil {
			h, err = try(ctx)
		}
	} else {
		ctx, cancel := r.Wait.context(ctx)
		defer cancel()
		stop := r.App.sayWaiting(r.Path, func() string { return why(ctx) })
		h, err = wait(ctx)
		stop()
	}
	if errors.Is(err, busy) || errors.Is(err, errWaited) {
		return h, r.notAcquired(ctx, why)
	}
	return h, r.Connection.Unanswered(err, client)
}

// notAcquired is the error of a command that did not get its hold in time.
func (r *Runner) notAcquired(ctx context.Context, why func(context.Context) string) error {
	exit := &Error{Code: int(r.Wait.conflict)}
	if r.App.Quiet {
		return exit
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReconnectWait)
	defer cancel()
	exit.Err, exit.Hint = fmt.Errorf("%s: not %s", r.Path, r.Words.Won), r.Words.Next
	if why := why(ctx); why != "" {
		exit.Err = fmt.Errorf("%w: %s", exit.Err, why)
	}
	return exit
}

// Sync makes the server that we are connected to catch up with what has happened at our paths, for example with holders
// that have left before. It returns the session.
func (r *Runner) Sync(ctx context.Context, client *zk.Client) (*zk.Session, error) {
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, err
	}
	b := sess.Batch()
	var last *zk.Future[struct{}]
	for _, path := range r.Paths {
		last = b.Sync(path)
	}
	b.Send()
	_, err = last.Get(ctx) // answers arrive in the order of the requests
	return sess, err
}
