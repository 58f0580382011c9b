// Package outcome has the words by which metrics and traces call what came of acquisitions, holds and sessions.
package outcome

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// What comes of calls.
const (
	Acquired = "acquired"
	Held     = "held" // a try, while another contender has the lock
	Led      = "led"  // a try, while another candidate leads
	Canceled = "canceled"
	Deadlock = "deadlock"
	Refused  = "refused"
	Error    = "error"
)

// Other stands for everything that has no word of its own.
const Other = "other"

// OfFailure says why an acquisition or a campaign has failed.
func OfFailure(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, lock.ErrHeld):
		return Held
	case errors.Is(err, elect.ErrLed):
		return Led
	case errors.Is(err, lock.ErrDeadlock):
		return Deadlock
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		return Canceled
	case zk.OutcomeOf(err) == zk.Refused:
		return Refused
	default:
		return Error
	}
}

// OfLoss says why a hold or a leadership has ended before it was given back.
func OfLoss(err error) string {
	switch {
	case errors.Is(err, lock.ErrRevoked):
		return "revoked"
	case errors.Is(err, lock.ErrSuspended):
		return "suspended"
	case errors.Is(err, lock.ErrDeleted), errors.Is(err, elect.ErrDeleted):
		return "deleted"
	case errors.Is(err, zk.ErrUncertain):
		return "uncertain"
	default:
		return OfSession(err)
	}
}

// OfSession says why a session has ended.
func OfSession(err error) string {
	switch {
	case errors.Is(err, zk.ErrExpired):
		return "expired"
	case errors.Is(err, zk.ErrLost):
		return "lost"
	case errors.Is(err, zk.ErrClosed):
		return "closed"
	case errors.Is(err, zk.ErrAuthFailed):
		return "auth_failed"
	default:
		return Other
	}
}
