package verify

// One client's calls.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// callTime is how long a call may take. What has not returned by then may have been done, or may be.
const callTime = 30 * time.Second

// worker is a client in a round.
type worker struct {
	*run

	number  int
	client  *zk.Client
	counter *counter.Counter
	mutex   *lock.Mutex
	seen    int64 // the value of the counter that was seen last
}

// work makes calls until a time, or until ctx ends.
func (w *worker) work(ctx context.Context, until time.Time) {
	for w.pace.turn(ctx, until) {
		call, cancel := context.WithTimeout(ctx, callTime)
		if n := rand.IntN(10); n < 3 {
			w.hold(call, until)
		} else {
			w.count(call, n)
		}
		cancel()
	}
}

// count makes one call of the counter.
func (w *worker) count(ctx context.Context, kind int) {
	x := lincheck.CounterCall{Client: w.number, Asked: w.report.since()}
	var err error
	switch {
	case kind < 6:
		x.Op, x.N = lincheck.CounterAdd, 1+rand.Int64N(9)
		x.Value, err = w.counter.Add(ctx, x.N)
		x.OK = err == nil
	case kind < 8:
		x.Op = lincheck.CounterGet
		x.Value, err = w.counter.Get(ctx)
	default:
		x.Op, x.Other, x.N = lincheck.CounterCompare, w.seen, rand.Int64N(1000)
		x.OK, err = w.counter.CompareAndSet(ctx, x.Other, x.N)
	}
	x.Done = w.report.since()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.took(x.Op, x.Asked, x.Done)
	if err != nil {
		w.failed(ctx, x.Op, err)
		if x.Op == lincheck.CounterGet || !errors.Is(err, counter.ErrUnresolved) {
			return // nothing was done
		}
		x.Done, x.Value, x.OK = 0, 0, false
	}
	switch {
	case x.Done == 0:
	case x.Op != lincheck.CounterCompare:
		w.seen = x.Value
	case x.OK:
		w.seen = x.N
	}
	w.calls = append(w.calls, x)
}

// hold holds the lock until it is this client's turn to unlock it.
func (w *worker) hold(ctx context.Context, until time.Time) {
	asked := w.report.since()
	hold, err := w.mutex.Lock(ctx)
	got := w.report.since()
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed(ctx, callLock, err)
		return
	}
	h := lincheck.Hold{
		Client: w.number, Session: hold.Session().ID(), Token: int64(hold.Token()), Asked: asked, Got: got, Alive: got,
		Node: fmt.Sprintf("session 0x%x", uint64(hold.Session().ID())),
	}
	w.pace.turn(hold.Context(), until) //nolint:contextcheck // it also ends with the hold
	before := w.report.since()
	if hold.Context().Err() == nil {
		h.Alive = before
	}
	err = hold.UnlockWait(context.WithoutCancel(ctx))
	h.Ended = w.report.since()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.took(callLock, asked, got)
	w.report.took("unlock", before, h.Ended)
	if err != nil {
		w.report.failed("unlock", err)
	}
	w.holds = append(w.holds, h)
}
