package cli

// Windows has no service manager that passes sockets.

import (
	"errors"
	"net"
)

func closeOnExec(int) {}

func passedListener(int) (net.Listener, error) { return nil, errors.ErrUnsupported }
