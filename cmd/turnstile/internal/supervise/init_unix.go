//go:build unix

package supervise

// Being the first process of a container.

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Init runs a program with our streams and our environment, passes signals on to it, and reaps every process that
// becomes our child, as the first process of a system must. It returns how the program has ended. If our standard input
// is a terminal, the program gets it.
func Init(program string, args []string) (Ending, error) {
	ch := make(chan os.Signal, 64)
	signal.Notify(ch, append(forwardable(), syscall.SIGCHLD)...)
	attr := &syscall.SysProcAttr{Setpgid: true} // the terminal's signals come to it alone, and not twice
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		attr.Foreground, attr.Ctty = true, 0
	}
	p, err := os.StartProcess(program, args, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	if err != nil {
		signal.Reset()
		return Ending{}, err
	}
	for sig := range ch {
		if sig != syscall.SIGCHLD {
			_ = p.Signal(sig) // it may just have ended
			continue
		}
		if ending, ended := reap(p.Pid); ended {
			return ending, nil
		}
	}
	panic("not reached: the channel is never closed")
}

// reap reaps all children that have ended, and reports whether one of them is the given one, and how that ended.
func reap(main int) (ending Ending, ended bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || pid <= 0:
			return ending, ended
		case pid == main && status.Signaled():
			ending, ended = endingBy(status.Signal()), true
		case pid == main:
			ending, ended = Ending{Code: status.ExitStatus()}, true
		}
	}
}
