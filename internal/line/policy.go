package line

// How often an acquisition is tried again.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Policy is lock.Retry, which says what users must know.
type Policy struct {
	times  int           // no bound if zero
	within time.Duration // no bound if zero
	pause  time.Duration // or the first bound of it
	limit  time.Duration // of a pause that grows; zero for one that does not
	err    error         // what is wrong with the policy
}

// Forever retries without end, after the given pause.
func Forever(pause time.Duration) Policy {
	r := Policy{pause: pause}
	if pause < 0 {
		r.err = attempt.Bad("retry pause must not be negative: %v", pause)
	}
	return r
}

// Exponential retries without end, after pauses with full jitter.
func Exponential(base, limit time.Duration) Policy {
	r := Policy{pause: base, limit: limit}
	if base <= 0 || limit < base {
		r.err = attempt.Bad("invalid retry pauses: %v to %v; use 0 < base <= limit", base, limit)
	}
	return r
}

// Times returns the policy that ends after n retries.
func (r Policy) Times(n int) Policy {
	switch {
	case n > 0:
		r.times = n
	case n == 0:
		r.times = never
	default:
		r.err = cmp.Or(r.err, attempt.Bad("number of retries must not be negative: %d", n))
	}
	return r
}

// never stands for zero times, because zero stands for no bound.
const never = -1

// Within returns the policy that ends when the given time has passed since the first failure outside the line.
func (r Policy) Within(d time.Duration) Policy {
	if d <= 0 {
		r.err = cmp.Or(r.err, attempt.Bad("retry time must be positive: %v; for no retry use Times(0)", d))
	}
	r.within = d
	return r
}

// Check says what is wrong with the policy.
func (r Policy) Check() error { return r.err }

// before returns the pause before try n, counted from one for the first after the failure, and false if there is to
// be none.
func (r Policy) before(n int) (time.Duration, bool) {
	if r.times == never || r.times > 0 && n > r.times {
		return 0, false
	}
	if r.limit == 0 {
		return r.pause, true
	}
	bound := r.limit
	if shift := n - 1; shift < 62 && r.pause<<shift>>shift == r.pause {
		bound = min(bound, r.pause<<shift)
	}
	return rand.N(bound), true
}

// Acquire runs try as Attempt does, as often as r says, for nodes that are to own something. They count only when the
// session is certain that it lives (see Certify).
func (r Policy) Acquire(ctx context.Context, client *zk.Client, try func(*zk.Session) (*Own, error)) (*Own, error) {
	certified := func(sess *zk.Session) (*Own, error) {
		own, err := try(sess)
		if err != nil {
			return nil, err
		}
		return own, own.Certify(ctx)
	}
	if r == (Policy{}) {
		return attempt.Run(ctx, client, certified)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	a := attempts{policy: r, giveUp: giveUp}
	got, err := attempt.Run(ctx, client, func(sess *zk.Session) (*Own, error) {
		a.begin()
		got, err := certified(sess)
		if err != nil && ctx.Err() == nil && attempt.Passing(sess, err) {
			a.failed(ctx, err)
		}
		return got, err
	})
	return got, a.explain(err)
}

// attempts is what one acquisition has tried.
type attempts struct {
	policy Policy
	giveUp context.CancelCauseFunc

	failures int
	first    time.Time // when the first of them was
	last     error
	timer    *time.Timer // runs from a failure to the next try; nil before the first, and if there is no bound of time
}

// begin is called at the beginning of a try. It may stand in line for as long as it likes.
func (a *attempts) begin() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// failed gives up, or waits before the next try.
func (a *attempts) failed(ctx context.Context, err error) {
	a.failures++
	a.last = err
	if a.failures == 1 {
		a.first = time.Now()
	}
	pause, again := a.policy.before(a.failures)
	if !again {
		a.giveUp(errTries)
		return
	}
	if a.policy.within > 0 {
		left := a.policy.within - time.Since(a.first)
		if left <= 0 {
			a.giveUp(errTime)
			return
		}
		// It bounds the pause, and the wait for the next session.
		if a.timer == nil {
			a.timer = time.AfterFunc(left, func() { a.giveUp(errTime) })
			context.AfterFunc(ctx, func() { a.timer.Stop() })
		} else {
			a.timer.Reset(left)
		}
	}
	select {
	case <-time.After(max(pause, time.Nanosecond)): // never zero: golang/go#78156
	case <-ctx.Done():
	}
}

// explain says why the policy gave up, if it did and that is what err is about.
func (a *attempts) explain(err error) error {
	switch {
	case errors.Is(err, errTries):
		return fmt.Errorf("gave up after trying %d times: %w", a.failures, a.last)
	case errors.Is(err, errTime):
		return fmt.Errorf("gave up %v after the first of %d failures: %w", a.policy.within, a.failures, a.last)
	default:
		return err
	}
}

// Why a policy gave up.
var (
	errTries = errors.New("tried often enough")
	errTime  = errors.New("tried for long enough")
)
