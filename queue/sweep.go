package queue

// Removing what is old or empty.

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Receipts of producers, and the removal of what they leave behind: old receipts and old keys of PutOnce.

// keepReceipts is how long a receipt may be unused before other producers remove it.
const keepReceipts = time.Hour

// receiptShards is over how many nodes receipts are spread, so that no list of them grows large.
const receiptShards = 64

// newReceipts returns the receipts of the queue's puts.
func (p *producer) newReceipts() *attempt.Pool {
	return &attempt.Pool{
		Node: func() zk.Node {
			id := segment.NewID()
			dir := p.layout.path(dirReceipts, hex.EncodeToString([]byte{id[0] % receiptShards}))
			return p.layout.node(dir+"/"+id.String(), nil, zk.Persistent)
		},
		MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
			_, err := sess.CreateNode(ctx, p.layout.node(dir, nil, zk.Persistent))
			if errors.Is(err, zk.NodeExists) {
				return nil
			}
			p.missing(err) // then another client is removing the queue
			return err
		},
		Created: func(path string, ms int64) {
			p.clock.saw(ms)
			p.sweepReceipts(path[:len(path)-len("/")-2*len(segment.ID{})])
		},
	}
}

// sweepReceipts removes the receipts in dir of producers that are gone, in the background and now and then: many puts
// at the same time create as many receipts, and each sweep reads all of its directory. If it fails, a later sweep
// does it.
func (p *producer) sweepReceipts(dir string) {
	if p.made.Add(1)%sweepEvery != 1 {
		return
	}
	p.sweeper.run(func(ctx context.Context, sess *zk.Session) {
		p.sweeper.sweep(ctx, sess, dir, func(d *zk.Data) bool {
			return d.Stat.Mtime+keepReceipts.Milliseconds() < p.clock.now()
		})
	})
}

// removeReceipts removes the receipts that are not in use, if that takes no longer than sweeps may: only space depends
// on it, and without a server it would wait for as long as ctx lives. Those that it cannot remove are swept in their
// time.
func (p *producer) removeReceipts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	idle := p.receipts.Drain()
	if len(idle) == 0 {
		return
	}
	sess, err := p.client.Session(ctx)
	if err != nil {
		return
	}
	paths := make([]string, len(idle))
	for i, r := range idle {
		paths[i] = r.Path
	}
	_ = attempt.Do(ctx, sess, func() error {
		for _, gone := range attempt.Each(sess, paths, func(b *zk.Batch, path string) *zk.Future[struct{}] {
			return b.Delete(path, -1)
		}) {
			if _, err := gone.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
				return err
			}
		}
		return nil
	})
}

// sweeper removes what is old or empty, in the background: only space depends on it.
type sweeper struct {
	*base

	sweeping     context.Context //nolint:containedctx // ends when Close stops waiting for sweeps
	stopSweeping context.CancelCauseFunc

	mu     sync.Mutex     // guards closed, and is held to start a sweep
	closed bool           // no more sweeps begin
	wg     sync.WaitGroup // sweeps under way
}

// run runs f in the background unless the queue is closed, and Close waits a while for it. If f fails, a later sweep
// does its work.
func (s *sweeper) run(f func(ctx context.Context, sess *zk.Session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.wg.Go(func() {
		// The queue's nodes exist, or there is nothing to sweep. base.session would refuse once the queue is closed.
		if sess, err := s.client.Session(s.sweeping); err == nil {
			f(s.sweeping, sess)
		}
	})
}

// sweepWait is how long Close waits for sweeps: only space depends on them.
const sweepWait = 2 * time.Second

// await waits until the running sweeps have ended, and ends those that take too long. No other begins.
func (s *sweeper) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { s.stopSweeping(ErrClosed) })
	s.wg.Wait()
	stop()
	s.stopSweeping(ErrClosed)
}

// sweep removes the old children of dir.
//
// It removes a child on condition of the version that it has seen. That would not tell a child that was deleted and
// created again; so it also sets dir's data in the same transaction, on condition that it has not changed since the
// sweep began. If the server refuses for either reason, a later sweep does the work.
func (s *sweeper) sweep(ctx context.Context, sess *zk.Session, dir string, old func(*zk.Data) bool) {
	const most, name = 500, 40
	chunk := max(1, min(most, (s.cfg.MaxPacket-headroom)/(segment.OpSize+len(dir)+name)))
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
