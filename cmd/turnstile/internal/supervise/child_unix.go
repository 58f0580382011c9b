//go:build unix

package supervise

// Process groups.

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// groupPoll is how often to check whether a process group has ended. Its members are not our children, so no event
// tells us.
const groupPoll = 5 * time.Millisecond

// killTime is how long to wait for a group that was killed.
const killTime = 10 * time.Second

// osProcess is a process that leads a process group, or one that is not our child.
type osProcess struct {
	pid   int
	other *os.Process // nil for our child
}

func (p *osProcess) start(cmd *exec.Cmd, t *terminal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	dieWithParent(cmd.SysProcAttr)
	if t.interactive() {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, t.fd()
	}
	cmd.WaitDelay = time.Second // do not wait for other processes that keep the streams open
	if err := p.fork(cmd); err != nil {
		return err
	}
	t.ignoreOutputStops()
	return nil
}

// fork starts the process. For one that reads and writes files it does what os.StartProcess does, which first starts
// another process, to see what the kernel can do, and keeps a descriptor of the new one, which nothing here needs: a
// tenth of the time of turnstile lock.
func (p *osProcess) fork(cmd *exec.Cmd) (err error) {
	files := make([]uintptr, 3)
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		file, ok := stream.(*os.File)
		if !ok { // it copies what passes through
			if err := cmd.Start(); err != nil {
				return err
			}
			p.pid = cmd.Process.Pid
			return nil
		}
		files[i] = file.Fd()
	}
	attr := &syscall.ProcAttr{Env: cmd.Environ(), Files: files, Sys: cmd.SysProcAttr}
	p.pid, err = syscall.ForkExec(cmd.Path, cmd.Args, attr)
	runtime.KeepAlive(cmd)
	if err != nil {
		return &os.PathError{Op: "fork/exec", Path: cmd.Path, Err: err}
	}
	return nil
}

// ownSession makes a process that has a session of its own and no terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wait returns how the process ended, and sends the signal to stopped each time the process is stopped.
func (p *osProcess) wait(cmd *exec.Cmd, stopped chan<- syscall.Signal) Ending {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return Ending{Code: unknownCode} // cannot happen: it is our child, and only we wait for it
		case status.Stopped():
			stopped <- status.StopSignal()
			continue
		}
		if cmd.Process != nil {
			_ = cmd.Wait() // fails because we have reaped the process; called to wait for the streams
		}
		if status.Signaled() {
			return endingBy(status.Signal())
		}
		return Ending{Code: status.ExitStatus()}
	}
}

// signal sends a signal to the group, if it still exists. Of a process that is not our child the group is not ours.
func (p *osProcess) signal(sig os.Signal) {
	if p.other != nil {
		_ = p.other.Signal(sig) // it may have ended
		return
	}
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-p.pid, s)
	}
}

// terminate asks the group to end, even if it is stopped.
func (p *osProcess) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
}

func (p *osProcess) kill() { p.signal(syscall.SIGKILL) }

// killGroup waits until the rest of the group of a process that has ended has ended too, and kills it at the deadline.
// Then it waits again: before a process that was killed is gone, it may wait for a processor, or for the end of a
// system call.
func (p *osProcess) killGroup(deadline time.Time) {
	if !p.groupEnded(deadline) {
		p.kill()
		p.groupEnded(time.Now().Add(killTime))
	}
}

// groupEnded waits until the rest of the group of a process that has ended has ended too, and reports whether it did
// so before the deadline.
func (p *osProcess) groupEnded(deadline time.Time) bool {
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for late := false; p.other == nil && syscall.Kill(-p.pid, 0) == nil && groupLives(p.pid); {
		if late {
			return false
		}
		now := <-tick.C
		late = !now.Before(deadline) // then it looks once more: it may have stood still itself
	}
	return true
}
