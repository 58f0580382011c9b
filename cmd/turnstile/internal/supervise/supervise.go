// Package supervise runs a command while a lock, a leadership or the claim of an item is held.
//
// Catch, or Until, catches the signals of this process, so that one of them can end a wait.
// Start starts the command in a process group of its own and hands it the terminal if this process has it.
// Process.Wait passes signals on, stops and continues with the command at a terminal, and when the hold is lost ends
// the command's group before another client can acquire what was held.
// Group.Run does the same for several commands at a time, without a terminal.
// Ending.Exit ends this process as its command has ended.
package supervise

// Running a command under a hold.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// OnLost is what to do with a command when its hold is lost.
type OnLost string

// What to do with the command.
const (
	Term   OnLost = "term"   // send SIGTERM, and SIGKILL after Command.Grace
	Kill   OnLost = "kill"   // send SIGKILL
	Ignore OnLost = "ignore" // let it run
)

// Hold is what a command runs under.
type Hold struct {
	Context context.Context //nolint:containedctx // ends when the hold is lost: it is what a hold is
	Session Session
}

// Session is what a supervisor must know of the session that owns a hold. A *zk.Session tells it.
type Session interface {
	Certain() time.Time     // until when no other client can have what is held
	Timeout() time.Duration // as granted by the servers
}

// Command is a command to run.
type Command struct {
	Program string   // its file
	Args    []string // the first one is the command's name
	Env     []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer

	OnLost OnLost        // Term if empty
	Grace  time.Duration // between SIGTERM and SIGKILL; at most MaxGrace

	// Lost is called when the hold is lost, with the time that the command has to end; 0 with Ignore. It must be set.
	Lost func(cause error, grace time.Duration)
	// Stopping is called before this process stops together with the command, with the time until the hold is
	// lost if nothing continues them. It must be set.
	Stopping func(left time.Duration)
}

// MaxGrace is the longest grace that a session of that timeout has room for: an eighth. A session may have no more
// than a quarter left when a server goes away, and some of that is for finding another one.
func MaxGrace(timeout time.Duration) time.Duration { return timeout / 8 }

// Result is how a command has ended, and what happened to its hold.
type Result struct {
	Ending
	Lost        error // why the hold counts as lost; nil if it does not
	Interrupted bool  // a signal that asks to end was passed on
}

// Process is a running command. Its methods are for one goroutine.
type Process struct {
	command     Command
	hold        Hold
	signals     *Signals
	terminal    *terminal // nil if there is none
	child       *child
	release     <-chan struct{} // closed to give the hold back while the process runs on; nil of our child
	interrupted bool            // a signal that asks to end was passed on
	lost        error           // why the hold counts as lost
	paused      time.Duration   // how long this process was stopped last
	killAt      time.Time       // set when the hold is lost: when the whole group must have ended
}

// Start starts a command under a hold, and from now on catches every signal that can be passed on. It returns an error
// if the command cannot be started.
func Start(c Command, hold Hold, signals *Signals) (*Process, error) {
	p := &Process{command: c, hold: hold, signals: signals, terminal: openTerminal()}
	signals.catchAll()
	if err := p.start(nil); err != nil {
		p.terminal.close()
		return nil, err
	}
	return p, nil
}

func (p *Process) start(attr *syscall.SysProcAttr) error {
	err := p.exec(p.command.Program, p.command.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without "#!": shells and execvp(3) run it with sh
		err = p.exec("/bin/sh", append([]string{"sh", p.command.Program}, p.command.Args[1:]...), attr)
	}
	return err
}

func (p *Process) exec(program string, args []string, attr *syscall.SysProcAttr) (err error) {
	p.child, err = startChild(&exec.Cmd{
		Path: program, Args: args, Env: p.command.Env, SysProcAttr: attr,
		Stdin: p.command.Stdin, Stdout: p.command.Stdout, Stderr: p.command.Stderr,
	}, p.terminal)
	return err
}

// Wait returns when the command has ended; if the hold was lost, when its whole group has. When ctx ends, the command
// gets SIGTERM.
func (p *Process) Wait(ctx context.Context) Result {
	p.loop(ctx)
	if !p.killAt.IsZero() {
		p.child.killGroup(p.killAt)
	}
	r := Result{Ending: p.child.ending, Lost: p.lost, Interrupted: p.interrupted}
	r.Typed = p.terminal.restore(p.child)
	p.terminal.close()
	return r
}

