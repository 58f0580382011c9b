//go:build !linux

package zk

// Systems without a known clock that counts the time for which the machine was suspended.

import "time"

// suspended is nil: either Go's monotonic clock counts the time suspended, or no clock that does is known here.
var suspended func() time.Duration //nolint:gochecknoglobals // a constant that Go cannot write as one
