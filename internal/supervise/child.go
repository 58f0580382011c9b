package cli

import (
	"os/exec"
	"runtime"
	"syscall"
)

// child is the running command: a process, and the group or job of all that it starts. Its methods are for one goroutine.
type child struct {
	process
	stopped chan syscall.Signal // sent when the process was stopped, until ended
	ended   chan struct{}       // closed when the process has ended
	code    int                 // exit code in the shell's sense, once ended

	signalled syscall.Signal // what ended the process, once ended; 0 if it ended by itself
}

// startChild starts the command in a group of its own, in the foreground of the terminal if there is one and everything points to it.
func startChild(cmd *exec.Cmd, t *terminal) (*child, error) {
	c := &child{stopped: make(chan syscall.Signal), ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// On Linux the command gets SIGTERM when its parent dies, and its parent is the thread that forked it (prctl(2),
		// PR_SET_PDEATHSIG): the thread must live as long as the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.start(cmd, t)
		started <- err
		if err == nil {
			c.code, c.signalled = c.wait(cmd, c.stopped)
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}
