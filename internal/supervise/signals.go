package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// signals is the signals that this process gets from now on.
type signals struct {
	ch      chan os.Signal
	dropped chan os.Signal // SIGPIPE: nobody reads it, but caught it does not end us when standard error is a closed pipe
}

// catchSignals catches those signals, but for those that we were born ignoring: under nohup(1) SIGHUP stays ignored.
func catchSignals(which ...os.Signal) *signals {
	s := &signals{ch: make(chan os.Signal, 64), dropped: make(chan os.Signal, 1)}
	if which = slices.DeleteFunc(which, signal.Ignored); len(which) > 0 { // Notify takes none for all
		signal.Notify(s.ch, which...)
	}
	signal.Notify(s.dropped, syscall.SIGPIPE)
	return s
}

// untilSignal returns a context that ends when a signal says that the process should, its cause a signalled.
func untilSignal(ctx context.Context) (calm context.Context, stop func()) {
	s := catchSignals(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	calm, settle := s.ending(ctx)
	return calm, func() {
		settle()
		s.release()
	}
}

// catchAll catches every signal that can be passed on, once there is a command to pass it to.
func (s *signals) catchAll() { signal.Notify(s.ch, passable()...) }

// callsOff reports whether a signal asks a process to end, and not to do something that it may have its own meaning for.
func callsOff(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGQUIT
}

// next returns to the signals that end a process, after catchAll. It returns the signal if one that asks for the end came meanwhile.
func (s *signals) next() (*signals, os.Signal) {
	next := catchSignals(ending()...) // first, so that no signal falls through
	s.release()
	for {
		select {
		case sig := <-s.ch:
			if callsOff(sig) {
				return next, sig
			}
		default:
			return next, nil
		}
	}
}

func (s *signals) release() {
	signal.Stop(s.ch)
	signal.Stop(s.dropped)
}

// ending returns a context that ends with the first signal, its cause a signalled. After settle it no longer does, and signals wait
// for who asks next.
func (s *signals) ending(ctx context.Context) (calm context.Context, settle func()) {
	calm, cancel := context.WithCancelCause(ctx)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case sig := <-s.ch:
			cancel(signalled{sig})
		case <-quit:
		}
	}()
	return calm, func() {
		close(quit)
		<-gone
	}
}

// signalled is why a wait ended: a signal came.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string { return fmt.Sprintf("signal: %v", s.sig) }

// exitCode is what a process exits with that the signal ended.
func (s signalled) exitCode() int { return ExitSignal + int(s.number()) }

// number is the signal's own type.
func (s signalled) number() syscall.Signal {
	if sig, ok := s.sig.(syscall.Signal); ok {
		return sig
	}
	return syscall.SIGINT
}

// asSignal returns the signal that an error tells of. Another reason to end counts as SIGTERM.
func asSignal(err error) signalled {
	if s, ok := errors.AsType[signalled](err); ok {
		return s
	}
	return signalled{syscall.SIGTERM}
}
