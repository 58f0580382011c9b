package queue

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
	"github.com/seed-a3166700/turnstile/zk"
)

// Token orders the deliveries of one item: a later one has a larger token than every earlier one. It is the id of the
// transaction that claimed the item.
type Token = zk.Token

// Item is an item that was taken: this consumer works on it, and nobody else is given it while the claim holds. It is finished by one of
// Done, DoneWith, Retry, Return, Fail and Reject. Its methods may be called from any goroutine.
type Item struct {
	q       *Queue
	d       *desk
	w       *window
	seq     int
	rec     *record
	created int64
	attempt int

	mu       sync.Mutex      // guards the fields below; never held while anything is waited for
	ctx      context.Context //nolint:containedctx // nil until somebody asks for it
	cancel   context.CancelCauseFunc
	busy     bool // it is being finished
	finished bool
	over     bool // ctx has ended, or does when it is made, with ErrFinished
}

// Body returns a copy of what was put, a new one each time: what the caller does to it changes nothing of what Fail,
// Retry and Reject store.
func (it *Item) Body() []byte { return slices.Clone(it.rec.body) }

// ID returns the id that Put has returned.
func (it *Item) ID() string { return it.rec.name() }

// Headers returns a copy of the headers that were put with the item, nil if there were none.
func (it *Item) Headers() map[string]string { return maps.Clone(it.rec.headers) }

// Priority returns the item's priority.
func (it *Item) Priority() int { return it.w.priority }

// Attempt returns which delivery of the item this is, counted from 1. When a consumer crashes, an item that was about to be handed out
// there may count one that never was.
func (it *Item) Attempt() int { return it.attempt }

// EnqueuedAt returns when the item was put, by the server's clock.
func (it *Item) EnqueuedAt() time.Time {
	if it.rec.enqueued > 0 {
		return time.UnixMilli(it.rec.enqueued)
	}
	return time.UnixMilli(it.created)
}

// Failures returns the last failed attempts of which a reason is known: those that Fail and Consume have put off.
func (it *Item) Failures() []Failure { return slices.Clone(it.rec.failures) }

// Token returns the delivery's token.
func (it *Item) Token() Token { return Token(it.w.token) }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once the claim was taken over. Items
// that were claimed together share the claim, and it stays until all of them are finished; see Guards. DoneWith is for writes that belong
// to one item.
func (it *Item) Guard() zk.Op { return zk.CheckOp(it.w.path, -1) }

// Guards returns the operations to put first in a multi that also ends with the item: the server refuses the whole multi with zk.NoNode
// once the claim was taken over, and once Done, DoneWith, Fail, Reject, or Retry or Return with a delay has finished the item. What Retry or
// Return gives back at once is not told: such an item keeps its node and its place, and while other items of the claim are not finished the
// multi is refused only when the next consumer has finished it.
func (it *Item) Guards() []zk.Op { return []zk.Op{it.Guard(), zk.CheckOp(it.Path(), -1)} }

// Session returns the session that the claim belongs to. Guarded writes go through it.
func (it *Item) Session() *zk.Session { return it.d.sess }

// Path returns the path of the item's node.
func (it *Item) Path() string { return it.w.line.segment(it.w.segment) + "/" + itemName(it.seq) }

// Context returns the item's context. It ends with ErrFinished when Done has succeeded, and as soon as Retry, Return, Fail
// or Reject begins to give the item to others, whether that succeeds or not. It ends when the claim is lost: with
// ErrClaimLost and zk.ErrUncertain when no quorum of the servers has confirmed the session lately, which is before any of
// them can give the item to another consumer; with zk.ErrLost, zk.ErrExpired or zk.ErrClosed when the session ended; with
// ErrClaimLost when another client deleted the consumer's node.
func (it *Item) Context() context.Context {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.ctx == nil {
		ctx, cancel := context.WithCancelCause(it.d.ctx)
		it.ctx, it.cancel = line.Bound(ctx, it.d.own), cancel
		if it.over {
			cancel(ErrFinished)
		}
	}
	return it.ctx
}

// Done acknowledges the item. After it has returned nil the item is never delivered again.
//
// A connection that breaks does not make it fail: it finds out whether the item is gone before it tries again. It fails with ErrClaimLost
// when the claim was lost before: then the item is, or will be, delivered to somebody else, unless the acknowledgement had reached the
// servers in the session's last moments. If ctx ends first, it returns ctx's cause and goes on in the background.
func (it *Item) Done(ctx context.Context) error { return it.done(ctx, it.acknowledge) }

// DoneWith acknowledges the item and does other writes, all in one transaction: either all is done, or nothing. If one of ops is refused, it
// returns that refusal, and the item is still the caller's. Otherwise it is like Done.
func (it *Item) DoneWith(ctx context.Context, ops ...zk.Op) error {
	return it.done(ctx, func() error { return it.remove(ops, nil, nil) })
}

func (it *Item) done(ctx context.Context, f func() error) error {
	return it.finish(ctx, f, it.tellDone)
}

