package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// keepReceipts is how long a receipt lies unused before others sweep it away.
const keepReceipts = time.Hour

// receiptShards is over how many nodes receipts are spread, so that no list of them grows large.
const receiptShards = 64

// receipt tells a producer what became of its puts. It is a node that only one put at a time uses: each of its transactions sets the node's
// data to a random text of its own, on condition of the node's version. So of transactions that were sent one behind the other, none is
// done unless all before it were. And whoever got no answer asks by writing himself, on the same condition: either that succeeds,
// and then none of the transactions was done nor will ever be, however late it arrives; or it is refused, and the node says which was the
// last that was done. That holds across connections and sessions, and also when the items were consumed meanwhile.
type receipt struct {
	path    string
	version int32
}

// receipts are those of a Queue that are not in use.
type receipts struct {
	q    *Queue
	made atomic.Int64

	mu   sync.Mutex // guards what follows
	idle []*receipt
}

func (r *receipts) pop() *receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.idle)
	if n == 0 {
		return nil
	}
	last := r.idle[n-1]
	r.idle = r.idle[:n-1]
	return last
}

// put takes a receipt back whose version is known for certain.
func (r *receipts) put(x *receipt) {
	if x == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, x)
}

// get returns a receipt that nobody uses, and makes one if there is none.
func (r *receipts) get(ctx context.Context, sess *zk.Session) (*receipt, error) {
	if x := r.pop(); x != nil {
		return x, nil
	}
	q := r.q
	id := newID()
	dir := q.path(dirReceipts, hex.EncodeToString([]byte{id[0] % receiptShards}))
	path := dir + "/" + hex.EncodeToString(id[:])
	for {
		// Nothing is lost if the answer is: what was made is swept in its time.
		c, err := sess.CreateNode(ctx, q.node(path, nil, zk.Persistent))
		switch {
		case err == nil:
			q.clock.saw(c.Stat.Ctime)
			r.sweep(dir)
			return &receipt{path: path}, nil
		case errors.Is(err, zk.NodeExists): // ours: the answer was lost, and nobody else has this name
			stat, err := sess.Set(ctx, path, nil, -1) // tells the servers' time, which the answer would have
			if errors.Is(err, zk.NoNode) {
				continue
			}
			if err != nil {
				return nil, err
			}
			q.clock.saw(stat.Mtime)
			return &receipt{path: path, version: stat.Version}, nil
		case errors.Is(err, zk.NoNode):
			_, err := sess.CreateNode(ctx, q.node(dir, nil, zk.Persistent))
			if errors.Is(err, zk.NoNode) {
				q.forget() // somebody removes the queue
			}
			if err != nil && !errors.Is(err, zk.NodeExists) {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// sweep removes the receipts of producers that are no more, in the background and now and then: many puts at the same
// time make as many receipts, and each sweep reads all in its part. That it fails is the next sweeper's business.
func (r *receipts) sweep(dir string) {
	if r.made.Add(1)%sweepEvery != 1 {
		return
	}
	r.q.sweepAway(func(ctx context.Context, sess *zk.Session) {
		r.q.sweep(ctx, sess, dir, func(d *zk.Data) bool {
			return d.Stat.Mtime+keepReceipts.Milliseconds() < r.q.clock.now()
		})
	})
}

// sweep removes the children of dir that are old.
//
// A child is removed on condition of the version with which it was seen. That would not tell a child that was removed and made anew; so whoever
// removes some sets dir's data in the same transaction, on condition that nobody has since dir was looked at. What is refused for either is the
// next sweeper's business.
func (q *Queue) sweep(ctx context.Context, sess *zk.Session, dir string, old func(*zk.Data) bool) {
	const most, name = 500, 40
	chunk := max(1, min(most, (q.cfg.MaxPacket-headroom)/(opSize+len(dir)+name)))
	_, at, err := sess.Get(ctx, dir)
	if err != nil {
		return
	}
	names, _, err := sess.Children(ctx, dir)
	for err == nil && len(names) > 0 {
		n := min(chunk, len(names))
		b := sess.Batch()
		looks := make([]*zk.Future[zk.Data], n)
		for i, name := range names[:n] {
			looks[i] = b.Get(dir + "/" + name)
		}
		b.Send()
		gone := []zk.Op{zk.SetOp(dir, nil, at.Version)}
		for i, look := range looks {
			d, lookErr := look.Get(ctx)
			switch {
			case lookErr == nil && d.Stat.NumChildren == 0 && old(&d):
				gone = append(gone, zk.DeleteOp(dir+"/"+names[i], d.Stat.Version))
			case lookErr != nil && !errors.Is(lookErr, zk.NoNode):
				err = lookErr
			}
		}
		if err == nil && len(gone) > 1 {
			var results []zk.Result
			if results, err = sess.Multi(ctx, gone...); err == nil {
				at = results[0].Stat
			}
		}
		names = names[n:]
	}
}

// close removes the receipts that are not in use.
func (r *receipts) close(ctx context.Context) {
	r.mu.Lock()
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	if len(idle) == 0 {
		return
	}
	sess, err := r.q.client.Session(ctx)
	if err != nil {
		return // they are swept in their time
	}
	b := sess.Batch()
	gone := make([]*zk.Future[struct{}], len(idle))
	for i, x := range idle {
		gone[i] = b.Delete(x.path, -1)
	}
	b.Send()
	for _, g := range gone {
		if _, err := g.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
			return
		}
	}
}
