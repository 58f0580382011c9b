package cli

// turnstile lock without a command.

import (
	"context"
	"io"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// heldJSON is what "turnstile lock --json" prints without a command.
type heldJSON struct {
	Path             string   `json:"path"`
	Paths            []string `json:"paths,omitempty"` // of a set
	Token            int64    `json:"token"`
	Session          string   `json:"session"`
	SessionTimeoutMS int64    `json:"session_timeout_ms"`
}

// holdUntilEOF holds the lock without a command, until standard input ends or a signal comes.
func (l *locker) holdUntilEOF(ctx context.Context, h command.Hold, signals *supervise.Signals) error {
	begin := time.Now()
	eof := make(chan struct{})
	go func() { // a read of a terminal cannot be interrupted; the process ends soon after us
		defer close(eof)
		_, _ = io.Copy(io.Discard, l.app.Stdin) // an error also ends the input
	}()
	if err := l.announce(h); err != nil {
		return command.Failed(err)
	}
	var err error
	until, stop := signals.Until(ctx)
	select {
	case <-eof:
	case <-until.Done():
		err = command.Failed(supervise.AsSignal(context.Cause(until)))
	case <-h.Context().Done():
		err = l.run.LostError(context.Cause(h.Context())) //nolint:contextcheck // the hold's context, not ours
	}
	stop()
	_ = h.GiveBack(context.WithoutCancel(ctx)) // a loss is in err, or no longer matters
	l.app.Detail("%s: unlocked after %v", l.run.Path, time.Since(begin).Round(time.Millisecond))
	return err
}

func (l *locker) announce(h command.Hold) error {
	j := heldJSON{
		Path:             l.run.Paths[0],
		Token:            int64(h.Token()),
		Session:          command.SessionID(h.Session().ID()),
		SessionTimeoutMS: h.Session().Timeout().Milliseconds(),
	}
	if len(l.run.Paths) > 1 {
		j.Paths = l.run.Paths
	}
	return l.app.Report(l.json, j, "%s %d\n", l.run.Path, h.Token())
}
