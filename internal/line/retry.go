package line

// Trying again under the next session.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Attempt runs try under the client's live session until it succeeds or fails for good. If the session ends, or another
// client deletes our node (ErrGone), it runs try again, under the next session if need be.
func Attempt[T any](ctx context.Context, client *zk.Client, try func(*zk.Session) (T, error)) (T, error) {
	var none T
	for {
		sess, err := client.Session(ctx)
		if err != nil {
			return none, err
		}
		got, err := try(sess)
		switch {
		case err == nil:
			return got, nil
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		case sess.Context().Err() != nil, errors.Is(err, ErrGone):
			// Session returns an error when there is no next session, so this ends.
		case Transient(err):
			_ = AwaitRetry(ctx, sess, err) // if ctx or the session ends meanwhile, the next round sees it
		default:
			return none, err
		}
	}
}

// AwaitRetry returns nil if the same session may be asked again after err: at once after a lost connection, after a
// pause if the refusal is transient. Otherwise it returns ctx's cause, the session's error, or err.
func AwaitRetry(ctx context.Context, sess *zk.Session, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sess.Err() != nil:
		return sess.Err()
	case errors.Is(err, zk.ErrConnectionLost):
		return nil
	case Transient(err):
		return pause(ctx, sess)
	default:
		return err
	}
}

// Transient reports whether err says nothing about the request itself, so that asking again makes sense. It is a lost
// connection, or the refusal of a server that is overloaded, that is cut off from the others and may only read, or that
// the session has moved away from (the request came late, over a connection that was given up).
func Transient(err error) bool {
	for _, code := range []zk.Code{zk.SessionMoved, zk.ThrottledOp, zk.OperationTimeout, zk.NotReadOnly} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, zk.ErrConnectionLost)
}

// retry asks until the answer is not a transient error. Ask must be idempotent.
func retry[T any](ctx context.Context, sess *zk.Session, ask func() (T, error)) (T, error) {
	for {
		got, err := ask()
		if err == nil {
			return got, nil
		}
		if err := AwaitRetry(ctx, sess, err); err != nil {
			return got, err
		}
	}
}

// pause waits before the same is asked again. It returns ctx's cause or the session's error if that ends first.
func pause(ctx context.Context, sess *zk.Session) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sess.Context().Done():
		return sess.Err()
	}
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
