package attempt_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

func TestOutliveEndsForEveryOtherCause(t *testing.T) {
	t.Parallel()
	errEnded, errOther := errors.New("ended"), errors.New("other")
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			cause error // of the own context's end
			wait  time.Duration
			want  error
		}{
			{"own end", errEnded, time.Second, nil},
			{"other end", errOther, 0, errOther},
			{"deadline", nil, time.Minute, context.DeadlineExceeded},
			{"deadline after the own end", errEnded, time.Minute, context.DeadlineExceeded},
			{"nothing", nil, time.Second, nil},
		} {
			own, end := context.WithCancelCause(t.Context())
			ctx, cancel := context.WithTimeout(own, time.Minute)
			out, stop := attempt.Outlive(ctx, errEnded)
			if c.cause != nil {
				end(c.cause)
			}
			time.Sleep(c.wait)
			synctest.Wait()
			if got := context.Cause(out); !errors.Is(got, c.want) || got != nil && c.want == nil {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
			}
			stop()
			if out.Err() == nil {
				t.Errorf("%s: it goes on after the call", c.name)
			}
			cancel()
			end(nil)
		}
		timed, free := context.WithTimeoutCause(t.Context(), time.Second, errOther)
		defer free()
		out, stop := attempt.Outlive(timed, errEnded)
		defer stop()
		if <-out.Done(); !errors.Is(context.Cause(out), errOther) {
			t.Errorf("got %v at a deadline with a cause of its own", context.Cause(out))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOther)
		if out, _ := attempt.Outlive(ctx, errEnded); out.Err() == nil {
			t.Error("a context that had ended before the call has not ended")
		}
	})
}

// As with UnlockWait under the hold's context after Unlock.
func TestOutliveGoesOnAfterAnEarlierEndForTheCause(t *testing.T) {
	t.Parallel()
	errEnded := errors.New("ended")
	synctest.Test(t, func(t *testing.T) {
		own, end := context.WithCancelCause(t.Context())
		end(errEnded)
		out, stop := attempt.Outlive(own, errEnded)
		time.Sleep(time.Second)
		if err := out.Err(); err != nil {
			t.Errorf("got %v, want a context that goes on", err)
		}
		stop()
	})
}

func TestRemovalThatIsDoneIsNoFailureAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	r := attempt.NewRemoval(nil)
	r.End(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
