package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

// refused reports whether err says that a socket exists, and that no process listens on it.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }
