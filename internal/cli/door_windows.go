package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

// refused reports whether nobody listens on a socket that exists.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }
