package classic

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

func newCurator(client *zk.Client, path string, cfg Config, n naming) (consumer, error) {
	k := kind{naming: n, format: framed, lockable: true}
	d, err := newBase(client, path, attempt.Beside(path, "receipts"), cfg, k)
	return consumer{d}, err
}

// Curator is Curator's DistributedQueue: first in, first out. Its methods may be called from any goroutine.
type Curator struct{ consumer }

// NewCurator returns the queue at path. It asks no server.
func NewCurator(client *zk.Client, path string, cfg Config) (*Curator, error) {
	t, err := newCurator(client, path, cfg, curatorNames)
	if err != nil {
		return nil, err
	}
	return &Curator{t}, nil
}

// Put puts an item at the end. When it has returned nil the item is in, once. After an error it is not in, except
// that after an UnresolvedError it may be.
func (q *Curator) Put(ctx context.Context, body []byte) error { return q.PutMulti(ctx, body) }

// PutMulti puts several bodies in one node, as one item: they are taken together. Otherwise it is like Put.
func (q *Curator) PutMulti(ctx context.Context, bodies ...[]byte) error {
	return q.base.put(ctx, curatorPrefix, MarshalElements(bodies...))
}

// CuratorPriority is Curator's DistributedPriorityQueue: the smallest priority first, then first in, first out. Its
// methods may be called from any goroutine. Items that Curator has put back after an error have lost their priority
// and come first.
type CuratorPriority struct{ consumer }

// NewCuratorPriority returns the queue at path. It asks no server.
func NewCuratorPriority(client *zk.Client, path string, cfg Config) (*CuratorPriority, error) {
	t, err := newCurator(client, path, cfg, priorityNames)
	if err != nil {
		return nil, err
	}
	return &CuratorPriority{t}, nil
}

// Put puts an item behind all others of its priority. Otherwise it is like Curator.Put.
func (q *CuratorPriority) Put(ctx context.Context, priority int32, body []byte) error {
	return q.PutMulti(ctx, priority, body)
}

// PutMulti puts several bodies in one node, as one item: they are taken together. Otherwise it is like Put.
func (q *CuratorPriority) PutMulti(ctx context.Context, priority int32, bodies ...[]byte) error {
	return q.base.put(ctx, priorityPrefix(priority), MarshalElements(bodies...))
}

// CuratorDelay is Curator's DistributedDelayQueue: no item before its time, and items that are due in the order of
// their times. The consumer's clock tells the time, as in Curator. Its methods may be called from any goroutine.
type CuratorDelay struct{ consumer }

// NewCuratorDelay returns the queue at path. It asks no server.
func NewCuratorDelay(client *zk.Client, path string, cfg Config) (*CuratorDelay, error) {
	t, err := newCurator(client, path, cfg, delayNames)
	if err != nil {
		return nil, err
	}
	return &CuratorDelay{t}, nil
}

// Put puts an item that must not be taken before due, which counts in milliseconds. Otherwise it is like Curator.Put.
func (q *CuratorDelay) Put(ctx context.Context, due time.Time, body []byte) error {
	return q.PutMulti(ctx, due, body)
}

// PutMulti puts several bodies in one node, as one item: they are taken together. Otherwise it is like Put.
func (q *CuratorDelay) PutMulti(ctx context.Context, due time.Time, bodies ...[]byte) error {
	return q.base.put(ctx, delayPrefix(due), MarshalElements(bodies...))
}

// CuratorID is Curator's DistributedIdQueue: first in, first out, and items can be removed by an id. Its methods may
// be called from any goroutine.
type CuratorID struct{ consumer }

// NewCuratorID returns the queue at path. It asks no server.
func NewCuratorID(client *zk.Client, path string, cfg Config) (*CuratorID, error) {
	t, err := newCurator(client, path, cfg, idNames)
	if err != nil {
		return nil, err
	}
	return &CuratorID{t}, nil
}

// Put puts an item with an id, which other items may have, too. Slashes and bars in it count as underscores.
// Otherwise it is like Curator.Put.
func (q *CuratorID) Put(ctx context.Context, id string, body []byte) error {
	return q.base.put(ctx, idPrefix(id), MarshalElements(body))
}

// Remove removes all items with the id that no consumer is handling under a lock, and returns how many it has
// removed, also along with an error. For an item that cannot be read the error has a CorruptError, and the item stays.
// For one that may have been removed or not it has an UnresolvedError, and the item is not counted. Neither keeps the
// rest from being removed.
func (q *CuratorID) Remove(ctx context.Context, id string) (int, error) {
	removed := 0
	items, err := q.base.all(ctx)
	errs := []error{err}
	for _, e := range items {
		middle, _, ok := cutBars(e.name)
		if !ok || middle != idText(id) {
			continue
		}
		done, err := q.removeItem(ctx, e)
		if done {
			removed++
		}
		errs = append(errs, err)
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnresolved) {
			break
		}
	}
	return removed, errors.Join(errs...)
}

// removeItem reports whether it has removed the item; another consumer may have it.
func (q *CuratorID) removeItem(ctx context.Context, e entry) (done bool, err error) {
	err = q.base.run(ctx, func(sess *zk.Session) error {
		item, err := q.base.grab(ctx, sess, e)
		if err != nil || item == nil {
			return err
		}
		err = item.Done(context.WithoutCancel(ctx))
		if errors.Is(err, ErrLost) && item.sent && sess.Err() != nil {
			// The next session would not find out: if the item is gone then, another consumer may have removed it.
			return &UnresolvedError{Item: item, Err: sess.Err()}
		}
		done = err == nil
		return err
	})
	if errors.Is(err, ErrLost) { // another consumer has it
		err = nil
	}
	return done, err
}
