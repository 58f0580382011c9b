package cli

import (
	"os"
	"syscall"
)

// terminal is what Windows does not have: consoles know no foreground. It is always nil.
type terminal struct{}

func openTerminal() *terminal { return nil }

func (t *terminal) close() {}

func (t *terminal) restore(*child) (typed bool) { return false }

// suspend is never called: Windows does not stop processes.
func (s *supervisor) suspend(syscall.Signal) {}

func (t *terminal) catch(*signals) {}

func (t *terminal) suspends(os.Signal) bool { return false }

func (t *terminal) suspendAll(*signals, map[*supervisor]bool) {}
