//go:build !unix

package peer

// Systems on which a process cannot be paused.

import "errors"

var errNoPause = errors.New("this system cannot pause a process")

func (m *member) pause() error  { return errNoPause }
func (m *member) resume() error { return errNoPause }
