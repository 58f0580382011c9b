package classic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// base is what all queues here have in common: a directory of items and perhaps one of locks.
type base struct {
	kind

	client   *zk.Client
	dir      string // of the items
	locks    string // of their locks; "" if items are removed when they are taken
	cfg      Config
	access   attempt.Access
	own      []string // the directories
	receipts *receipts

	turn  chan *snapshot // holds the snapshot; the goroutine that takes it out looks for items
	stale atomic.Bool    // an item that was taken out of the snapshot is still in the queue

	mu     sync.Mutex      // guards broken
	broken map[string]bool // items that cannot be read, and that a caller was told of
}

// run is attempt.Run for what has no result.
func (d *base) run(ctx context.Context, try func(*zk.Session) error) error {
	_, err := attempt.Run(ctx, d.client, func(sess *zk.Session) (none struct{}, err error) {
		if err = d.access.Check(ctx, sess, d.own...); err == nil {
			err = try(sess)
		}
		return none, err
	})
	return d.failed(attempt.Explain(d.client, err))
}

// failed says of which queue an error is.
func (d *base) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("classic: %s: %w", d.dir, err)
}

// put creates nodes, all or none, each with a name that begins with prefix.
func (d *base) put(ctx context.Context, prefix string, nodes ...[]byte) error {
	size := overhead + len(nodes)*(len(d.dir)+len(prefix)+100)
	ops := make([]zk.Op, len(nodes))
	for i, data := range nodes {
		size += len(data)
		ops[i] = zk.CreateNodeOp(zk.Node{
			Path: d.dir + "/" + prefix, Data: data, Mode: zk.PersistentSequential, ACL: d.cfg.ACL,
		})
	}
	if size > d.cfg.MaxPacket {
		const text = "%w: the request would have %d bytes, the limit is %d (Config.MaxPacket)"
		return d.failed(fmt.Errorf(text, ErrTooLarge, size, d.cfg.MaxPacket))
	}
	return d.run(ctx, func(sess *zk.Session) error {
		for tries := 0; ; tries++ {
			_, err := d.receipts.do(ctx, sess, nil, ops...)
			if !errors.Is(err, zk.NoNode) {
				return err
			}
			if tries == maxTries {
				return attempt.Vanishes(d.dir+"/"+prefix, err)
			}
			// The directory never existed, or it is a container of Curator's that the server has removed
			// (CURATOR-308).
			if err := d.makeDir(ctx, sess, d.dir); err != nil {
				return err
			}
		}
	})
}

// makeDir creates the directory of the items or of the locks, as a node that stays: kazoo does not notice that it has
// gone, and of two consumers or producers of ZooKeeper's own queue that do notice one fails, because both create it.
func (d *base) makeDir(ctx context.Context, sess *zk.Session, dir string) error {
	return attempt.Dirs{Keep: attempt.Forever, ACL: d.cfg.ACL, AnyACL: d.cfg.AnyACL}.Make(ctx, sess, dir)
}

// take takes the first item. If there is none it waits, or returns ErrEmpty at once.
func (d *base) take(ctx context.Context, wait bool) (*Item, error) {
	var item *Item
	err := d.run(ctx, func(sess *zk.Session) error {
		for item == nil {
			e, err := d.next(ctx, sess, wait)
			if err != nil {
				return err
			}
			if item, err = d.grab(ctx, sess, e); err != nil {
				d.stale.Store(true) // the item may still exist, and no other goroutine here would look at it soon
				return err
			}
		}
		return nil
	})
	return item, err
}

// grab takes an item. It returns nil if another consumer has it by now.
func (d *base) grab(ctx context.Context, sess *zk.Session, e entry) (*Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d.locks == "" {
		return d.remove(ctx, sess, e)
	}
	return d.claim(ctx, sess, e)
}

// remove takes an item by removing it, in the version that was read. A client that removes a node has it alone: a
// server executes one of the deletions, and if the reply is lost our receipt says whether it was ours.
func (d *base) remove(ctx context.Context, sess *zk.Session, e entry) (*Item, error) {
	item := &Item{base: d, sess: sess, entry: e}
	data, stat, err := sess.Get(ctx, item.path())
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := item.read(data); err != nil {
		return nil, err
	}
	_, err = d.receipts.do(ctx, sess, nil, zk.DeleteOp(item.path(), stat.Version))
	unresolved, open := errors.AsType[*UnresolvedError](err)
	switch {
	case err == nil:
		return item, nil
	case open:
		unresolved.Item = item
		return nil, unresolved
	case errors.Is(err, zk.NoNode):
		return nil, nil
	case errors.Is(err, zk.BadVersion): // another client has changed it meanwhile
		d.stale.Store(true)
		return nil, nil
	default:
		return nil, err
	}
}

// all lists the queue's own nodes, in order, locked or not.
func (d *base) all(ctx context.Context) ([]entry, error) {
	var w snapshot
	err := d.run(ctx, func(sess *zk.Session) error {
		open := &base{kind: d.kind, dir: d.dir} // without locks and broken items
		return open.list(ctx, sess, &w, nil)
	})
	return w.ready, err
}

// passedOver returns which of names are broken, and forgets those that are gone.
func (d *base) passedOver(names []string) map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.broken) == 0 {
		return nil
	}
	still := map[string]bool{}
	for _, name := range names {
		if d.broken[name] {
			still[name] = true
		}
	}
	d.broken = still
	return still
}

func (d *base) passOver(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	still := map[string]bool{name: true}
	for n := range d.broken {
		still[n] = true
	}
	d.broken = still // a new map: lists that are being made have the old one
}
