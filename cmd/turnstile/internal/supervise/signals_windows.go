package supervise

// Which signals end a process.

import (
	"os"
	"syscall"
)

// ending returns the signals that end a process.
func ending() []os.Signal { return forwardable() }

// outputIsFull does not know.
func outputIsFull() bool { return false }

// forwardable returns the signals that Windows has: Ctrl-C and Ctrl-Break, and the end of the console.
func forwardable() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
