//go:build unix

package peer

// Pausing a process, by SIGSTOP.

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func (m *member) pause() error {
	if m.pid() == 0 {
		return errNotRunning
	}
	return Pause(m.proc.Load().cmd.Process)
}

func (m *member) resume() error {
	if m.pid() == 0 {
		return errNotRunning
	}
	return m.proc.Load().cmd.Process.Signal(syscall.SIGCONT)
}

var errNotRunning = errors.New("not running")

// Pause stops a child process, and returns when it has stopped: a signal is only on its way when it is sent, and the
// threads of a process without a processor of its own go on for a while.
func Pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("wait until the process has stopped: %w", err)
		case !status.Stopped():
			return fmt.Errorf("the process has ended: status %#x", status)
		default:
			return nil
		}
	}
}
