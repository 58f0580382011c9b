package lock

// How often an acquisition is retried.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Retry says how often and how soon an acquisition, or a campaign of package elect, is retried after it lost its
// session, its connection or its node while it stood in line. The zero Retry is Forever(0): at once, for as long as the
// caller's context lasts.
//
// Waiting in line is no failure, and neither is waiting for a server before the first try: only the context limits
// those. A refusal by the server (missing rights, say) is not retried, unless it passes, as that of an overloaded
// server does. Nothing is retried after the client was closed.
type Retry line.Policy

// Forever retries without end, after the given pause.
func Forever(pause time.Duration) Retry { return Retry(line.Forever(pause)) }

// Exponential retries without end, after pauses with full jitter: each is drawn evenly between zero and a bound,
// which is base at first, doubles with every retry, and stays at limit. So clients that lost a server together do not
// return together.
//
//	lock.Exponential(50*time.Millisecond, 5*time.Second).Times(10)
func Exponential(base, limit time.Duration) Retry { return Retry(line.Exponential(base, limit)) }

// Times returns the policy that ends after n retries. Forever(0).Times(0) never retries.
func (r Retry) Times(n int) Retry { return Retry(line.Policy(r).Times(n)) }

// Within returns the policy that ends when the given time has passed since the first failure outside the line.
func (r Retry) Within(d time.Duration) Retry { return Retry(line.Policy(r).Within(d)) }
