//go:build unix

package cli

import (
	"errors"
	"syscall"
)

// refused reports whether err says that a socket exists, and that no process listens on it.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
