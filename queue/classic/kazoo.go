package classic

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// DefaultPriority is the default priority of kazoo's items.
const DefaultPriority = 100

const maxPriority = 999

func checkPriority(priority int) error {
	if priority < 0 || priority > maxPriority {
		return fmt.Errorf("classic: %w: priority %d, want 0 to %d", zk.BadArguments, priority, maxPriority)
	}
	return nil
}

// Kazoo is kazoo's Queue: the smallest priority first, then first in, first out, and removed when taken. Its methods
// may be called from any goroutine. It leaves foreign nodes alone, where kazoo takes them.
type Kazoo struct{ consumer }

// NewKazoo returns the queue at path. It asks no server.
func NewKazoo(client *zk.Client, path string, cfg Config) (*Kazoo, error) {
	d, err := newBase(client, path, attempt.Beside(path, "receipts"), cfg, kind{naming: kazooNames, format: plain})
	if err != nil {
		return nil, err
	}
	return &Kazoo{consumer{d}}, nil
}

// Put puts an item behind all others of its priority, which is from 0 to 999. When it has returned nil the item is
// in, once. After an error it is not in, except that after an UnresolvedError it may be.
func (q *Kazoo) Put(ctx context.Context, value []byte, priority int) error {
	if err := checkPriority(priority); err != nil {
		return err
	}
	return q.base.put(ctx, kazooName(priority), value)
}

// Get takes the first item; false if there is none.
func (q *Kazoo) Get(ctx context.Context) ([]byte, bool, error) {
	return orNone(bodyOf(q.base.take(ctx, false)))
}

// KazooLocking is kazoo's LockingQueue: the smallest priority first, then first in, first out; an item is locked when
// it is taken and removed when it is done. Its methods may be called from any goroutine; unlike kazoo's object, one
// of these may have any number of items taken at a time.
type KazooLocking struct{ consumer }

// NewKazooLocking returns the queue at path. It asks no server.
func NewKazooLocking(client *zk.Client, path string, cfg Config) (*KazooLocking, error) {
	if cfg.LockPath != "" {
		const text = "classic: %w: kazoo's locks are below the queue's path; leave LockPath empty"
		return nil, fmt.Errorf(text, zk.BadArguments)
	}
	cfg.LockPath = path + "/taken"
	if err := attempt.Args("classic", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	receipts := attempt.Join(path, attempt.Mark("receipts"))
	d, err := newBase(client, path+"/entries", receipts, cfg, kind{naming: kazooNames, format: plain, lockable: true})
	if err != nil {
		return nil, err
	}
	return &KazooLocking{consumer{d}}, nil
}

// Put puts an item behind all others of its priority, which is from 0 to 999. When it has returned nil the item is
// in, once. After an error it is not in, except that after an UnresolvedError it may be.
func (q *KazooLocking) Put(ctx context.Context, value []byte, priority int) error {
	return q.PutAll(ctx, [][]byte{value}, priority)
}

// PutAll puts several items, all or none. Otherwise it is like Put.
func (q *KazooLocking) PutAll(ctx context.Context, values [][]byte, priority int) error {
	if err := checkPriority(priority); err != nil {
		return err
	}
	if len(values) == 0 {
		return nil
	}
	return q.base.put(ctx, kazooName(priority), values...)
}
