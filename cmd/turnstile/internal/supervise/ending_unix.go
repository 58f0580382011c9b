//go:build unix

package supervise

// Ending by a signal.

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit ends this process the same way: by SIGINT if that was the signal, otherwise with the exit code.
//
// A shell stops its script at Ctrl-C if it got SIGINT itself and the program that it waits for died of SIGINT. (If the
// program exits instead, bash assumes that it has handled the key, and the script goes on.) A signal that the terminal
// sent to the command's process group alone is therefore sent to our own group, which is the script's.
func (e Ending) Exit() {
	if e.Typed {
		if e.Signal != syscall.SIGINT {
			signal.Ignore(e.Signal) // Go would print its goroutines
		}
		_ = syscall.Kill(0, e.Signal) // the shell has it before it can see that we have ended
	}
	if e.Signal == syscall.SIGINT && !signal.Ignored(syscall.SIGINT) {
		signal.Reset(syscall.SIGINT)
		if syscall.Kill(syscall.Getpid(), syscall.SIGINT) == nil {
			<-time.After(time.Second) // the system may deliver it to any thread, and need not do so at once
		}
	}
	os.Exit(e.Code)
}
