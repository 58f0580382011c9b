package queue

// Items, and finishing them.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Token orders the deliveries of one item: a later one has a larger token than every earlier one. It is the id of the
// transaction that claimed the item.
type Token = zk.Token

// Item is an item that was taken: no other consumer is given it while the claim holds. One of Done, Fail, Return and
// Reject finishes it. Its methods may be called from any goroutine.
type Item struct {
	co      *consumer
	lease   *lease
	seq     int
	rec     *segment.Record
	created int64
	attempt int
	begun   time.Time // when it was delivered

	mu       sync.Mutex        // guards the fields below; never held while waiting
	ctx      context.Context   //nolint:containedctx // nil until the caller asks for it
	cancel   func(cause error) // ends ctx, and its timer
	busy     bool              // it is being finished
	finished bool
	over     bool // ctx has ended with ErrFinished, or does when it is created
}

// Body returns a copy of what was put, a new one each time: changes to it do not change what Fail and Reject store.
func (it *Item) Body() []byte { return slices.Clone(it.rec.Body) }

// ID returns the id that Put returned.
func (it *Item) ID() string { return it.rec.ID.String() }

// Headers returns a copy of the headers that were put with the item, nil if there were none.
func (it *Item) Headers() map[string]string { return maps.Clone(it.rec.Headers) }

// Priority returns the item's priority.
func (it *Item) Priority() int { return it.lease.priority }

// Attempt returns which delivery of the item this is, counted from 1. After a consumer has crashed, the count may
// include a delivery that was about to happen and did not.
func (it *Item) Attempt() int { return it.attempt }

// EnqueuedAt returns when the item was put, by the server's clock.
func (it *Item) EnqueuedAt() time.Time {
	if it.rec.Enqueued > 0 {
		return time.UnixMilli(it.rec.Enqueued)
	}
	return time.UnixMilli(it.created)
}

// Group returns the item's group, "" if it has none.
func (it *Item) Group() string { return it.rec.Group }

// Failure is a failed attempt.
type Failure struct {
	At     time.Time // by the server's clock
	Reason string
}

func failures(stored []segment.Failure) []Failure {
	var list []Failure
	for _, f := range stored {
		list = append(list, Failure(f))
	}
	return list
}

// Failures returns the latest failed attempts that have a reason: those that Fail or Consume has recorded.
func (it *Item) Failures() []Failure { return failures(it.rec.Failures) }

// Token returns the delivery's token.
func (it *Item) Token() Token { return Token(it.lease.token) }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once another
// consumer has taken the claim over. Items that were claimed together share the claim, and it stays until all of them
// are finished; see Guards. Writes that belong to one item go with its Done.
func (it *Item) Guard() zk.Op { return zk.CheckOp(it.lease.path, -1) }

// Guards returns the operations to put first in a multi that must also end with the item: the server refuses the
// whole multi with zk.NoNode once another consumer has taken the claim over, and once Done, Fail, Reject, or Return
// with a delay has finished the item. It does not tell of an item that has gone back at once: such an item keeps its
// node and its place, and while other items of the claim are not finished the server refuses the multi only when the
// next consumer has finished it.
func (it *Item) Guards() []zk.Op { return []zk.Op{it.Guard(), zk.CheckOp(it.Path(), -1)} }

// Session returns the session that the claim belongs to. Guarded writes go through it.
func (it *Item) Session() *zk.Session { return it.co.sess }

// Path returns the path of the item's node.
func (it *Item) Path() string {
	return it.lease.list.Segment(it.lease.segment) + "/" + segment.ItemName(it.seq)
}

// Context returns the item's context. It ends with ErrFinished when Done has succeeded, and as soon as Fail, Return
// or Reject begins to give the item to others, whether that succeeds or not. It ends when the claim is lost: with
// ErrClaimLost and zk.ErrUncertain when no quorum of the servers has confirmed the session lately, which is before
// any of them can give the item to another consumer; with zk.ErrLost, zk.ErrExpired or zk.ErrClosed when the session
// ended; with ErrClaimLost when another client deleted the consumer's node. It also ends, with ErrTimeout, when the
// item's time limit is over, which is its Deadline. Then the claim still holds, and the item is the caller's to finish.
func (it *Item) Context() context.Context {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.ctx == nil {
		ctx, cancel := context.WithCancelCause(it.co.ctx)
		it.cancel = cancel
		if limit := it.Timeout(); limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithDeadlineCause(ctx, it.begun.Add(limit), ErrTimeout)
			it.cancel = func(cause error) {
				cancel(cause)
				stop()
			}
		}
		it.ctx = line.Bound(ctx, it.co.own)
		if it.over {
			it.cancel(ErrFinished)
		}
	}
	return it.ctx
}

