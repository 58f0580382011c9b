package supervise

// The running command.

import (
	"os/exec"
	"runtime"
	"syscall"
)

// child is the running command: its process, and the process group or job of everything that it starts.
type child struct {
	osProcess
	stopped chan syscall.Signal // receives the signal each time the process is stopped, until ended is closed
	ended   chan struct{}       // closed when the process has ended
	ending  Ending              // how, once ended is closed
}

// startChild starts the command in a process group of its own, in the foreground of the terminal if t says so.
func startChild(cmd *exec.Cmd, t *terminal) (*child, error) {
	c := &child{stopped: make(chan syscall.Signal), ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// On Linux the command gets SIGTERM when its parent dies, and its parent is the thread that forked it
		// (prctl(2), PR_SET_PDEATHSIG): the thread must live as long as the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.start(cmd, t)
		started <- err
		if err == nil {
			c.ending = c.wait(cmd, c.stopped)
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}
