//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// end ends the process. Everything is given back by now: a script that a signal stops must not find the lock held.
func (e *exitError) end() {
	if e.typed {
		if e.signal != syscall.SIGINT {
			signal.Ignore(e.signal) // it would have Go print its goroutines
		}
		_ = syscall.Kill(0, e.signal) // the shell has it before it can see that we have ended
	}
	if e.signal == syscall.SIGINT && !signal.Ignored(syscall.SIGINT) {
		signal.Reset(syscall.SIGINT)
		if syscall.Kill(syscall.Getpid(), syscall.SIGINT) == nil {
			<-time.After(time.Second) // until it comes: the system may give it to any thread, and need not hurry
		}
	}
	os.Exit(e.code)
}