// tellDone calls the hook. Ctx is that of the caller, who may have left.
func (it *Item) tellDone(ctx context.Context) {
	if hook := it.q.cfg.Hooks.Done; hook != nil {
		hook(context.WithoutCancel(ctx), it)
	}
}

// Retry gives the item back to be delivered again: at once and in its old place, or after delay, by the servers' clock, behind what has
// arrived by then. When Config.MaxAttempts have been made it goes to the dead letters instead. It fails as Done does.
//
// Places are kept for a thousand items that wait to be delivered again; what is given back beyond that arrives anew.
func (it *Item) Retry(ctx context.Context, delay time.Duration) error {
	return it.retry(ctx, delay, "")
}

// Return gives the item back as if it had not been delivered: at once and in its old place, or after delay, as Retry does; but the attempt does
// not count, and the item does not go to the dead letters. It is for a consumer that finds that it cannot work now, for reasons that are not
// the item's. It fails as Done does.
func (it *Item) Return(ctx context.Context, delay time.Duration) error {
	return it.again(ctx, delay, it.attempt-1, "")
}

// Fail gives the item back to be delivered again after the time that Config.Backoff says for this attempt, and remembers why. When
// Config.MaxAttempts have been made it goes to the dead letters instead. It fails as Done does.
func (it *Item) Fail(ctx context.Context, reason error) error {
	text := "failed"
	if reason != nil {
		text = reason.Error()
	}
	return it.retry(ctx, max(time.Millisecond, it.q.cfg.Backoff.Delay(it.attempt)), text)
}

// Reject moves the item to the dead letters, with the reason. It fails as Done does.
func (it *Item) Reject(ctx context.Context, reason string) error {
	return it.finish(ctx, func() error {
		it.part()
		return it.bury(reason)
	}, nil)
}

func (it *Item) retry(ctx context.Context, delay time.Duration, reason string) error {
	limit := it.q.cfg.MaxAttempts
	if limit > 0 && it.attempt >= limit {
		text := fmt.Sprintf("%d attempts failed", it.attempt)
		if reason != "" {
			text += ", the last one: " + reason
		}
		return it.Reject(ctx, text)
	}
	return it.again(ctx, delay, it.attempt, reason)
}

// again has the item delivered again, with so many attempts made.
func (it *Item) again(ctx context.Context, delay time.Duration, attempts int, reason string) error {
	if delay < 0 || delay > maxDelay {
		return it.q.failed("retry", fmt.Errorf("delay %v is not between 0 and ten years", delay))
	}
	return it.finish(ctx, func() error {
		it.part()
		if delay < time.Millisecond && it.d.mayPutBack() {
			return it.putBack(attempts - it.rec.attempts)
		}
		later := *it.rec
		later.priority, later.attempts = it.w.priority, attempts
		later.enqueued = it.EnqueuedAt().UnixMilli()
		later.delay, later.due = max(1, delay.Milliseconds()), 0
		if reason != "" {
			later.failures = slices.Clone(later.failures)
			later.fail(it.q.clock.now(), reason)
		}
		return it.remove(nil, func() *chain { return it.q.target(&later) }, later.encode())
	}, func(ctx context.Context) {
		if hook := it.q.cfg.Hooks.Retried; hook != nil {
			hook(context.WithoutCancel(ctx), it, delay)
		}
	})
}

// finish lets f finish the item, once, and calls told, unless nil, if it has. f goes on if ctx ends first: it ends with the session at the latest.
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

// through runs f, and reports whether it has returned before ctx ended. It goes on if it has not.
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
		return false
	}
}

// begin reports whether the caller is the one to finish the item. Then he calls end.
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
		it.tell(cmp.Or(err, ErrFinished))
	}
}

// tell ends the item's context. The caller has locked.
func (it *Item) tell(cause error) {
	it.over = true
	if it.cancel != nil {
		it.cancel(cause)
	}
}

// part ends the item's context before a request that gives the item to others: one of them may have it before the answer is here.
func (it *Item) part() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.tell(ErrFinished)
}

func (it *Item) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue: item %s of %s: %w", it.ID(), it.q.root, err)
}