// Timeout returns how long this attempt may take, counted from the delivery: the item's own limit, or that of
// Config.Timeout. It returns 0 if there is no limit.
func (it *Item) Timeout() time.Duration {
	if it.rec.Timeout > 0 {
		return time.Duration(it.rec.Timeout) * time.Millisecond
	}
	return it.co.d.cfg.Timeout
}

// Done acknowledges the item, together with other writes if there are any: either all is done, or nothing. After it
// has returned nil the item is never delivered again. If the servers refuse one of ops, it returns that refusal, with
// the index in ops in a *zk.MultiError, and the item is still the caller's.
//
// A broken connection does not make it fail: it finds out whether the item is gone before it tries again. It returns
// ErrClaimLost if the claim was lost before: then the item is, or will be, delivered to another consumer, unless the
// acknowledgement had reached the servers in the session's last moments. If ctx ends first, it returns ctx's cause
// and goes on in the background.
func (it *Item) Done(ctx context.Context, ops ...zk.Op) error {
	if len(ops) == 0 {
		return it.finish(ctx, it.acknowledge, it.tellDone)
	}
	return it.finish(ctx, func() error { return it.remove(removal{ops: ops, final: true}) }, it.tellDone)
}

// tellDone calls the hook. Ctx is that of the caller, which may have left.
func (it *Item) tellDone(ctx context.Context) {
	if hook := it.co.d.cfg.Hooks.Done; hook != nil {
		hook(context.WithoutCancel(ctx), it)
	}
}

// Fail says that this attempt has failed, and why. The item is delivered again after the time that Config.Backoff
// gives for this attempt, or that a *RetryError in reason gives, behind what has arrived by then. When
// Config.MaxAttempts have been made it goes to the dead letters instead. Fail itself fails as Done does.
func (it *Item) Fail(ctx context.Context, reason error) error {
	retry, given := errors.AsType[*RetryError](reason)
	switch {
	case !given && reason == nil:
		return it.retry(ctx, it.backoff(), "failed")
	case !given:
		return it.retry(ctx, it.backoff(), reason.Error())
	case retry.Err == nil:
		return it.retry(ctx, retry.After, "")
	}
	return it.retry(ctx, retry.After, reason.Error())
}

// backoff returns how long after a failure of this attempt the item is ready again.
func (it *Item) backoff() time.Duration {
	return max(time.Millisecond, it.co.d.cfg.Backoff.Delay(it.attempt))
}

// RetryError is a reason for Item.Fail, and an error for a handler of Consume to return. It says when the item is to
// be delivered again: return &queue.RetryError{Err: err, After: time.Minute}.
//
// If After is zero the item is ready at once, in its old place, and Err is not recorded. Places are kept for a
// thousand items that wait to be delivered again; an item that goes back beyond that arrives anew.
type RetryError struct {
	Err   error // may be nil
	After time.Duration
}

// Error returns the text of the error that it wraps.
func (e *RetryError) Error() string {
	if e.Err == nil {
		return "retry"
	}
	return e.Err.Error()
}

// Unwrap returns the error that it wraps.
func (e *RetryError) Unwrap() error { return e.Err }

// Return gives the item back as if it had not been delivered: at once and in its old place, or after delay, behind
// what has arrived by then. The attempt does not count. It is for a consumer that cannot work now, for reasons that
// are not the item's. It fails as Done does.
func (it *Item) Return(ctx context.Context, delay time.Duration) error {
	return it.again(ctx, delay, it.attempt-1, "")
}

// Reject moves the item to the dead letters, with the reason. It fails as Done does.
func (it *Item) Reject(ctx context.Context, reason string) error {
	return it.finish(ctx, func() error {
		it.endContext()
		return it.moveToDead(reason)
	}, nil)
}

func (it *Item) retry(ctx context.Context, delay time.Duration, reason string) error {
	limit := it.co.d.cfg.MaxAttempts
	if limit > 0 && it.attempt >= limit {
		text := fmt.Sprintf("%d attempts failed", it.attempt)
		if reason != "" {
			text += ", the last one: " + reason
		}
		return it.Reject(ctx, text)
	}
	return it.again(ctx, delay, it.attempt, reason)
}

// again makes the item be delivered again, with so many attempts made.
func (it *Item) again(ctx context.Context, delay time.Duration, attempts int, reason string) error {
	if delay < 0 || delay > maxDelay {
		return it.failed(fmt.Errorf("delay must be between 0 and ten years: %v", delay))
	}
	return it.finish(ctx, func() error {
		it.endContext()
		if delay < time.Millisecond && it.co.mayPutBack() {
			return it.putBack(attempts - it.rec.Attempts)
		}
		later := *it.rec
		later.Priority, later.Attempts = it.lease.priority, attempts
		later.Enqueued = it.EnqueuedAt().UnixMilli()
		later.Delay, later.Due = max(1, delay.Milliseconds()), 0
		if reason != "" {
			later.Failures = slices.Clone(later.Failures)
			later.Fail(it.co.d.clock.now(), reason)
		}
		to := func() *segment.List { return it.co.d.target(&later) }
		return it.remove(removal{to: to, data: later.Encode()})
	}, func(ctx context.Context) {
		if hook := it.co.d.cfg.Hooks.Retried; hook != nil {
			hook(context.WithoutCancel(ctx), it, delay)
		}
	})
}

