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

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrEmpty is the answer of TryTake and Peek when no item is ready.
	ErrEmpty = errors.New("queue: no item is ready")
	// ErrFull is the answer to a put that would exceed Config.MaxItems.
	ErrFull = errors.New("queue: full")
	// ErrTooLarge is the answer to a put of an item that no server would accept. Nothing was sent.
	ErrTooLarge = errors.New("queue: item too large")
	// ErrClosed is the answer of a queue that is closed.
	ErrClosed = errors.New("queue: closed")
	// ErrFinished is the answer to a second Done, Fail, Return or Reject of an item, and the cause of its context
	// after the first.
	ErrFinished = errors.New("queue: the item is finished")
	// ErrClaimLost is the cause of an item's context, and the answer to Done, when other consumers may have the item:
	// another client has deleted the consumer's node, or the item itself, or the session is not certain any more.
	ErrClaimLost = errors.New("queue: the claim is lost")
	// ErrNotQueue says that the node at the path is not a queue of this package, or one of a layout that it does not
	// know.
	ErrNotQueue = errors.New("queue: not a queue")
	// ErrUnresolved says that a put may have been done, or may still be: its caller left before the answer, or it was
	// interrupted for more than an hour, after which its receipt is removed.
	ErrUnresolved = errors.New("queue: the put may have been done")
)

// Queue is a queue at a path, which must hold nothing else. It is a producer, a consumer or both, for any number of
// goroutines. Goroutines that take from one Queue share its claims. Two Queues are two consumers, even at the same
// path.
type Queue struct {
	client *zk.Client
	cfg    Config
	clock  clock
	layout layout

	receipts     *receipt.Pool
	receiptsMade atomic.Int64
	puts         atomic.Int64 // calls of PutOnce that have added something

	mu       sync.Mutex // guards what follows; never held while waiting
	known    *zk.Session
	consumer *consumer
	// abandoning is closed when the claims of a consumer whose session was uncertain are free; nil if there was none.
	abandoning <-chan struct{}
	takers     []*taker
	serving    bool
	more       bool               // serve is to claim ahead
	giveUp     context.CancelFunc // ends the current step of serve
	wakeup     chan struct{}      // one slot: serve is to look at its takers
	closed     bool
	sweeps     sync.WaitGroup  // sweeps under way
	wg         sync.WaitGroup  // other goroutines in the background
	ctx        context.Context //nolint:containedctx // the queue's life: ends with Close
	stop       context.CancelCauseFunc

	served *consumer // the consumer of serve's last step; serve's alone

	sweeping     context.Context //nolint:containedctx // ends when Close stops waiting for sweeps
	stopSweeping context.CancelCauseFunc
}

// New returns the queue at path. It asks no server: the queue creates its node and missing parents when it needs
// them. It returns an error if path is invalid, or cfg makes no sense.
func New(client *zk.Client, path string, cfg Config) (*Queue, error) {
	if client == nil {
		return nil, errors.New("queue: client must not be nil; open one with zk.Open")
	}
	if err := zk.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if path == "/" || path == "/zookeeper" {
		return nil, fmt.Errorf("queue: %s belongs to the server; use a path such as /queues/mail", path)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{client: client, cfg: cfg}
	q.layout.root = path
	store := &q.layout.store
	store.ACL, store.Packet, store.Items, store.Missing = cfg.ACL, cfg.MaxPacket, cfg.segment, q.recheckNodes
	q.receipts = q.newReceipts()
	q.wakeup = make(chan struct{}, 1)
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	q.sweeping, q.stopSweeping = context.WithCancelCause(context.Background())
	return q, nil
}

// Path returns the queue's path.
func (q *Queue) Path() string { return q.layout.root }

// Close gives back the items that were claimed and not delivered, and stops what goes on in the background. Delivered
// items stay claimed until they are finished or the session ends; they can be finished after Close. Calls that wait
// return ErrClosed. If no server can be reached before ctx ends, items go back when the session ends. Running sweeps
// of old keys and emptied segments have at most two seconds to end.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	if !first {
		return nil
	}
	q.stop(ErrClosed)
	var err error
	if !through(ctx, q.wg.Wait) { // then nothing is claimed any more
		err = context.Cause(ctx)
	}
	if co := q.current(); co != nil {
		err = errors.Join(err, co.close(ctx))
	}
	q.awaitSweeps(ctx)
	q.removeReceipts(ctx)
	if err != nil {
		return fmt.Errorf("queue: close %s: %w", q.layout.root, err)
	}
	return nil
}

func (q *Queue) current() *consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.consumer
}

// sweepWait is how long Close waits for sweeps: only space depends on them.
const sweepWait = 2 * time.Second

// awaitSweeps waits until the running sweeps have ended, and ends those that take too long.
func (q *Queue) awaitSweeps(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { q.stopSweeping(ErrClosed) })
	q.sweeps.Wait()
	stop()
	q.stopSweeping(ErrClosed)
}

// sweepAway runs f in the background unless the queue is closed, and Close waits a while for it. If f fails, a later
// sweep does its work.
func (q *Queue) sweepAway(f func(ctx context.Context, sess *zk.Session)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.sweeps.Go(func() {
		// The queue's nodes exist, or there is nothing to sweep. Queue.session would refuse once the queue is closed.
		if sess, err := q.client.Session(q.sweeping); err == nil {
			f(q.sweeping, sess)
		}
	})
}

// background runs f unless the queue is closed, and Close waits for it.
func (q *Queue) background(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.wg.Go(f)
	}
}

// session returns the live session of the client, after making sure that the queue's nodes exist.
func (q *Queue) session(ctx context.Context) (*zk.Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for {
		sess, err := q.client.Session(ctx)
		if err != nil {
			return nil, err
		}
		q.mu.Lock()
		known, closed := q.known == sess, q.closed
		q.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case known:
			return sess, nil
		}
		err = q.layout.build(ctx, sess)
		switch {
		case err == nil:
			q.mu.Lock()
			q.known = sess
			q.mu.Unlock()
			return sess, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case sess.Err() == nil && !errors.Is(err, zk.ErrConnectionLost):
			return nil, err
		}
	}
}

// recheckNodes makes the next call of session check the queue's nodes again: one of them was missing.
func (q *Queue) recheckNodes() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known = nil
}

// failed adds to err which queue it is about and, if waiting was cut short without a server in reach, why there was
// none.
func (q *Queue) failed(what string, err error) error {
	if errors.Is(err, ErrEmpty) || errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) {
		return err
	}
	last := q.client.LastError()
	if last != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("queue: %s %s: %w (no server answers: %w)", what, q.layout.root, err, last)
	}
	return fmt.Errorf("queue: %s %s: %w", what, q.layout.root, err)
}
