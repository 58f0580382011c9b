package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
	"time"
)

// What --on-lost takes.
const (
	onLostTerm   = "term"
	onLostKill   = "kill"
	onLostIgnore = "ignore"
)

// schedule is when a command is ended whose lock may be lost. All is over before the session's local deadline, at which the client lets
// the session go: until then, whatever the connection does, nobody else can have the lock.
type schedule struct {
	grace time.Duration // between SIGTERM and SIGKILL
	spare time.Duration // between SIGKILL and the deadline
}

// schedule makes the schedule for sessions of that timeout. The grace gets a quarter of it at most, so that half of the session is left
// for riding out a server that is away.
func (l *locker) schedule(timeout time.Duration) schedule {
	s := schedule{spare: timeout / 40}
	if l.onLost.value == onLostTerm {
		s.grace = min(time.Duration(l.grace), timeout/4)
	}
	return s
}

func (s schedule) kill(deadline time.Time) time.Time { return deadline.Add(-s.spare) }
func (s schedule) term(deadline time.Time) time.Time { return deadline.Add(-s.spare - s.grace) }

// mentionGrace tells of a --grace that was asked for and that the session has no room for.
func (l *locker) mentionGrace(timeout time.Duration) {
	wanted := time.Duration(l.grace)
	if granted := l.schedule(timeout).grace; l.graced && len(l.argv) > 0 && l.onLost.value == onLostTerm && granted < wanted {
		l.say("%s: a session of %v has room for a grace of %v only: for %v ask for --session-timeout %v (the server may have a limit)",
			l.path, timeout, granted, wanted, 4*wanted)
	}
}

// supervisor runs a command while the lock is held.
type supervisor struct {
	*locker
	hold     held
	signals  *signals
	terminal *terminal // nil without one
	child    *child
	called   bool      // a signal to end was passed on
	lost     error     // why the lock counts as lost
	killing  time.Time // when it was lost: by when the command's whole group must be gone
}

// supervise runs the command under the lock and returns how it ended, as an error with its exit code.
func (l *locker) supervise(ctx context.Context, hold held, signals *signals, program string) error {
	s, err := l.attend(ctx, hold, signals, program)
	switch {
	case err != nil:
		return err
	case s.lost == nil || l.onLost.value == onLostIgnore:
		return &exitError{code: s.child.code}
	}
	return l.lostError(s.lost)
}

// attend runs the command under the lock, gives the lock back when the command has ended, and returns what became of both. It returns
// an error if the command did not start.
func (l *locker) attend(ctx context.Context, hold held, signals *signals, program string) (*supervisor, error) {
	s := &supervisor{locker: l, hold: hold, signals: signals, terminal: openTerminal()}
	defer s.terminal.close()
	signals.catchAll()
	err := s.start(program, l.argv)
	if errors.Is(err, syscall.ENOEXEC) { // a script that does not say for whom, which shells and execvp(3) give to sh
		err = s.start("/bin/sh", append([]string{"sh", program}, l.argv[1:]...))
	}
	if err != nil {
		_ = giveBack(context.WithoutCancel(ctx), hold) // nothing ran under it
		return nil, cannotRun(err)
	}
	begin := time.Now()
	s.run(ctx)
	if !s.killing.IsZero() {
		s.child.clear(s.killing)
	}
	s.terminal.restore(s.child)
	if err := giveBack(context.WithoutCancel(ctx), hold); s.lost == nil {
		s.lost = err
	}
	l.detail("%s: %s after %v", l.path, l.words.over, time.Since(begin).Round(time.Millisecond))
	return s, nil
}

func (s *supervisor) start(program string, argv []string) (err error) {
	s.child, err = startChild(&exec.Cmd{
		Path:   program,
		Args:   argv,
		Env:    s.environment(s.hold),
		Stdin:  s.stdin,
		Stdout: s.stdout,
		Stderr: s.stderr,
	}, s.terminal)
	return err
}

// run returns when the command has ended.
func (s *supervisor) run(ctx context.Context) {
	ended := s.hold.Context().Done()
	called := ctx.Done()
	alarm := time.NewTimer(0) // when the server will have been silent for too long
	defer alarm.Stop()
	var kill <-chan time.Time
	for {
		select {
		case <-s.child.ended:
			return
		case sig := <-s.signals.ch:
			s.called = s.called || callsOff(sig)
			s.child.signal(sig)
		case sig := <-s.child.stopped:
			s.suspend(sig)
		case <-called:
			called, s.called = nil, true
			s.child.signal(syscall.SIGTERM)
		case <-alarm.C:
			if left := s.left(); left > 0 {
				alarm.Reset(left)
			} else if s.lost == nil && s.onLost.value != onLostIgnore {
				kill = s.lose(s.silence())
			}
		case <-ended:
			ended = nil
			if s.lost == nil {
				kill = s.lose(context.Cause(s.hold.Context())) //nolint:contextcheck // the hold's end, not ours
			}
		case <-kill:
			kill = nil
			s.child.kill()
		}
	}
}

// plan is the schedule for the timeout that the server granted at the last connect.
func (s *supervisor) plan() schedule { return s.schedule(s.hold.Session().Timeout()) }

// left is how long it is until the command must be told to end, if the server stays silent.
func (s *supervisor) left() time.Duration {
	return time.Until(s.plan().term(s.hold.Session().Deadline()))
}

func (s *supervisor) silence() error {
	left := time.Until(s.hold.Session().Deadline()).Round(time.Millisecond)
	return fmt.Errorf("no answer from a server, and %v until the session may end", max(0, left))
}

// lose does with the command what --on-lost says, and returns when to kill it.
func (s *supervisor) lose(cause error) <-chan time.Time {
	s.lost = cause
	if s.onLost.value == onLostIgnore {
		s.say("%s: %s lost, the command runs on: %v", s.path, s.words.noun, cause)
		return nil
	}
	now := time.Now()
	plan := s.plan()
	s.killing = plan.kill(s.hold.Session().Deadline())
	if latest := now.Add(plan.grace); s.killing.After(latest) {
		s.killing = latest
	}
	grace := s.killing.Sub(now)
	s.detail("%s: %s lost, the command has %v to end: %v", s.path, s.words.noun, max(0, grace).Round(time.Millisecond), cause)
	if grace <= 0 {
		s.child.kill()
		return nil
	}
	s.child.terminate()
	return time.After(grace)
}

// cannotRun is the error of a command that did not start, with the shell's exit codes.
func cannotRun(err error) error {
	code := ExitNoExec
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = ExitNotFound
	}
	return &exitError{code: code, err: fmt.Errorf("cannot run the command: %w", err)}
}
