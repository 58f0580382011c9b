//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// clearEvery is how often to look whether a group has gone. Nothing tells of it: its members are not our children.
const clearEvery = 5 * time.Millisecond

// process is a process that leads a process group.
type process struct{ pid int }

func (p *process) start(cmd *exec.Cmd, t *terminal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	dieWithParent(cmd.SysProcAttr)
	if t.interactive() {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, t.fd()
	}
	cmd.WaitDelay = time.Second // for streams that are not files: what else holds them open does not hold us
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	t.hold()
	return nil
}

// wait returns the exit code when the process has ended, with the signal if one ended it, and reports the times that
// it is stopped.
func (p *process) wait(cmd *exec.Cmd, stopped chan<- syscall.Signal) (code int, sig syscall.Signal) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return ExitSoftware, 0 // cannot happen: it is our child, and nobody else waits for it
		case status.Stopped():
			stopped <- status.StopSignal()
			continue
		}
		_ = cmd.Wait() // the process is gone, as it will say; this waits for the streams
		if status.Signaled() {
			return ExitSignal + int(status.Signal()), status.Signal()
		}
		return status.ExitStatus(), 0
	}
}

// signal passes a signal to the group. One that has gone needs none.
func (p *process) signal(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-p.pid, s)
	}
}

// terminate asks the group to end, whether it is stopped or not.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// clear waits until the group of a process that has ended is gone, and kills what is left of it at the deadline.
func (p *process) clear(deadline time.Time) {
	if !p.gone(deadline) {
		p.kill()
	}
}

// gone waits until the group of a process that has ended is gone, and reports whether it is before the deadline.
func (p *process) gone(deadline time.Time) bool {
	tick := time.NewTicker(clearEvery)
	defer tick.Stop()
	for syscall.Kill(-p.pid, 0) == nil && groupLives(p.pid) {
		if now := <-tick.C; !now.Before(deadline) {
			return false
		}
	}
	return true
}
