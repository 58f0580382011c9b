package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// leftoverWait is how long processes that a command leaves behind may take to end before that is worth a warning: a
// tee(1) whose input has just ended is none.
const leftoverWait = 100 * time.Millisecond

// schedule is when a command is ended whose lock may be lost. Half of its grace is over when the session stops being certain that it lives. The
// other half is the first part of the margin, a quarter of the session timeout, after which other clients may have the lock.
type schedule struct {
	grace time.Duration // between SIGTERM and SIGKILL
	spare time.Duration // for what the signals take
}

// schedule makes the schedule for sessions of that timeout. The grace gets an eighth of it at most: a session may have no more than a quarter
// left when a server goes away, and some of that is for riding it out.
func (r *runner) schedule(timeout time.Duration) schedule {
	s := schedule{spare: timeout / 40}
	if r.onLost.value == onLostTerm {
		s.grace = min(time.Duration(r.grace), timeout/8)
	}
	return s
}

func (s schedule) kill(certain time.Time) time.Time { return certain.Add(s.grace/2 - s.spare) }
func (s schedule) term(certain time.Time) time.Time { return certain.Add(-s.grace/2 - s.spare) }

// mentionGrace tells of a --grace that was asked for and that the session has no room for.
func (r *runner) mentionGrace(timeout time.Duration) {
	wanted := time.Duration(r.grace)
	if granted := r.schedule(timeout).grace; r.graced && len(r.argv) > 0 && r.onLost.value == onLostTerm && granted < wanted {
		r.say("%s: a session of %v has room for a grace of %v only: for %v ask for --session-timeout %v (the server may have a limit)",
			r.path, timeout, granted, wanted, 8*wanted)
	}
}

// supervisor runs a command while what it runs under is held.
type supervisor struct {
	*runner
	hold     held
	signals  *signals
	terminal *terminal         // nil without one
	input    io.Reader         // the command's standard input
	apart    bool              // the command has a session of its own, and no terminal
	more     []string          // of its environment
	began    func(*supervisor) // called when it runs; nil if nobody wants to know
	child    *child
	called   bool          // a signal to end was passed on
	typed    bool          // what ended the command came from the terminal, to its process group alone
	lost     error         // why the lock counts as lost
	away     time.Duration // for how long we were stopped last
	killing  time.Time     // when it was lost: by when the command's whole group must be gone
}

// supervise runs the command under the lock and returns how it ended, as an error with its exit code.
func (r *runner) supervise(ctx context.Context, hold owned, signals *signals, program string) error {
	s, err := r.attend(ctx, hold, signals, program)
	switch {
	case err != nil:
		return err
	case s.lost == nil || r.onLost.value == onLostIgnore:
		return s.ended()
	}
	return r.lostError(s.lost)
}

// attend runs the command under the lock, gives the lock back when the command has ended, and returns what became of both. It returns
// an error if the command did not start.
func (r *runner) attend(ctx context.Context, hold owned, signals *signals, program string) (*supervisor, error) {
	s := &supervisor{runner: r, hold: hold, signals: signals, terminal: openTerminal(), input: r.stdin}
	defer s.terminal.close()
	signals.catchAll()
	begin := time.Now()
	if err := s.command(ctx, program); err != nil {
		_ = giveBack(context.WithoutCancel(ctx), hold) // nothing ran under it
		return nil, err
	}
	if err := giveBack(context.WithoutCancel(ctx), hold); s.lost == nil {
		s.lost = err
	}
	r.detail("%s: %s after %v", r.path, r.words.over, time.Since(begin).Round(time.Millisecond))
	if s.lost == nil && !s.child.gone(time.Now().Add(leftoverWait)) {
		r.say("%s: warning: the command has ended, and what it has started in the background runs on without the %s; "+
			"end it with wait", r.path, r.words.noun)
	}
	return s, nil
}

// command runs the command, and returns when it has ended; if what it ran under was lost, also all of its group. It returns an error if
// the command did not start.
func (s *supervisor) command(ctx context.Context, program string) error {
	err := s.start(program, s.argv)
	if errors.Is(err, syscall.ENOEXEC) { // a script that does not say for whom, which shells and execvp(3) give to sh
		err = s.start("/bin/sh", append([]string{"sh", program}, s.argv[1:]...))
	}
	if err != nil {
		return cannotRun(err)
	}
	if s.began != nil {
		s.began(s)
	}
	s.run(ctx)
	if !s.killing.IsZero() {
		s.child.clear(s.killing)
	}
	s.typed = s.terminal.restore(s.child)
	return nil
}

// ended is the error that ends us as the command has ended.
func (s *supervisor) ended() error {
	return &exitError{code: s.child.code, signal: s.child.signalled, typed: s.typed}
}

func (s *supervisor) start(program string, argv []string) (err error) {
	cmd := &exec.Cmd{
		Path:   program,
		Args:   argv,
		Env:    s.environment(s.hold, s.more...),
		Stdin:  s.input,
		Stdout: s.stdout,
		Stderr: s.stderr,
	}
	if s.apart {
		cmd.SysProcAttr = detached()
	}
	s.child, err = startChild(cmd, s.terminal)
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
			if sig == os.Kill { // from us: it cannot be caught
				s.child.kill()
			} else {
				s.child.signal(sig)
			}
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
	return time.Until(s.plan().term(s.hold.Session().Certain()))
}

func (s *supervisor) silence() error {
	if s.away > 0 {
		return fmt.Errorf("stopped for %v, and sessions of %v do not last for so long",
			s.away.Round(time.Millisecond), s.hold.Session().Timeout())
	}
	left := time.Until(s.hold.Session().Certain()).Round(time.Millisecond)
	return fmt.Errorf("no answer from a quorum of the servers, and %v until the session is uncertain", max(0, left))
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
	s.killing = plan.kill(s.hold.Session().Certain())
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
