package supervise

// Signals to this process.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Signals receives signals of this process.
type Signals struct {
	ch   chan os.Signal
	pipe chan os.Signal // SIGPIPE, never read: once caught it does not end us when standard error is a closed pipe
	all  chan struct{}  // closed when all are caught
}

// Catch catches every signal that would end this process, except those that it was started ignoring: under nohup(1),
// SIGHUP stays ignored. The unusual ones it catches in the background: each of some 50 goes to a thread of Go's runtime
// and back, which takes two milliseconds together. The caller calls Release, unless the process is about to end.
func Catch() *Signals { return catch(ending()) }

// usual reports whether programs and people send a signal to a command like this one.
func usual(sig os.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// quit catches SIGQUIT as long as nothing else does: Go's runtime would print all goroutines, which tells a user of the
// command nothing.
var quit = struct { //nolint:gochecknoglobals // signals are the process's
	sync.Mutex     // guards catching
	catching   int // how many Signals catch
	ch         chan os.Signal
}{ch: make(chan os.Signal, 1)}

// DieOfQuit makes SIGQUIT end this process without a dump, until something catches it, and afterwards. A process calls
// it once, when it begins.
func DieOfQuit() {
	if signal.Ignored(syscall.SIGQUIT) {
		return
	}
	signal.Notify(quit.ch, syscall.SIGQUIT)
	go func() { // as long as the process
		<-quit.ch
		SignalError{syscall.SIGQUIT}.Ending().Exit()
	}()
}

// caught counts the Signals that catch.
func caught(more int) {
	quit.Lock()
	defer quit.Unlock()
	if quit.catching += more; quit.catching > 0 {
		signal.Stop(quit.ch)
	} else if !signal.Ignored(syscall.SIGQUIT) {
		signal.Notify(quit.ch, syscall.SIGQUIT)
	}
}

func catch(which []os.Signal) *Signals {
	defer caught(1) // not before ours are caught
	s := &Signals{ch: make(chan os.Signal, 64), pipe: make(chan os.Signal, 1), all: make(chan struct{})}
	which = slices.DeleteFunc(which, signal.Ignored)
	ch, all := s.ch, s.all
	notify := func(unless func(os.Signal) bool) {
		some := slices.DeleteFunc(slices.Clone(which), unless)
		if len(some) > 0 { // without any, Notify would catch all
			signal.Notify(ch, some...)
		}
	}
	notify(func(sig os.Signal) bool { return !usual(sig) })
	signal.Notify(s.pipe, syscall.SIGPIPE)
	go func() {
		defer close(all)
		notify(usual)
	}()
	return s
}

// Release stops catching signals.
func (s *Signals) Release() {
	<-s.all
	caught(-1) // before ours are let go
	signal.Stop(s.ch)
	signal.Stop(s.pipe)
}

// Until returns a context that ends with the first SIGINT, SIGTERM, SIGHUP or SIGQUIT; its cause is a SignalError. The
// caller calls stop.
func Until(ctx context.Context) (until context.Context, stop func()) {
	s := catchEnd()
	until, cancel := s.Until(ctx)
	return until, func() {
		cancel()
		s.Release()
	}
}

// catchEnd catches the signals of Until.
func catchEnd() *Signals {
	return catch([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT})
}

// sameSignal is how long after a signal another one still counts as the same: timeout(1) sends two at once.
const sameSignal = 200 * time.Millisecond

// stalled is for how many times sameSignal the output is full until its reader counts as gone. That it is read slowly
// cannot be told from that: each byte that is read makes room for one that waits.
const stalled = 10

// UntilTwice is Until, and the second signal ends this process, which may be blocked where no context reaches it. The
// first one does so if nothing reads what the process writes.
func UntilTwice(ctx context.Context) (until context.Context, stop func()) {
	s := catchEnd()
	until, cancel := s.Until(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-until.Done():
		case <-quit:
			return
		}
		first, full := time.Now(), 0
		look := time.NewTicker(sameSignal)
		defer look.Stop()
		for {
			select {
			case <-look.C:
				if full++; !outputIsFull() {
					full = 0
				}
				if full == stalled {
					AsSignal(context.Cause(until)).Ending().Exit()
				}
			case sig := <-s.ch:
				if time.Since(first) > sameSignal {
					SignalError{sig}.Ending().Exit()
				}
			case <-quit:
				return
			}
		}
	}()
	return until, func() {
		close(quit)
		<-done
		cancel()
		s.Release()
	}
}

// Until returns a context that ends with the first signal; its cause is a SignalError. After stop, which the caller
// must call, the context no longer ends with a signal, and signals are kept for the next call of a method.
func (s *Signals) Until(ctx context.Context) (until context.Context, stop func()) {
	until, cancel := context.WithCancelCause(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-s.ch:
			cancel(SignalError{sig})
		case <-quit:
		}
	}()
	return until, func() {
		close(quit)
		<-done
	}
}

// catchAll also catches the signals that do not end a process, once there is a command to pass them to.
func (s *Signals) catchAll() {
	<-s.all
	signal.Notify(s.ch, forwardable()...)
}

// AfterCommand goes back to what Catch catches after Start has caught everything for its command. It returns a signal
// that asked this process to end in the meantime, nil if none did.
func (s *Signals) AfterCommand() os.Signal {
	old := *s
	*s = *Catch() // before the release, so that no signal is missed
	old.Release()
	for {
		select {
		case sig := <-old.ch:
			if asksToEnd(sig) {
				return sig
			}
		default:
			return nil
		}
	}
}

// asksToEnd reports whether a signal asks a process to end, and cannot mean anything else to it.
func asksToEnd(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGQUIT
}

// SignalError is the cause of a context that a signal has ended.
type SignalError struct{ Signal os.Signal }

func (e SignalError) Error() string { return fmt.Sprintf("signal: %v", e.Signal) }

// Ending is how a process ends that dies of the signal.
func (e SignalError) Ending() Ending {
	if sig, ok := e.Signal.(syscall.Signal); ok {
		return endingBy(sig)
	}
	return endingBy(syscall.SIGINT)
}

// AsSignal returns the SignalError in err's chain. Any other error counts as SIGTERM.
func AsSignal(err error) SignalError {
	if s, ok := errors.AsType[SignalError](err); ok {
		return s
	}
	return SignalError{syscall.SIGTERM}
}
