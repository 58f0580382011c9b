package supervise

// Several commands at a time.

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
)

// ErrStopping is returned by Group.Run after a signal that asked this process to end.
var ErrStopping = errors.New("this process is to end")

// Group runs several commands at the same time, each in a session of its own and without a terminal, and passes the
// signals of this process on to all of them. The second signal that asks to end kills them. A Group may be used by
// several goroutines.
type Group struct {
	finish   bool
	stopping func(sig os.Signal, running int)
	signals  *Signals
	terminal *terminal // nil if there is none
	quit     chan struct{}
	handler  sync.WaitGroup

	// Starts hold it shared. A stop at the terminal holds it alone: a process that has been forked and is not yet among
	// started would run on.
	starting sync.RWMutex

	mu      sync.Mutex        // guards what follows
	started map[*Process]bool // the commands: false until it has been started
	asked   os.Signal         // the first signal that asked this process to end; nil if none did
	killed  bool              // the second one came
}

// NewGroup returns a group without commands, which catches signals until Close. At the first signal that asks this
// process to end it calls stopping, with the number of commands that run. If finish is set this signal is not passed
// on, and the commands run to their end.
func NewGroup(finish bool, stopping func(sig os.Signal, running int)) *Group {
	g := &Group{
		finish: finish, stopping: stopping, signals: Catch(), terminal: openTerminal(),
		quit: make(chan struct{}), started: make(map[*Process]bool),
	}
	g.terminal.catchStop(g.signals)
	g.handler.Go(g.handleSignals)
	return g
}

// Close stops catching signals. No command runs.
func (g *Group) Close() {
	close(g.quit)
	g.handler.Wait()
	g.signals.Release()
	g.terminal.close()
}

// Run runs a command under a hold, and returns when it has ended. It returns ErrStopping if a signal has asked this
// process to end, or another error if the command cannot be started.
func (g *Group) Run(ctx context.Context, c Command, hold Hold) (Result, error) {
	p := &Process{command: c, hold: hold, signals: &Signals{ch: make(chan os.Signal, 64)}}
	if !g.add(p) {
		return Result{}, ErrStopping
	}
	defer g.locked(func() { delete(g.started, p) })
	if err := g.start(p); err != nil {
		return Result{}, err
	}
	r := p.Wait(ctx)
	g.locked(func() { r.Interrupted = r.Interrupted || g.asked != nil && !g.finish || g.killed })
	return r, nil
}

// Asked returns the first signal that asked this process to end, nil if none did, and whether a second one came.
func (g *Group) Asked() (sig os.Signal, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked, g.killed
}

// add lets a command receive the signals that come from now on; they wait until it has been started. It returns false
// if this process is to end.
func (g *Group) add(p *Process) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked != nil {
		return false
	}
	g.started[p] = false
	return true
}

func (g *Group) start(p *Process) error {
	g.starting.RLock()
	defer g.starting.RUnlock()
	if err := p.start(ownSession()); err != nil {
		return err
	}
	g.locked(func() { g.started[p] = true })
	return nil
}

func (g *Group) locked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func (g *Group) handleSignals() {
	for {
		select {
		case <-g.quit:
			return
		case sig := <-g.signals.ch:
			g.handle(sig)
		}
	}
}

func (g *Group) handle(sig os.Signal) {
	if g.terminal.isStop(sig) {
		g.starting.Lock()
		defer g.starting.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	ends := asksToEnd(sig) || sig == syscall.SIGHUP
	switch {
	case ends && g.asked == nil:
		g.asked = sig
		g.stopping(sig, len(g.started))
		if g.finish {
			return
		}
	case ends:
		g.killed = true
		sig = os.Kill
	case g.terminal.isStop(sig):
		g.terminal.suspendGroup(g.signals, g.started)
		return
	}
	for p := range g.started {
		select {
		case p.signals.ch <- sig:
		default: // it has not yet handled the last 64
		}
	}
}
