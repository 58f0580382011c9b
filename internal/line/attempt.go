package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// Attempt runs try under the client's live session until it succeeds or fails for good. What ends with one session is tried again under
// the next, and so is a place that somebody deleted.
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
			// Session tells when there is no next one, so this ends.
		case Passing(err):
			_ = Settle(ctx, sess, err) // if ctx or the session ends meanwhile, that is seen above
		default:
			return none, err
		}
	}
}

// Own runs try as Attempt does, for what try gets to be owned: it counts only when the session is certain that it lives (zk.Session.Certify).
// Without that, a client that waited on a server which is cut off from the others would own what another has by now.
func Own[G Ground](ctx context.Context, client *zk.Client, try func(*zk.Session) (G, error)) (G, error) {
	return Attempt(ctx, client, func(sess *zk.Session) (G, error) {
		got, err := try(sess)
		if err != nil {
			return got, err
		}
		return got, Certify(ctx, got)
	})
}

// Certify leaves the ground if the session cannot be certain of it, and returns why: ErrGone if one of its nodes is not there.
func Certify(ctx context.Context, ground Ground) error {
	err := ground.Session().Certify(ctx, ground.Paths()...)
	if err == nil {
		return nil
	}
	ground.Leave()
	if errors.Is(err, zk.NoNode) {
		return ErrGone
	}
	return err
}

// Stand stands in the line until it is first. It returns ctx's cause if that ends first, or what makes waiting senseless: the client is
// closed, the server refuses us.
func (l *Line) Stand(ctx context.Context, client *zk.Client) (*Place, error) {
	return Own(ctx, client, func(sess *zk.Session) (*Place, error) {
		place, err := l.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		if err := place.Await(ctx); err != nil {
			place.Leave()
			return nil, err
		}
		return place, nil
	})
}

// Explain adds to an error of waiting that was cut short why there is no connection, if there is none. It is
// zk.ErrNotConnected then.
func Explain(client *zk.Client, err error) error {
	if last := client.LastError(); last != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		if !errors.Is(last, zk.ErrNotConnected) {
			last = fmt.Errorf("%w: %w", zk.ErrNotConnected, last)
		}
		return fmt.Errorf("%w (no server answers: %w)", err, last)
	}
	return err
}
