//go:build !unix

package peer

// Systems on which a process cannot be paused.

import "errors"

var errNoPause = errors.New("cannot pause a process on this system")

func (m *member) pause() error  { return errNoPause }
func (m *member) resume() error { return errNoPause }
