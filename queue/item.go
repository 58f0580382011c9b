package queue

// Items, and what they tell.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Token orders the deliveries of one item: a later one has a larger token than every earlier one. It is the id of the
// transaction that claimed the item.
type Token = zk.Token

// Item is an item that was taken: no other consumer is given it while the claim holds. One of Done, Fail, Return and
// Reject finishes it. Its methods may be called from any goroutine.
type Item struct {
	co      *consumer
	lease   *claims.Lease
	seq     int
	rec     *segment.Record
	created int64
	attempt int
	begun   time.Time // when it was delivered

	mu       sync.Mutex        // guards the fields below; never held while waiting
	ctx      context.Context   //nolint:containedctx // nil until the caller asks for it
	cancel   func(cause error) // ends ctx, and its timer
	busy     chan struct{}     // it is being finished, until this is closed; nil if it is not
	settling time.Time         // when the last call that was to finish it has begun to
	finished bool
	ended    bool // the hook Ended was told, or is about to be
	over     bool // ctx has ended with ErrFinished, or does when it is created
}

var _ zk.Held = (*Item)(nil)

// Body returns a copy of what was put, a new one each time: changes to it do not change what Fail and Reject store.
func (it *Item) Body() []byte { return slices.Clone(it.rec.Body) }

// ID returns the id that Put returned.
func (it *Item) ID() string { return it.rec.ID.String() }

// Headers returns a copy of the headers that were put with the item, nil if there were none.
func (it *Item) Headers() map[string]string { return maps.Clone(it.rec.Headers) }

// Queue returns the path of the item's queue.
func (it *Item) Queue() string { return it.co.q.layout.root }

// Priority returns the item's priority.
func (it *Item) Priority() int { return it.lease.Priority }

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
func (it *Item) Token() Token { return Token(it.lease.Token) }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once another
// consumer has taken the claim over. Items that were claimed together share the claim, and it stays until all of them
// are finished; see Guards. Writes that belong to one item go with its Done.
func (it *Item) Guard() zk.Op { return zk.CheckOp(it.lease.Path, -1) }

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
	return it.lease.List.Segment(it.lease.Segment) + "/" + segment.ItemName(it.seq)
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
	return it.co.q.cfg.Timeout
}
