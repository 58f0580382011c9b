package counter

// Calls of many goroutines that leave as one write.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// op is what a call does to the value.
type op int

const (
	opAdd     op = iota // adds n
	opAddUpTo           // adds n unless the value would then be past other
	opCompare           // sets n if the value is other
	opSet               // sets n
)

// A call is one change of the value that a goroutine waits for.
type call struct {
	op       op
	n, other int64

	sess *zk.Session // under which it is on its way, or nil; guarded by the combiner's mu
	left error       // why its caller does not want it sent again, or nil; likewise
	gone bool        // its caller has returned without the outcome; likewise

	answered chan struct{} // closed by the serving goroutine when what follows is final
	result
	err error
}

// result is what a call has done.
type result struct {
	value int64 // after it
	done  bool  // whether the value was changed
}

func newCall(op op, n, other int64) *call {
	return &call{op: op, n: n, other: other, answered: make(chan struct{})}
}

// apply computes the call's result, given the value before it, or why that is unreadable. It returns the same for the
// call behind it.
func (x *call) apply(layout Layout, v int64, unreadable error) (int64, error) {
	x.result, x.err = result{value: v}, nil
	if unreadable != nil && x.op != opSet {
		x.err = unreadable
		return v, unreadable
	}
	next, fits := x.n, true
	switch x.op {
	case opAdd, opAddUpTo:
		next = v + x.n
		fits = (next > v) == (x.n > 0) || x.n == 0
		past := !fits || x.n > 0 && next > x.other || x.n < 0 && next < x.other
		if x.op == opAddUpTo && past {
			return v, nil
		}
	case opCompare:
		if v != x.other {
			return v, nil
		}
	case opSet:
	}
	if !fits || !layout.fits(next) {
		x.err = ErrOverflow
		return v, unreadable
	}
	x.result = result{value: next, done: true}
	return next, nil
}

// combiner makes one write of the calls that wait at a time. While there are calls, one goroutine serves them: it reads
// the value if need be, applies the calls to it in their order, and writes the result on condition that the node has
// not changed. If it has, nothing was done, and the calls are applied anew together with those that came meanwhile.
type combiner struct {
	reg    *register
	layout Layout

	mu       sync.Mutex         // guards what follows, and fields of calls; never held while an answer is waited for
	waiting  []*call            // that are not on their way, in their order
	callers  int                // that wait for an answer
	expected int                // as many were there before the last answers
	cancel   context.CancelFunc // ends the serving goroutine's waits when no caller is left; nil if it does not run

	// What follows belongs to the serving goroutine.

	known   content       // what the node holds, if knownAt is not zero
	knownAt time.Time     // when it held that
	took    time.Duration // of the last write
	rivals  rivals
}

// keepKnown is for how long a write relies on what the one before it has left in the node, without another read. The
// server refuses the write if the node has changed; except if the node was deleted meanwhile, created again, and
// written as often as the old one, which takes longer.
const keepKnown = 100 * time.Millisecond

// do makes the call, and waits for its result.
func (c *combiner) do(ctx context.Context, x *call) (result, error) {
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, x)
	c.callers++
	if c.cancel == nil {
		go c.serve(c.begin(ctx))
	}
	c.mu.Unlock()
	select {
	case <-x.answered:
		return x.result, x.err
	case <-ctx.Done():
		return c.leave(ctx, x)
	}
}

// leave takes a call out whose ctx has ended. If it is on its way, leave waits for the outcome instead, until the
// session ends.
func (c *combiner) leave(ctx context.Context, x *call) (result, error) {
	c.mu.Lock()
	x.left = context.Cause(ctx)
	sess := x.sess
	if i := slices.Index(c.waiting, x); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		c.lose()
		c.mu.Unlock()
		return result{}, x.left
	}
	c.mu.Unlock()
	if sess != nil { // otherwise it is being answered
		select {
		case <-x.answered:
		case <-sess.Context().Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			if x.sess != nil { // it has no answer yet
				x.gone = true
				c.lose()
				return result{}, fmt.Errorf("%w: %w", ErrUnresolved, x.left)
			}
		}
	}
	<-x.answered
	return x.result, x.err
}

// lose counts a caller less that has left. The caller holds mu.
func (c *combiner) lose() {
	if c.callers--; c.callers == 0 && c.cancel != nil {
		c.cancel()
	}
}

// serve serves calls until none waits.
func (c *combiner) serve(ctx context.Context) {
	for {
		c.round(ctx)
		c.mu.Lock()
		switch {
		case len(c.waiting) == 0:
			c.cancel()
			c.cancel = nil
			c.mu.Unlock()
			return
		case ctx.Err() != nil: // the callers had left, and others have come
			go c.serve(c.begin(ctx))
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// begin returns a context for the serving goroutine, which ends when no caller is left. It has the values of one
// caller's. The caller holds mu.
func (c *combiner) begin(ctx context.Context) context.Context {
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return ctx
}

// round makes one attempt for the calls that wait. If it fails for good, they get the error.
func (c *combiner) round(ctx context.Context) {
	sess, err := c.reg.client.Session(ctx)
	if err == nil {
		err = c.attempt(ctx, sess)
		if err == nil {
			return
		}
		c.knownAt = time.Time{}
		if sess.Context().Err() != nil { // Session returns an error if there is no next one
			return
		}
		if errors.Is(err, attempt.ErrNotDone) {
			return
		}
		err = attempt.Again(ctx, sess, err)
	}
	if err != nil && ctx.Err() == nil && (sess == nil || sess.Context().Err() == nil) {
		c.answer(c.take(nil), err)
	}
}

// take returns the calls that wait. They are then on their way under sess, and cannot be taken out.
func (c *combiner) take(sess *zk.Session) []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Those who have their answers from the last write are about to call again: with them it is one write, and without
	// them two.
	for range gatherTurns {
		if sess == nil || len(c.waiting) >= c.expected {
			break
		}
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	calls := c.waiting
	c.waiting = nil
	for _, x := range calls {
		x.sess = sess
	}
	return calls
}

// gatherTurns is how often the serving goroutine lets others run before it sends fewer calls than there were lately. It
// takes no longer than they have work.
const gatherTurns = 64

// answer ends calls: with their results, or with err if it is not nil.
func (c *combiner) answer(calls []*call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = c.callers
	for _, x := range calls {
		c.end(x, err)
	}
}

// end ends a call. The caller holds mu.
func (c *combiner) end(x *call, err error) {
	x.sess = nil
	if x.gone {
		return
	}
	if err != nil {
		x.result, x.err = result{}, err
	}
	c.callers--
	close(x.answered)
}

// requeue makes calls wait again that were not done, ahead of those that came later. It ends those whose callers want
// to leave.
func (c *combiner) requeue(calls []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := calls[:0]
	for _, x := range calls {
		if x.left != nil {
			c.end(x, x.left)
			continue
		}
		x.sess = nil
		again = append(again, x)
	}
	c.waiting = append(again, c.waiting...)
}
