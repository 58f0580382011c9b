package cli

import (
	"os"
	"syscall"
)

// ending returns the signals that end a process.
func ending() []os.Signal { return passable() }

// passable returns what Windows has of signals: Ctrl-C and Ctrl-Break, and the end of the console.
func passable() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
