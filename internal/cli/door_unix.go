//go:build unix

package cli

import (
	"errors"
	"syscall"
)

// refused reports whether nobody listens on a socket that exists.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
