//go:build unix

package cli

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

const lastSignal = 64 // asking for one that the system does not have does nothing

// uncaught cannot be caught, or are not from anybody: SIGCHLD tells of our own command, with SIGURG the Go runtime taps its threads on
// the shoulder many times a second, SIGPROF it keeps to itself, and SIGPIPE is our own connection breaking, as often as not.
var uncaught = []syscall.Signal{
	syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPROF, syscall.SIGPIPE,
}

// harmless do not end a process that does not know them: job control, and the size of the terminal.
var harmless = []syscall.Signal{syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGWINCH}

// ending returns the signals that end a process.
func ending() []os.Signal {
	return slices.DeleteFunc(passable(), func(sig os.Signal) bool { return slices.Contains(harmless, sig.(syscall.Signal)) })
}

// passable returns every signal that can be caught and passed on, but those that we were born ignoring: under nohup(1) SIGHUP stays
// ignored, here and in the command.
func passable() []os.Signal {
	var list []os.Signal
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		if !slices.Contains(uncaught, sig) && !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	return list
}
