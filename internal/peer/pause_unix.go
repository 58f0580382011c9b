//go:build unix

package peer

// Pausing a process, by SIGSTOP.

import (
	"errors"
	"syscall"
)

func (m *member) pause() error  { return m.signal(syscall.SIGSTOP) }
func (m *member) resume() error { return m.signal(syscall.SIGCONT) }

func (m *member) signal(sig syscall.Signal) error {
	if m.pid() == 0 {
		return errors.New("not running")
	}
	return m.proc.Load().cmd.Process.Signal(sig)
}
