// Package queue provides a queue on ZooKeeper: at least once, in order, as deep as memory allows, and as fast as one
// durable write an item.
//
//	q, err := queue.New(client, "/queues/mail", queue.Config{})
//	id, err := q.Put(ctx, queue.Message{Body: body, Priority: 5, Delay: time.Minute})
//
//	item, err := q.Take(ctx)
//	if err != nil {
//		return err
//	}
//	err = send(item.Context(), item.Body())
//	err = item.Done(ctx) // or item.Fail(ctx, err), item.Return(ctx, delay), item.Reject(ctx, reason)
//
// An item that Put has acknowledged is delivered until a consumer acknowledges it with Done, whatever crashes
// meanwhile. After Done has returned nil it is never delivered again. Between the two it may be delivered more than
// once: when its consumer crashes, and when a consumer's session ends while it works.
package queue

// Queue.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrEmpty is the answer of TryTake and Peek when no item is ready.
	ErrEmpty = errors.New("no item is ready")
	// ErrPaused is the answer of TryTake while the queue is paused. It is an ErrEmpty, too.
	ErrPaused = fmt.Errorf("%w: the queue is paused", ErrEmpty)
	// ErrLimited is the answer of TryTake while the queue has delivered as much as its rate allows. It is an ErrEmpty,
	// too.
	ErrLimited = fmt.Errorf("%w: the queue's rate allows no more now", ErrEmpty)
	// ErrFull is the answer to a put that would exceed Config.MaxItems.
	ErrFull = errors.New("the queue is full")
	// ErrTooLarge is the answer to a put of an item that no server would accept. Nothing was sent.
	ErrTooLarge = errors.New("the item is too large")
	// ErrClosed is the answer of a queue that is closed.
	ErrClosed = errors.New("the queue is closed")
	// ErrNotFound is the answer to a question for an item that is not in the queue, or no longer.
	ErrNotFound = errors.New("no such item")
	// ErrClaimed is the answer to Remove if a consumer has the item.
	ErrClaimed = errors.New("a consumer has the item")
	// ErrFinished is the answer to a second Done, Fail, Return or Reject of an item, and the cause of its context
	// after the first.
	ErrFinished = errors.New("the item is finished")
	// ErrClaimLost is the cause of an item's context, and the answer to Done, when other consumers may have the item:
	// another client has deleted the consumer's node, or the item itself, or the session is not certain any more.
	ErrClaimLost = errors.New("the claim is lost")
	// ErrTimeout is the cause of the context of an item whose time limit is over: Message.Timeout, or Config.Timeout.
	ErrTimeout = errors.New("the item's time limit is over")
	// ErrNotQueue says that the node at the path is not a queue of this package, or one of a layout that it does not
	// know.
	ErrNotQueue = errors.New("not a queue")
	// ErrUnresolved says that a put, or a Done with operations, may have been done, or may still be: the put's caller
	// left before the answer, the claim was lost before it, or the receipt was removed, which it is when a put was
	// interrupted for more than an hour.
	ErrUnresolved = errors.New("the write may have been done")
)

// Queue is a queue at a path, which must hold nothing else. It is a producer, a consumer or both, for any number of
// goroutines. Goroutines that take from one Queue share its claims. Two Queues are two consumers, even at the same
// path.
type Queue struct {
	base
	reader     reader
	producer   producer
	dispatcher dispatcher
	letters    deadLetters
	sweeper    sweeper
}

// New returns the queue at path. It asks no server: the queue creates its node and missing parents when it needs
// them. It returns an error if path is invalid, or cfg makes no sense.
func New(client *zk.Client, path string, cfg Config) (*Queue, error) {
	if err := attempt.Args("queue", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{base: base{client: client, cfg: cfg, dead: make(chan struct{}, 1)}}
	q.layout.root = path
	q.access = attempt.Access{ACL: cfg.ACL, AnyACL: cfg.AnyACL}
	store := &q.layout.store
	store.ACL, store.Packet, store.Items, store.Missing = cfg.ACL, cfg.MaxPacket, cfg.segment, q.recheckNodes
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	q.reader.base, q.sweeper.base, q.dispatcher.base = &q.base, &q.base, &q.base
	q.sweeper.sweeping, q.sweeper.stopSweeping = context.WithCancelCause(context.Background())
	q.letters = deadLetters{q.reader, &q.sweeper, &q.producer}
	q.dispatcher.sweeper = &q.sweeper
	q.producer.reader, q.producer.sweeper = q.reader, &q.sweeper
	q.producer.receipts = q.producer.newReceipts()
	q.dispatcher.receipts = q.producer.receipts
	q.dispatcher.takers = newTakers()
	return q, nil
}

// Path returns the queue's path.
func (q *Queue) Path() string { return q.layout.root }

// Close gives back the items that were claimed and not delivered, and stops what goes on in the background. Delivered
// items stay claimed until they are finished or the session ends; they can be finished after Close. Calls that wait
// return ErrClosed. If no server can be reached before ctx ends, items go back when the session ends. Running sweeps
// of old keys and emptied segments, and the removal of its receipts, have at most two seconds each.
func (q *Queue) Close(ctx context.Context) error {
	if !q.stopAll() {
		return nil
	}
	err := q.dispatcher.close(ctx)
	q.sweeper.await(ctx)
	q.producer.removeReceipts(ctx)
	if err != nil {
		return fmt.Errorf("queue: close %s: %w", q.layout.root, err)
	}
	return nil
}
