package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Receipts of producers, and the removal of what they leave behind: old receipts and old keys of PutOnce.

// keepReceipts is how long a receipt may be unused before other producers remove it.
const keepReceipts = time.Hour

// receiptShards is over how many nodes receipts are spread, so that no list of them grows large.
const receiptShards = 64

// newReceipts returns the receipts of the queue's puts.
func (q *Queue) newReceipts() *receipt.Pool {
	return &receipt.Pool{
		Node: func() zk.Node {
			id := segment.NewID()
			dir := q.layout.path(dirReceipts, hex.EncodeToString([]byte{id[0] % receiptShards}))
			return q.layout.node(dir+"/"+id.String(), nil, zk.Persistent)
		},
		MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
			_, err := sess.CreateNode(ctx, q.layout.node(dir, nil, zk.Persistent))
			if errors.Is(err, zk.NodeExists) {
				return nil
			}
			q.missing(err) // then another client is removing the queue
			return err
		},
		Created: func(path string, ms int64) {
			q.clock.saw(ms)
			q.sweepReceipts(path[:len(path)-len("/")-2*len(segment.ID{})])
		},
	}
}

// sweepReceipts removes the receipts in dir of producers that are gone, in the background and now and then: many puts
// at the same time create as many receipts, and each sweep reads all of its directory. If it fails, a later sweep
// does it.
func (q *Queue) sweepReceipts(dir string) {
	if q.receiptsMade.Add(1)%sweepEvery != 1 {
		return
	}
	q.sweepAway(func(ctx context.Context, sess *zk.Session) {
		q.sweep(ctx, sess, dir, func(d *zk.Data) bool {
			return d.Stat.Mtime+keepReceipts.Milliseconds() < q.clock.now()
		})
	})
}

// removeReceipts removes the receipts that are not in use. Those that it cannot remove are swept in their time.
func (q *Queue) removeReceipts(ctx context.Context) {
	idle := q.receipts.Drain()
	if len(idle) == 0 {
		return
	}
	sess, err := q.client.Session(ctx)
	if err != nil {
		return
	}
	b := sess.Batch()
	gone := make([]*zk.Future[struct{}], len(idle))
	for i, r := range idle {
		gone[i] = b.Delete(r.Path, -1)
	}
	b.Send()
	for _, g := range gone {
		if _, err := g.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
			return
		}
	}
}

// sweep removes the old children of dir.
//
// It removes a child on condition of the version that it has seen. That would not tell a child that was deleted and
// created again; so it also sets dir's data in the same transaction, on condition that it has not changed since the
// sweep began. If the server refuses for either reason, a later sweep does the work.
func (q *Queue) sweep(ctx context.Context, sess *zk.Session, dir string, old func(*zk.Data) bool) {
	const most, name = 500, 40
	chunk := max(1, min(most, (q.cfg.MaxPacket-headroom)/(segment.OpSize+len(dir)+name)))
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
