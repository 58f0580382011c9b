package counter

// Receipts, and the removal of old ones.

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// keepReceipts is how long a receipt may be unused before other processes remove it.
	keepReceipts = time.Hour
	// sweepEvery is how many receipts are created, on average, for each sweep of their directory.
	sweepEvery = 16
	// sweepAtMost is how many receipts a sweep looks at. It is more than are created between two sweeps, so that they
	// do not pile up.
	sweepAtMost = 8 * sweepEvery
)

// receipts are the receipts of a register that are not in use.
type receipts struct {
	receipt.Pool
	dir string
}

func newReceipts(dir string, acl []zk.ACL) *receipts {
	return &receipts{dir: dir, Pool: receipt.Pool{
		Node: func() zk.Node { return zk.Node{Path: dir + "/" + line.NewGUID(), ACL: acl} },
		MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
			l := line.Line{Dir: dir, ACL: acl}
			return l.MakeDir(ctx, sess)
		},
		Created: func(string, int64) {},
	}}
}

// get returns a receipt that is not in use. If it has to create one, it now and then has old ones of other processes
// removed, in the background: only space depends on that.
func (r *receipts) get(ctx context.Context, sess *zk.Session) (*receipt.Receipt, error) {
	if rec := r.Idle(sess); rec != nil {
		return rec, nil
	}
	rec, err := r.New(ctx, sess)
	if err == nil && rand.N(sweepEvery) == 0 {
		go r.sweep(sess.Context(), sess, rec.Path) //nolint:contextcheck // it ends with the session
	}
	return rec, err
}

// sweep removes receipts that were not written to for long before fresh was created. It looks at a random part of them.
// If it fails, a later sweep does its work.
func (r *receipts) sweep(ctx context.Context, sess *zk.Session, fresh string) {
	now, _, err := sess.Exists(ctx, fresh) // the server's clock
	if err != nil {
		return
	}
	names, _, err := sess.Children(ctx, r.dir)
	if err != nil {
		return
	}
	rand.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	names = names[:min(len(names), sweepAtMost)]
	b := sess.Batch()
	seen := make([]*zk.Future[zk.Existence], len(names))
	for i, name := range names {
		seen[i] = b.Exists(r.dir + "/" + name)
	}
	b.Send()
	var gone []*zk.Future[struct{}]
	for i, s := range seen {
		node, err := s.Get(ctx)
		if err != nil {
			return
		}
		if node.Exists && node.Stat.Mtime+keepReceipts.Milliseconds() < now.Mtime {
			gone = append(gone, b.Delete(r.dir+"/"+names[i], node.Stat.Version))
		}
	}
	b.Send()
	for _, g := range gone {
		if _, err := g.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.BadVersion) {
			return
		}
	}
}