// finish calls f to finish the item, unless another call does or has, and then told, unless nil. If ctx ends first, f
// goes on: it ends with the session at the latest.
func (it *Item) finish(ctx context.Context, f func() error, told func(context.Context)) error {
	if ctx.Err() != nil {
		return it.failed(context.Cause(ctx))
	}
	if !it.begin() {
		return it.failed(ErrFinished)
	}
	var err error
	if !through(ctx, func() {
		err = f()
		it.end(err)
		if err == nil && told != nil {
			told(ctx)
		}
	}) {
		return it.failed(&zk.Error{Op: "finish", Path: it.Path(), Err: context.Cause(ctx), Outcome: zk.Unknown})
	}
	return it.failed(err)
}

// through runs f, and reports whether it returned before ctx ended. If not, f goes on. The item's own context ends
// while f finishes the item, so a caller that uses it waits for f: at the end of the session f returns at the latest.
func through(ctx context.Context, f func()) bool {
	if ctx.Done() == nil {
		f()
		return true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), ErrFinished) {
		<-done
		return true
	}
	return false
}

// begin reports whether the caller may finish the item. If so, it calls end.
func (it *Item) begin() bool {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.finished || it.busy {
		return false
	}
	it.busy = true
	return true
}

func (it *Item) end(err error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.busy = false
	if err == nil || errors.Is(err, ErrClaimLost) {
		it.finished = true
		it.cancelContext(cmp.Or(err, ErrFinished))
	}
}

// cancelContext ends the item's context. The caller holds it.mu.
func (it *Item) cancelContext(cause error) {
	it.over = true
	if it.cancel != nil {
		it.cancel(cause)
	}
}

// endContext ends the item's context before a request that gives the item to others: one of them may have it before
// the answer comes.
func (it *Item) endContext() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.cancelContext(ErrFinished)
}

func (it *Item) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue: item %s of %s: %w", it.ID(), it.co.d.layout.root, err)
}

// removal says how an item is removed.
type removal struct {
	ops   []zk.Op              // the caller's, in the same transaction
	to    func() *segment.List // where data is appended; nil for nowhere
	data  []byte
	final bool // the item does not come again: the next one of its group is ready
}

// remove removes the item in one transaction with other operations, and appends data to another list, if there is
// one.
//
// The transaction checks that the claim's node exists. A consumer that takes a claim over removes that node, so a
// consumer that has lost its claim finishes nothing. Only the claim's owner removes the item's node: if it does not
// exist after an unknown outcome, the transaction was done.
func (it *Item) remove(r removal) error {
	co, path := it.co, it.Path()
	for try := 1; ; try++ {
		if err := co.err(); err != nil {
			return err
		}
		var c *segment.List
		var end segment.Tail
		var next succession
		var err error
		if r.to != nil {
			c = r.to()
			end, err = c.Find(co.ctx, co.sess)
		}
		if err == nil && r.final && it.rec.Group != "" {
			next, err = co.d.succeed(co.ctx, co.sess, it.rec.Group)
		}
		switch {
		case err == nil:
		case errors.Is(err, errAgain), it.co.d.missing(err), errors.Is(err, zk.ErrConnectionLost):
			continue
		default:
			return co.orLost(err)
		}
		p := co.d.layout.store.NewTxn()
		if c != nil {
			p.Assume(c, end)
			p.Append(c, r.data)
		}
		if err := next.append(co.ctx, co.sess, p); err != nil {
			if co.d.missing(err) || errors.Is(err, zk.ErrConnectionLost) {
				continue
			}
			return co.orLost(err)
		}
		co.marks.order.Lock()
		e := co.beginAck(c == nil, it)
		own := e.ops()
		guards := slices.Concat([]zk.Op{zk.DeleteOp(path, -1), own[0]}, r.ops, next.ops, own[1:])
		for _, op := range guards {
			p.Guard(op)
		}
		sent := co.send(p.Ops())
		co.marks.order.Unlock()
		results, err := sent.Get(co.ctx)
		if err == nil {
			p.Done(results)
			it.co.d.clock.saw(results[len(guards)-1].Stat.Mtime) // 0 unless the last guard has set something
			e.end(true)
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			e.end(false)
			it.lease.finished(1) // there is nothing left to claim
			return errItemRemoved
		case refused && errors.Is(failed, zk.NoNode) &&
			(failed.Index == 1 || failed.Index >= 2+len(r.ops)+len(next.ops) && failed.Index < len(guards)):
			e.end(false)
			co.claimRemoved()
			return co.err()
		case p.Stale(err), refused && next.changed(failed, 2+len(r.ops)):
			e.end(false)
			continue
		case refused && failed.Index >= 2 && failed.Index < 2+len(r.ops):
			e.end(false)
			return co.orLost(ofCaller(failed, 2, len(r.ops)))
		case zk.OutcomeOf(err) != zk.Unknown:
			e.end(false)
			return co.orLost(err)
		}
		there, lookErr := co.exist(path)
		if lookErr != nil {
			e.end(false)
			return co.orLost(errors.Join(err, lookErr))
		}
		e.end(!there[0].Exists)
		if !there[0].Exists {
			return nil
		}
		if try >= maxBroken && len(r.ops) > 0 {
			return fmt.Errorf("not done, and the connection broke %d times in a row; "+
				"do the servers accept a request of this size? %w", try, err)
		}
	}
}

