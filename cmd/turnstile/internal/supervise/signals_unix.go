//go:build unix

package supervise

// Which signals end a process.

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const lastSignal = 64 // asking for one that the system does not have does nothing

// uncaught cannot be caught, or are no messages to us: SIGCHLD is about our own command, the Go runtime sends itself
// SIGURG many times a second and keeps SIGPROF to itself, and SIGPIPE usually means that our own connection broke.
var uncaught = []syscall.Signal{
	syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPROF, syscall.SIGPIPE,
}

// harmless do not end a process that does not handle them: job control, and the size of the terminal.
var harmless = []syscall.Signal{syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGWINCH}

// ending returns the signals that end a process.
func ending() []os.Signal {
	return slices.DeleteFunc(forwardable(), func(sig os.Signal) bool {
		return slices.Contains(harmless, sig.(syscall.Signal))
	})
}

// outputIsFull reports whether a write to standard output or standard error would have to wait for their reader.
func outputIsFull() bool {
	for _, fd := range []int32{1, 2} {
		n, err := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLOUT}}, 0)
		if n == 0 && err == nil {
			return true
		}
	}
	return false
}

// forwardable returns every signal that can be caught and passed on, except those that we were started ignoring: under
// nohup(1), SIGHUP stays ignored, here and in the command.
func forwardable() []os.Signal {
	var list []os.Signal
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		if !slices.Contains(uncaught, sig) && !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	return list
}
