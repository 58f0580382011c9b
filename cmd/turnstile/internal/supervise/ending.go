package supervise

// How a process ends.

import "syscall"

const (
	signalCode  = 128 // a shell's exit code of a process that signal N ended is this plus N
	unknownCode = 70  // the exit code of a process of which the system tells nothing
)

// Ending is how a process ended, or how this process is to end.
type Ending struct {
	Code   int            // as a shell reports it: 128+N if signal N ended the process
	Signal syscall.Signal // that ended the process; 0 if none did
	Typed  bool           // Signal came from the terminal, to the command's process group and not to ours
}

func endingBy(sig syscall.Signal) Ending { return Ending{Code: signalCode + int(sig), Signal: sig} }
