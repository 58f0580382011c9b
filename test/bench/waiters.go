package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// waiters are one holder and n waiters of one lock, each of which has it once.
type waiters struct {
	n    int
	held chan struct{} // one value from each that has got the lock
	pass chan struct{} // lets the holder unlock; closed when all may
	done sync.WaitGroup

	mu  sync.Mutex // guards err
	err error
}

func newWaiters(n int) *waiters {
	return &waiters{n: n, held: make(chan struct{}, n+1), pass: make(chan struct{})}
}

// start lets the first one take the lock, and then starts the others. Only the server can tell when they are in line.
func (w *waiters) start(ctx context.Context, lw *lockWorker) error {
	for i := range w.n + 1 {
		l, err := lw.locker(i, lw.plan.path(0))
		if err != nil {
			return err
		}
		w.done.Go(func() { w.wait(ctx, l) })
		if i == 0 {
			<-w.held
			if err := w.failed(); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait has the lock once. It keeps its own part of the stack small, because the memory of a waiter is measured.
func (w *waiters) wait(ctx context.Context, l measure.Locker) {
	err := l.Lock(ctx)
	w.hold(ctx, l, err)
}

// hold keeps the lock until it may pass.
//
//go:noinline
func (w *waiters) hold(ctx context.Context, l measure.Locker, err error) {
	w.held <- struct{}{}
	if err == nil {
		<-w.pass
		err = errors.Join(l.Unlock(ctx), l.Finish(ctx))
	}
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = errors.Join(w.err, err)
	}
}

func (w *waiters) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// step passes the lock to the next one, which keeps it, and answers how long that took.
func (w *waiters) step() (measure.Answer, error) {
	start := time.Now()
	w.pass <- struct{}{}
	<-w.held
	return w.answer(start)
}

// drain lets all of them have it, and answers how long that took.
func (w *waiters) drain() (measure.Answer, error) {
	start := time.Now()
	close(w.pass)
	w.done.Wait()
	return w.answer(start)
}

func (w *waiters) answer(start time.Time) (measure.Answer, error) {
	return measure.Answer{Figures: []int64{time.Since(start).Nanoseconds()}}, w.failed()
}
