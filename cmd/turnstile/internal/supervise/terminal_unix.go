//go:build unix

package supervise

// Job control.

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is our controlling terminal; nil is none. The command has a process group of its own, so it can read the
// terminal only while that group is in the foreground: we do for the command what shells do for their jobs.
type terminal struct {
	file  *os.File
	group int // ours
}

// openTerminal returns the controlling terminal, nil if there is none.
func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &terminal{file: file, group: unix.Getpgrp()}
}

func (t *terminal) close() {
	if t != nil {
		t.file.Close()
	}
}

func (t *terminal) fd() int { return int(t.file.Fd()) }

// interactive reports whether the command should begin in the foreground: we are in the foreground, and all its
// streams are the terminal. In a pipeline the other processes, which are of our group, need the terminal too; there
// the command gets it when it asks for it.
func (t *terminal) interactive() bool {
	if t == nil || !t.inForeground(t.group) {
		return false
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			return false
		}
	}
	return true
}

// ignoreOutputStops lets us write to the terminal from the background. It is called after the command's start, so that
// the command does not inherit it.
func (t *terminal) ignoreOutputStops() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// inForeground reports whether the group is in the terminal's foreground.
func (t *terminal) inForeground(group int) bool {
	front, err := unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP)
	return err == nil && front == group
}

// bringForward puts the group into the terminal's foreground, if the terminal still exists.
func (t *terminal) bringForward(group int) {
	_ = unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, group)
}

// restore takes the terminal back when the command has ended, and reports whether the command died of a key. Only the
// foreground group gets Ctrl-C and Ctrl-\: that such a signal came from the keyboard is a guess, as shells make it.
func (t *terminal) restore(c *child) (typed bool) {
	if t == nil {
		return false
	}
	if t.inForeground(c.pid) {
		t.bringForward(t.group)
		typed = c.ending.Signal == syscall.SIGINT || c.ending.Signal == syscall.SIGQUIT
	}
	signal.Reset(syscall.SIGTTOU)
	return typed
}

// suspend handles a stop of the command by the terminal. If the command asks for the terminal and we have it, we hand
// it over. Otherwise we stop too, so that the shell that waits for us takes over. Nothing renews the session while we
// are stopped: if we are continued too late the hold is lost, and the command is ended without running on first.
func (p *Process) suspend(sig syscall.Signal) {
	t := p.terminal
	switch {
	case t == nil:
		return
	case (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU) && t.inForeground(t.group):
		t.bringForward(p.child.pid)
		p.child.signal(syscall.SIGCONT)
		return
	case sig != syscall.SIGTSTP && sig != syscall.SIGTTIN && sig != syscall.SIGTTOU:
		return
	}
	if t.inForeground(p.child.pid) {
		t.bringForward(t.group)
	}
	if p.lost == nil && t.hasShell() {
		p.tellStopping()
	}
	begin := time.Now()
	t.stop(p.signals, p.child.signal)
	if p.left() <= 0 {
		p.paused = time.Since(begin)
		return // the timer in loop ends the command
	}
	if t.inForeground(t.group) {
		t.bringForward(p.child.pid)
	}
	p.child.signal(syscall.SIGCONT)
}

// hasShell reports whether there is a shell that would continue our group. Without one we must not stop.
func (t *terminal) hasShell() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != t.group && unix.Getppid() != 1
}

// stop stops our process group, and returns when it is continued. Other signals that arrive are passed to pass.
func (t *terminal) stop(signals *Signals, pass func(os.Signal)) {
	if !t.hasShell() {
		return
	}
	// We stop ourselves with SIGSTOP: once Go has caught SIGTSTP it never restores the system's default action.
	signal.Ignore(syscall.SIGTSTP)
	_ = syscall.Kill(0, syscall.SIGTSTP) // to our pipeline
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	for sig := range signals.ch {
		if sig == syscall.SIGCONT {
			break
		}
		pass(sig)
	}
	signal.Notify(signals.ch, syscall.SIGTSTP)
}

// catchStop catches the signals of job control, for suspendGroup.
func (t *terminal) catchStop(s *Signals) {
	if t != nil {
		signal.Notify(s.ch, syscall.SIGTSTP, syscall.SIGCONT)
	}
}

// isStop reports whether a signal asks us to stop at the terminal.
func (t *terminal) isStop(sig os.Signal) bool { return t != nil && sig == syscall.SIGTSTP }

// suspendGroup stops commands that have no terminal, and us. When we are continued it continues those whose holds have
// not been lost meanwhile.
func (t *terminal) suspendGroup(signals *Signals, commands map[*Process]bool) {
	told := !t.hasShell()
	for p, started := range commands {
		if started {
			p.child.signal(syscall.SIGSTOP)
		}
		if !told {
			p.tellStopping()
			told = true
		}
	}
	var later []os.Signal
	t.stop(signals, func(sig os.Signal) { later = append(later, sig) })
	for p, started := range commands {
		if started && p.left() > 0 { // otherwise the timer in its loop ends it
			p.child.signal(syscall.SIGCONT)
		}
	}
	for _, sig := range later {
		signals.ch <- sig // there is room: this is where they came from
	}
}
