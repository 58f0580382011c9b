package supervise

// Systems without job control.

import (
	"os"
	"syscall"
)

// terminal does not exist on Windows, whose consoles have no foreground: it is always nil.
type terminal struct{}

func openTerminal() *terminal { return nil }

func (t *terminal) close() {}

func (t *terminal) restore(*child) (typed bool) { return false }

// suspend is never called: Windows does not stop processes.
func (p *Process) suspend(syscall.Signal) {}

func (t *terminal) catchStop(*Signals) {}

func (t *terminal) isStop(os.Signal) bool { return false }

func (t *terminal) suspendGroup(*Signals, map[*Process]bool) {}