// remove removes the item in one transaction with other operations, and puts what became of it into another chain, if there is one.
//
// The transaction checks that the claim's node is there. Whoever takes a claim over removes that node, so that nothing is finished by one
// who has lost it. Of the item's node nobody but the claim's owner decides: if it is not there any more after an unknown outcome, then
// the transaction was done.
func (it *Item) remove(ops []zk.Op, to func() *chain, data []byte) error {
	d, path := it.d, it.Path()
	for try := 1; ; try++ {
		if err := d.err(); err != nil {
			return err
		}
		var c *chain
		var end tail
		if to != nil {
			c = to()
			var err error
			end, err = c.find(d.ctx, d.sess)
			switch {
			case err == nil:
			case it.q.missing(err), errors.Is(err, zk.ErrConnectionLost):
				continue
			default:
				return d.orLost(err)
			}
		}
		d.order.Lock()
		e := d.book(c == nil, it)
		own := e.ops()
		guards := slices.Concat([]zk.Op{zk.DeleteOp(path, -1), own[0]}, ops, own[1:])
		p := it.q.newPlan(guards...)
		if c != nil {
			p.tails[c] = end
			p.append(c, data)
			p.ring()
		}
		sent := d.send(p.ops)
		d.order.Unlock()
		results, err := sent.Get(d.ctx)
		if err == nil {
			p.done(results)
			it.q.clock.saw(results[len(guards)-1].Stat.Mtime) // 0 unless the last guard has set something
			e.close(true)
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			e.close(false)
			it.w.left(1) // there is nothing left to claim
			return errItemRemoved
		case refused && errors.Is(failed, zk.NoNode) && (failed.Index == 1 || failed.Index >= 2+len(ops) && failed.Index < len(guards)):
			e.close(false)
			d.claimRemoved()
			return d.err()
		case p.stale(err):
			e.close(false)
			continue
		case zk.OutcomeOf(err) != zk.Unknown:
			e.close(false)
			return d.orLost(err)
		}
		there, lookErr := d.look(path)
		if lookErr != nil {
			e.close(false)
			return d.orLost(errors.Join(err, lookErr))
		}
		e.close(!there[0].Exists)
		if !there[0].Exists {
			return nil
		}
		if try >= maxBroken && len(ops) > 0 {
			return fmt.Errorf("not done, and the connection broke %d times in a row; do the servers accept a request of this size? %w", try, err)
		}
	}
}

// bury moves the item to the dead letters.
func (it *Item) bury(reason string) error {
	dead := *it.rec
	dead.priority, dead.attempts = it.w.priority, it.attempt
	dead.enqueued = it.EnqueuedAt().UnixMilli()
	dead.delay, dead.due = 0, 0
	dead.reason = cut(reason, maxReason)
	data := dead.encode()
	if it.rec.priority == corrupt && len(data) > it.q.largest() {
		// What is no item may be as large as a packet, and no transaction could hold it. It stays where it is, and
		// nobody is given it: the line's cursor is behind it.
		it.w.left(1)
		return nil
	}
	err := it.remove(nil, it.q.graveyard, data)
	if hook := it.q.cfg.Hooks.Dead; hook != nil && err == nil {
		hook(it.d.ctx, it.ID(), reason)
	}
	return err
}

// putBack makes the item free for all, in its old place: the claim does not count it any more, and a claim that nobody owns does. That
// claim counts so many tries beside the attempts that the item's data counts.
func (it *Item) putBack(tries int) error {
	w, d, q := it.w, it.d, it.q
	if err := w.write(d.ctx); err != nil {
		return d.orLost(err)
	}
	defer w.written()
	for {
		if err := d.err(); err != nil {
			return err
		}
		q.mu.Lock()
		kept := w.span
		kept.Except = append(slices.Clone(kept.Except), it.seq)
		last := w.ends(1)
		free := d.freePath(place{w.priority, w.segment, it.seq})
		q.mu.Unlock()
		back := span{First: it.seq, Last: it.seq, Handed: it.seq - 1, Tries: tries}
		own := zk.SetOp(w.path, kept.encode(), -1)
		if last {
			own = zk.DeleteOp(w.path, -1)
		}
		_, err := d.sess.Multi(d.ctx, own,
			zk.CheckOp(it.Path(), -1),
			q.create(free, back.encode(), zk.Persistent),
			zk.SetOp(w.line.bell, nil, -1))
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
		case refused && failed.Index == 0 && errors.Is(failed, zk.NoNode):
			d.claimRemoved()
			return d.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			w.left(1) // there is nothing left to give back
			return errItemRemoved
		case refused && failed.Index == 3 && errors.Is(failed, zk.NoNode):
			err := w.line.mend(d.ctx, d.sess) // somebody has removed the bell
			if err != nil && !q.missing(err) && !errors.Is(err, zk.ErrConnectionLost) {
				return d.orLost(err)
			}
			continue
		case zk.OutcomeOf(err) != zk.Unknown:
			return d.orLost(err)
		default:
			// Only we write the claim's node, so it tells whether we have.
			s, there, lookErr := w.look(d.ctx)
			if lookErr != nil {
				return d.orLost(errors.Join(err, lookErr))
			}
			if there && !slices.Contains(s.Except, it.seq) {
				continue
			}
		}
		q.mu.Lock()
		w.span = kept
		w.settled = w.settled || last
		d.dirty = true
		q.mu.Unlock()
		w.left(1)
		return nil
	}
}

// maxPutBack is how many claims there may be for an item that is given back to have one of its own: they are listed, and a list must stay
// far smaller than a packet.
const maxPutBack = 1000

// mayPutBack reports whether one more item may have a claim of its own, and counts it.
func (d *desk) mayPutBack() bool {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	d.claims++
	return d.claims <= maxPutBack
}