// RunsOn reports whether processes that the command has started still run after that time. The command has ended.
func (p *Process) RunsOn(after time.Duration) bool { return !p.child.groupEnded(time.Now().Add(after)) }

// loop returns when the command has ended.
func (p *Process) loop(ctx context.Context) {
	lost := p.hold.Context.Done()
	called := ctx.Done()
	silent := time.NewTimer(0) // when the servers will have been silent for too long
	defer silent.Stop()
	var kill <-chan time.Time
	for {
		select {
		case <-p.child.ended:
			return
		case sig := <-p.signals.ch:
			if p.release != nil {
				return // it is to end us: the process goes on without the hold
			}
			p.forward(sig)
		case sig := <-p.child.stopped:
			p.suspend(sig)
		case <-called:
			called, p.interrupted = nil, true
			p.child.signal(syscall.SIGTERM)
		case <-silent.C:
			if left := p.left(); left > 0 {
				silent.Reset(left)
			} else if p.lost == nil && p.command.OnLost != Ignore {
				kill = p.lose(p.silence())
			}
		case <-p.release:
			return // also if the hold is lost: the process no longer relies on it
		case <-lost:
			lost = nil
			if p.lost == nil {
				kill = p.lose(context.Cause(p.hold.Context)) //nolint:contextcheck // the hold's context, not ours
			}
		case <-kill:
			kill = nil
			p.child.kill()
		}
	}
}

// forward passes a signal on to the command.
func (p *Process) forward(sig os.Signal) {
	p.interrupted = p.interrupted || asksToEnd(sig)
	if sig == os.Kill { // from a Group: it cannot be caught
		p.child.kill()
		return
	}
	p.child.signal(sig)
}

// schedule is when a command is ended whose hold may be lost. Half of its grace is over when the session stops being
// certain that it lives. The other half is the first part of the margin, a quarter of the session timeout, after which
// another client may acquire what was held.
type schedule struct {
	grace time.Duration // between SIGTERM and SIGKILL
	spare time.Duration // for sending the signals
}

// newSchedule makes the schedule for sessions of that timeout.
func newSchedule(c *Command, timeout time.Duration) schedule {
	s := schedule{spare: timeout / 40}
	if c.OnLost != Kill && c.OnLost != Ignore {
		s.grace = min(c.Grace, MaxGrace(timeout))
	}
	return s
}

func (s schedule) kill(certain time.Time) time.Time { return certain.Add(s.grace/2 - s.spare) }
func (s schedule) term(certain time.Time) time.Time { return certain.Add(-s.grace/2 - s.spare) }

// schedule is the schedule for the timeout that the server granted at the last connect.
func (p *Process) schedule() schedule { return newSchedule(&p.command, p.hold.Session.Timeout()) }

// left is how long it is until the command must be told to end, if the servers stay silent.
func (p *Process) left() time.Duration {
	return time.Until(p.schedule().term(p.hold.Session.Certain()))
}

func (p *Process) silence() error {
	if p.paused > 0 {
		return fmt.Errorf("stopped for %v, and sessions of %v do not last for so long",
			p.paused.Round(time.Millisecond), p.hold.Session.Timeout())
	}
	left := time.Until(p.hold.Session.Certain()).Round(time.Millisecond)
	return fmt.Errorf("no answer from a quorum of the servers, and %v until the session is uncertain", max(0, left))
}

// lose does with the command what OnLost says. The returned channel tells when to kill it.
func (p *Process) lose(cause error) <-chan time.Time {
	p.lost = cause
	if p.command.OnLost == Ignore {
		p.command.Lost(cause, 0)
		return nil
	}
	now := time.Now()
	s := p.schedule()
	p.killAt = s.kill(p.hold.Session.Certain())
	if latest := now.Add(s.grace); p.killAt.After(latest) {
		p.killAt = latest
	}
	grace := p.killAt.Sub(now)
	p.command.Lost(cause, max(0, grace))
	if grace <= 0 {
		p.child.kill()
		return nil
	}
	p.child.terminate()
	return time.After(grace)
}

// tellStopping is called before this process and the command stop: nothing renews the session then, which a user of
// flock(1) does not expect.
func (p *Process) tellStopping() {
	if left := p.left(); left > 0 && p.command.OnLost != Ignore {
		p.command.Stopping(left)
	}
}
