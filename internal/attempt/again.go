package attempt

// Whether and when to ask again.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// The pauses before the same is asked again. They are drawn from the upper half below a bound, which is firstPause at
// first, doubles with each try and stays at lastPause.
const (
	firstPause = 150 * time.Millisecond
	lastPause  = 5 * time.Second
)

// PauseTime returns how long Pause waits, for callers that wait for other things, too.
func PauseTime(tries int) time.Duration {
	bound := min(firstPause<<min(tries, 10), lastPause)
	return bound/2 + rand.N(bound/2)
}

// Pause waits before a request is asked again that was refused tries times before: 0 for the first pause. It returns
// ctx's cause or the session's error if that ends first.
func Pause(ctx context.Context, sess *zk.Session, tries int) error {
	timer := time.NewTimer(PauseTime(tries))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sess.Context().Done():
		return sess.Err()
	}
}

// Again returns nil if the same session may be asked again after err: at once after a lost connection, after a pause if
// the refusal passes. Otherwise it returns ctx's cause, the session's error, or err. It is for loops that are not those
// of Ask, Run or Follow.
func Again(ctx context.Context, sess *zk.Session, err error) error { return again(ctx, sess, err, 0) }

// again is Again for a caller that counts its tries.
func again(ctx context.Context, sess *zk.Session, err error, tries int) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sess.Err() != nil:
		return sess.Err()
	case !zk.Temporary(err):
		return err
	case errors.Is(err, zk.ErrConnectionLost): // the next request waits for the connection
		return nil
	default:
		return Pause(ctx, sess, tries)
	}
}

// Ask repeats ask on one session until it succeeds or fails for good. Ask may be executed twice. Ask returns ctx's
// cause or the session's error if that ends first.
func Ask[T any](ctx context.Context, sess *zk.Session, ask func() (T, error)) (T, error) {
	for tries := 0; ; tries++ {
		got, err := ask()
		if err == nil {
			return got, nil
		}
		if err := again(ctx, sess, err, tries); err != nil {
			return got, err
		}
	}
}

// Do is Ask for a request without a result.
func Do(ctx context.Context, sess *zk.Session, ask func() error) error {
	_, err := Ask(ctx, sess, func() (none struct{}, err error) { return none, ask() })
	return err
}

// ErrGone is returned by the function that Run calls if another client has deleted what it relied on: it is to be
// called again, at once.
var ErrGone = errors.New("another client has deleted the node")

// Run calls try under the client's live session, and under the next one when that ends, until it succeeds, fails for
// good, or ctx ends. It also calls try again after ErrGone and ErrNotDone. Try may be executed twice: a write in it
// must be one that may be done twice, or resolve its own lost replies. ErrUnresolved is returned as it is, and
// otherwise ctx's cause if ctx has ended, or the client's error if there is no next session.
func Run[T any](ctx context.Context, client *zk.Client, try func(*zk.Session) (T, error)) (T, error) {
	var none T
	for tries := 0; ; tries++ {
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		sess, err := client.Session(ctx)
		if err != nil {
			return none, err
		}
		got, err := try(sess)
		switch {
		case err == nil:
			return got, nil
		case errors.Is(err, ErrUnresolved):
			return none, err
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		case sess.Context().Err() != nil, errors.Is(err, ErrGone), errors.Is(err, ErrNotDone):
			// Session returns an error when there is no next session, so this ends.
		default:
			if err := again(ctx, sess, err, tries); err != nil && ctx.Err() == nil && sess.Err() == nil {
				return none, err
			}
		}
	}
}

// Passing reports whether Run tries again after err, of a try under sess.
func Passing(sess *zk.Session, err error) bool {
	return sess.Context().Err() != nil || errors.Is(err, ErrGone) || errors.Is(err, ErrNotDone) || zk.Temporary(err)
}

// Explain adds, to the error of a wait that was cut short, the reason why the client has no connection, if it has none.
// The result then wraps zk.ErrNotConnected.
func Explain(client *zk.Client, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if last := client.LastError(); ended && last != nil {
		if !errors.Is(last, zk.ErrNotConnected) {
			last = fmt.Errorf("%w: %w", zk.ErrNotConnected, last)
		}
		return fmt.Errorf("%w (no server answers: %w)", err, last)
	}
	return err
}
