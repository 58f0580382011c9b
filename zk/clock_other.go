//go:build !linux

package zk

// Systems without a known clock that counts the time for which the machine was suspended.

import "time"

// suspended is nil: the system has no clock that is known here to go on while the machine is suspended, or Go's own does.
var suspended func() time.Duration //nolint:gochecknoglobals // a constant that Go cannot write as one
