//go:build unix

package supervise

// A process that is not our child.

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// otherPoll is how often to check whether a process has ended where the system has no event for that.
const otherPoll = 100 * time.Millisecond

// Other is a process that this process has not started.
type Other struct {
	proc  *os.Process
	ended chan struct{} // closed when it has ended
}

// Watch watches a process until it has ended. It returns an error if there is no such process, if pid is that of one of
// a process's threads, which Linux takes for the process in some calls, or if this process may not send signals to it.
func Watch(pid int) (*Other, error) {
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil && runtime.GOOS == "linux" {
		_, line, _ := strings.Cut(string(status), "\nTgid:")
		line, _, _ = strings.Cut(line, "\n")
		if of := strings.TrimSpace(line); of != "" && of != strconv.Itoa(pid) {
			return nil, fmt.Errorf("it is a thread of process %s", of)
		}
	}
	proc, err := os.FindProcess(pid)
	if err == nil {
		err = proc.Signal(syscall.Signal(0))
	}
	if err != nil {
		return nil, err
	}
	o := &Other{proc: proc, ended: make(chan struct{})}
	go func() { // as long as the process or we
		defer close(o.ended)
		awaitEnd(proc)
	}()
	return o, nil
}

// awaitEnd returns when the process has ended. On Linux proc is a descriptor of the process, so that another process
// with the same id, later, is not mistaken for it.
func awaitEnd(proc *os.Process) {
	err := proc.WithHandle(func(handle uintptr) {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if err == nil {
		return
	}
	tick := time.NewTicker(otherPoll)
	defer tick.Stop()
	for proc.Signal(syscall.Signal(0)) == nil {
		<-tick.C
	}
}

// Ended returns a channel that is closed when the process has ended.
func (o *Other) Ended() <-chan struct{} { return o.ended }

// Attach supervises a process that runs already, in place of a command that Start starts. Of c it uses what is to be
// done when the hold is lost, to that process alone, not to its group. Wait returns when the process has ended, when
// release is closed, or with the first of signals, which tells the process nothing.
func Attach(o *Other, c Command, hold Hold, signals *Signals, release <-chan struct{}) *Process {
	return &Process{
		command: c, hold: hold, signals: signals, release: release,
		child: &child{osProcess: osProcess{pid: o.proc.Pid, other: o.proc}, ended: o.ended},
	}
}