// moveToDead moves the item to the dead letters.
func (it *Item) moveToDead(reason string) error {
	dead := *it.rec
	dead.Priority, dead.Attempts = it.lease.priority, it.attempt
	dead.Enqueued = it.EnqueuedAt().UnixMilli()
	dead.Delay, dead.Due = 0, 0
	dead.Reason = segment.Shorten(reason)
	data := dead.Encode()
	if it.rec.Priority == corrupt && len(data) > it.co.d.largest() {
		// A node that is not an item may be as large as a packet, and then no transaction could hold it. It stays
		// where it is, and is not delivered: the cursor is behind it.
		it.lease.finished(1)
		return nil
	}
	err := it.remove(removal{to: it.co.d.layout.deadLetters, data: data, final: true})
	if err == nil {
		it.co.d.died()
	}
	if hook := it.co.d.cfg.Hooks.Dead; hook != nil && err == nil {
		hook(it.co.ctx, it.ID(), reason)
	}
	return err
}

// putBack makes the item free for all, in its old place: its claim excludes it from now on, and a free claim holds
// it. That claim counts so many tries beside the attempts that the item's data counts.
func (it *Item) putBack(tries int) error {
	l, co, d := it.lease, it.co, it.co.d
	if err := l.beginWrite(co.ctx); err != nil {
		return co.orLost(err)
	}
	defer l.endWrite()
	for {
		if err := co.err(); err != nil {
			return err
		}
		d.mu.Lock()
		kept := l.claimed
		kept.Except = append(slices.Clone(kept.Except), it.seq)
		last := l.ends(1)
		free := co.freePath(place{l.priority, l.segment, it.seq})
		d.mu.Unlock()
		back := itemRange{First: it.seq, Last: it.seq, Delivered: it.seq - 1, Tries: tries}
		own := zk.SetOp(l.path, kept.encode(), -1)
		if last {
			own = zk.DeleteOp(l.path, -1)
		}
		_, err := co.sess.Multi(co.ctx, own,
			zk.CheckOp(it.Path(), -1),
			d.layout.store.CreateOp(free, back.encode()),
			zk.SetOp(l.list.Change, nil, -1))
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			co.claimRemoved()
			return co.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			l.finished(1) // there is nothing left to give back
			return errItemRemoved
		case refused && failed.Index == 3 && errors.Is(failed, zk.NoNode):
			err := l.list.Mend(co.ctx, co.sess) // another client has removed the change node
			if err != nil && !d.missing(err) && !errors.Is(err, zk.ErrConnectionLost) {
				return co.orLost(err)
			}
			continue
		case zk.OutcomeOf(err) != zk.Unknown:
			return co.orLost(err)
		default:
			// Only this consumer writes the claim's node, so it tells whether it has.
			s, there, lookErr := l.readNode(co.ctx)
			if lookErr != nil {
				return co.orLost(errors.Join(err, lookErr))
			}
			if there && !slices.Contains(s.Except, it.seq) {
				continue
			}
		}
		d.mu.Lock()
		l.claimed = kept
		l.nodeGone = l.nodeGone || last
		co.dirty = true
		d.mu.Unlock()
		l.finished(1)
		return nil
	}
}

// maxPutBack is up to how many free claims an item that is given back gets one of its own: they are listed, and a
// list must stay far smaller than a packet.
const maxPutBack = 1000

// mayPutBack reports whether one more item may have a claim of its own, and counts it.
func (co *consumer) mayPutBack() bool {
	co.d.mu.Lock()
	defer co.d.mu.Unlock()
	co.claims++
	return co.claims <= maxPutBack
}
