//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is our controlling terminal. The command has a process group of its own, so it can read the terminal only while that group
// is the terminal's foreground: what shells do for their jobs we do for the command. A nil terminal is none.
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

// interactive reports whether the command should begin in the foreground: we are there, and all its streams are the terminal. In a
// pipeline the others need the terminal, too, and they are of our group: there the command gets it when it asks for it.
func (t *terminal) interactive() bool {
	if t == nil || !t.foreground(t.group) {
		return false
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			return false
		}
	}
	return true
}

// hold lets us speak to the terminal from the background. It comes after the command's start, so that the command does not inherit it.
func (t *terminal) hold() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// foreground reports whether the group is the terminal's foreground.
func (t *terminal) foreground(group int) bool {
	front, err := unix.IoctlGetInt(t.fd(), unix.TIOCGPGRP)
	return err == nil && front == group
}

// give makes the group the terminal's foreground. If the terminal has gone there is nothing to give.
func (t *terminal) give(group int) { _ = unix.IoctlSetPointerInt(t.fd(), unix.TIOCSPGRP, group) }

// restore takes the terminal back when the command has ended, and reports whether it died of a key at the terminal.
// Who has the terminal gets Ctrl-C and Ctrl-\, and nobody else does: that the signal came from there is a guess, as
// job control shells make it.
func (t *terminal) restore(c *child) (typed bool) {
	if t == nil {
		return false
	}
	if t.foreground(c.pid) {
		t.give(t.group)
		typed = c.signalled == syscall.SIGINT || c.signalled == syscall.SIGQUIT
	}
	signal.Reset(syscall.SIGTTOU)
	return typed
}

// suspend answers the command's being stopped by the terminal: by giving it the terminal if it asks for it and we have it, and
// otherwise by stopping, too, so that the shell that waits for us takes over. Nobody renews the session meanwhile: if we are continued
// too late, the lock is lost, and the command ends without having run under a lock that is somebody else's.
func (s *supervisor) suspend(sig syscall.Signal) {
	t := s.terminal
	switch {
	case t == nil:
		return
	case (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU) && t.foreground(t.group):
		t.give(s.child.pid)
		s.child.signal(syscall.SIGCONT)
		return
	case sig != syscall.SIGTSTP && sig != syscall.SIGTTIN && sig != syscall.SIGTTOU:
		return
	}
	if t.foreground(s.child.pid) {
		t.give(t.group)
	}
	if s.lost == nil && t.minded() {
		s.mentionStop()
	}
	begin := time.Now()
	t.stop(s.signals, s.child.signal)
	if s.left() <= 0 {
		s.away = time.Since(begin)
		return // the alarm is due
	}
	if t.foreground(t.group) {
		t.give(s.child.pid)
	}
	s.child.signal(syscall.SIGCONT)
}

// mentionStop says what being stopped leads to: nobody renews the session, and that is unlike flock(1).
func (s *supervisor) mentionStop() {
	if left := s.left(); left > 0 && s.onLost.value != onLostIgnore {
		s.say("%s: stopped: if it does not go on within %v, the %s is lost and the command ended; "+
			"--session-timeout gives it longer", s.path, left.Round(100*time.Millisecond), s.words.noun)
	}
}

// minded reports whether a shell would continue us. A group that no shell minds is not stopped: nobody would continue
// it.
func (t *terminal) minded() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != t.group && unix.Getppid() != 1
}

// stop stops our process group, and returns when it was continued. What else comes meanwhile is for pass.
func (t *terminal) stop(signals *signals, pass func(os.Signal)) {
	if !t.minded() {
		return
	}
	// For ourselves it must be SIGSTOP: once Go has caught SIGTSTP it never gives the system's own answer back.
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

// catch has signals that stop us at a terminal come to who answers them with suspendAll.
func (t *terminal) catch(s *signals) {
	if t != nil {
		signal.Notify(s.ch, syscall.SIGTSTP, syscall.SIGCONT)
	}
}

// suspends reports whether a signal stops us.
func (t *terminal) suspends(sig os.Signal) bool { return t != nil && sig == syscall.SIGTSTP }

// suspendAll stops commands that have no terminal, and us, and lets those go on afterwards whose claims still hold.
func (t *terminal) suspendAll(signals *signals, running map[*supervisor]bool) {
	told := !t.minded()
	for s, started := range running {
		if started {
			s.child.signal(syscall.SIGSTOP)
		}
		if !told {
			s.mentionStop()
			told = true
		}
	}
	var later []os.Signal
	t.stop(signals, func(sig os.Signal) { later = append(later, sig) })
	for s, started := range running {
		if started && s.left() > 0 { // otherwise the alarm is due
			s.child.signal(syscall.SIGCONT)
		}
	}
	for _, sig := range later {
		signals.ch <- sig // there is room: they have come from there
	}
}
