// Package queue is a queue on ZooKeeper: at least once, in order, as deep as memory allows, and as fast as one durable write an item.
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
// An item that Put has acknowledged is delivered until a consumer has acknowledged it with Done, whoever crashes meanwhile. After Done
// has returned nil it is never delivered again. Between the two it may be delivered more than once: when its consumer crashes, and when
// a consumer's session ends while it works.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrEmpty is TryTake's and Peek's answer when no item is ready.
	ErrEmpty = errors.New("queue: no item is ready")
	// ErrFull is the answer to a put that would exceed Config.MaxItems.
	ErrFull = errors.New("queue: full")
	// ErrTooLarge is the answer to a put of an item that no server would accept. Nothing was sent.
	ErrTooLarge = errors.New("queue: item too large")
	// ErrClosed is the answer of a queue that was closed.
	ErrClosed = errors.New("queue: closed")
	// ErrFinished is the answer to a second Done, Fail, Return or Reject of an item, and the cause of its context after
	// the first.
	ErrFinished = errors.New("queue: the item is finished")
	// ErrClaimLost is the cause of an item's context, and the answer to Done, when the item has gone to somebody else: its consumer's
	// node was deleted, or the item itself.
	ErrClaimLost = errors.New("queue: the claim is lost")
	// ErrNotQueue says that what stands at the path is not a queue of this package, or one of a layout that it does not know.
	ErrNotQueue = errors.New("queue: not a queue")
	// ErrUnresolved says that a put may have been done, or may still be: its caller has left before the answer, or it was interrupted for
	// more than an hour, after which its receipt is swept away.
	ErrUnresolved = errors.New("queue: the put may have been done")
)

// Queue is a queue at a path, which is private to it. It may be used by any number of goroutines, as producer, as consumer or as both.
// Goroutines that take from one Queue share its claims. Two Queues are two consumers, even if they have the same path.
type Queue struct {
	client *zk.Client
	root   string
	cfg    Config
	clock  clock
	store  segment.Store

	receipts     *receipt.Pool
	receiptsMade atomic.Int64
	puts         atomic.Int64 // calls of PutOnce that have added something
	buckets      atomic.Int64 // calls of bucketAt

	mu      sync.Mutex // guards what follows; never held while anything is waited for
	known   *zk.Session
	desk    *desk
	leaving <-chan struct{} // closed when the claims of a desk whose session was uncertain are free; nil if there was none
	takers  []*taker
	serving bool
	more    bool               // serve is to claim ahead
	giveUp  context.CancelFunc // ends the step of serve that is under way
	kick    chan struct{}      // one slot: serve is to look at its takers
	closed  bool
	sweeps  sync.WaitGroup  // sweeps under way
	wg      sync.WaitGroup  // what else goes on in the background
	ctx     context.Context //nolint:containedctx // the queue's life: ends with Close
	stop    context.CancelCauseFunc

	served *desk // for which serve did its last step; serve's alone

	sweeping     context.Context //nolint:containedctx // the sweeps' life: ends when Close does not wait for them any more
	stopSweeping context.CancelCauseFunc
}

// New returns the queue at path. Nothing is asked of the server yet: the path and missing parents are made when they are needed. It
// returns an error for a path that is none and for a configuration that makes no sense.
func New(client *zk.Client, path string, cfg Config) (*Queue, error) {
	if client == nil {
		return nil, errors.New("queue: no client given; open one with zk.Open")
	}
	if err := zk.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if path == "/" || path == "/zookeeper" {
		return nil, fmt.Errorf("queue: %s belongs to the server; name a path of the queue's own, such as /queues/mail", path)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{client: client, root: path, cfg: cfg}
	q.store.ACL, q.store.Packet, q.store.Items, q.store.Missing = cfg.ACL, cfg.MaxPacket, cfg.segment, q.forget
	q.receipts = q.newReceipts()
	q.kick = make(chan struct{}, 1)
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	q.sweeping, q.stopSweeping = context.WithCancelCause(context.Background())
	return q, nil
}

// Path returns the queue's path.
func (q *Queue) Path() string { return q.root }

// Close gives back what was claimed and not handed out, and stops what goes on in the background. Items that were handed out stay
// claimed until they are finished or the session ends; they can be finished after Close. Calls that wait return ErrClosed. What
// cannot be given back, because there is no server within reach before ctx ends, goes back when the session ends. Sweeps of old keys and of
// emptied segments that are under way have two seconds, at most, to end.
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
	if !through(ctx, q.wg.Wait) { // then nobody claims anything any more
		err = context.Cause(ctx)
	}
	if d := q.current(); d != nil {
		err = errors.Join(err, d.close(ctx))
	}
	q.awaitSweeps(ctx)
	q.removeReceipts(ctx)
	if err != nil {
		return fmt.Errorf("queue: close %s: %w", q.root, err)
	}
	return nil
}

func (q *Queue) current() *desk {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.desk
}

// sweepWait is for how long Close waits for sweeps: nothing depends on them but space.
const sweepWait = 2 * time.Second

// awaitSweeps waits until the sweeps that are under way have ended, and ends those that take too long.
func (q *Queue) awaitSweeps(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { q.stopSweeping(ErrClosed) })
	q.sweeps.Wait()
	stop()
	q.stopSweeping(ErrClosed)
}

// sweepAway runs f in the background unless the queue is closed, and Close waits for it a while. That f fails is the next sweeper's business.
func (q *Queue) sweepAway(f func(ctx context.Context, sess *zk.Session)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.sweeps.Go(func() {
		// The queue's nodes are there, or there is nothing to sweep. Queue.session would refuse once the queue is closed.
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

// session returns the live session of the client, with the queue's nodes there.
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
		err = q.build(ctx, sess)
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

// forget makes the next session call look at the queue's nodes again: one of them was missing.
func (q *Queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known = nil
}

// failed says of which queue err is, and, when waiting was cut short without a server in sight, why there was none.
func (q *Queue) failed(what string, err error) error {
	if errors.Is(err, ErrEmpty) || errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) {
		return err
	}
	last := q.client.LastError()
	if last != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("queue: %s %s: %w (no server answers: %w)", what, q.root, err, last)
	}
	return fmt.Errorf("queue: %s %s: %w", what, q.root, err)
}
