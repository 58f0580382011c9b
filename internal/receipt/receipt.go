// Package receipt has the earlier names of what package attempt now has, until all recipes use that.
package receipt

import "github.com/seed-a3166700/turnstile/internal/attempt"

type (
	// Receipt is attempt.Receipt.
	Receipt = attempt.Receipt
	// Pool is attempt.Pool.
	Pool = attempt.Pool
)

// ErrGone is attempt.ErrGone.
var ErrGone = attempt.ErrGone
