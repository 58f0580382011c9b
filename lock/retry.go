package lock

// How often an acquisition is retried.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Retry says how often and how soon an acquisition is retried after it lost its session, its connection or its node
// while it stood in line. The zero Retry is Forever(0): at once, for as long as the caller's context lasts. Elections
// have the same type: see elect.Retry.
//
// Waiting in line is no failure, and neither is waiting for a server before the first try: only the context limits
// those. A refusal by the server (missing rights, say) is not retried, unless it passes, as that of an overloaded
// server does. Nothing is retried after the client was closed.
//
// A policy has two methods that return a stricter one. Times(n int) ends after n retries. Within(d time.Duration) ends
// when that time has passed since the first failure outside the line.
type Retry = line.Retry

// Forever retries without end, after the given pause.
func Forever(pause time.Duration) Retry { return line.Forever(pause) }

// NTimes retries at most n times, after the given pause; NTimes(0, 0) never retries.
func NTimes(n int, pause time.Duration) Retry { return line.Forever(pause).Times(n) }

// UntilElapsed retries, after the given pause, until the given time has passed since the first failure.
func UntilElapsed(within, pause time.Duration) Retry { return line.Forever(pause).Within(within) }

// Exponential retries without end, after pauses with full jitter: each is drawn evenly between zero and a bound,
// which is base at first, doubles with every retry, and stays at limit. So clients that lost a server together do not
// return together.
//
//	lock.Exponential(50*time.Millisecond, 5*time.Second).Times(10)
func Exponential(base, limit time.Duration) Retry { return line.Exponential(base, limit) }
