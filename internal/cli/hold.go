package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// heldJSON is what "turnstile lock --json" prints without a command.
type heldJSON struct {
	Path             string   `json:"path"`
	Paths            []string `json:"paths,omitempty"` // of a set
	Token            int64    `json:"token"`
	Session          string   `json:"session"`
	SessionTimeoutMS int64    `json:"session_timeout_ms"`
}

// stand holds the lock without a command, until standard input ends or a signal comes.
func (l *locker) stand(ctx context.Context, hold *lock.Hold, signals *signals) error {
	begin := time.Now()
	ended := make(chan struct{})
	go func() { // a read of a terminal cannot be called off; the process ends soon after us
		defer close(ended)
		_, _ = io.Copy(io.Discard, l.stdin) // an input that fails has ended, too
	}()
	if err := l.announce(hold); err != nil {
		return failed(err)
	}
	var err error
	calm, settle := signals.ending(ctx)
	select {
	case <-ended:
	case <-calm.Done():
		err = failed(asSignal(context.Cause(calm)))
	case <-hold.Context().Done():
		err = l.lostError(context.Cause(hold.Context())) //nolint:contextcheck // the hold's end, not ours
	}
	settle()
	_ = giveBack(context.WithoutCancel(ctx), lockHeld{hold}) // that it was lost is said above, or no longer matters
	l.detail("%s: unlocked after %v", l.path, time.Since(begin).Round(time.Millisecond))
	return err
}

func (l *locker) announce(hold *lock.Hold) error {
	if !l.json {
		_, err := fmt.Fprintf(l.stdout, "%s %d\n", l.path, hold.Token())
		return err
	}
	var set []string
	if len(l.paths) > 1 {
		set = l.paths
	}
	return l.cli.json(heldJSON{
		Path:             l.paths[0],
		Paths:            set,
		Token:            int64(hold.Token()),
		Session:          sessionID(hold.Session().ID()),
		SessionTimeoutMS: hold.Session().Timeout().Milliseconds(),
	})
}
