package attempt

// Receipts and their pool.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// ErrUnresolved reports that it is unknown whether a write was done, or will be.
var ErrUnresolved = errors.New("it is unknown whether the write was done")

// Receipt is a node that one caller at a time uses. Each of its transactions sets the node's data to a random stamp, on
// condition of the node's version. So of transactions that were sent one behind the other, none is done unless all
// before it were. A caller without an answer writes to the node itself, on the same condition and as often as it has
// sent transactions: if that succeeds, none of them was done nor ever will be, however late it arrives; if the server
// refuses it, the stamp in the node says which was the last that was done. That holds across connections, and across
// sessions if the node is persistent.
type Receipt struct {
	Path string

	version int32
	czxid   int64 // of the node: a version proves nothing of one that was made again
	mzxid   int64
	sess    *zk.Session // that it belongs to; nil if it is persistent
}

// Mzxid returns the transaction that had written to the receipt last when Resolve read it. After Resolve has found that
// all transactions were done, it is the last of them.
func (r *Receipt) Mzxid() int64 { return r.mzxid }

// Stamp returns the operation to put first into the next transaction, and the stamp that it writes. Ahead is how many
// transactions were sent before and have no answer yet.
func (r *Receipt) Stamp(ahead int) (zk.Op, string) {
	stamp := newStamp()
	return zk.SetOp(r.Path, []byte(stamp), r.version+int32(ahead)), stamp
}

func newStamp() string {
	stamp := make([]byte, 16)
	rand.Read(stamp) // never fails (crypto/rand, since Go 1.24)
	return string(stamp)
}

// Done records that the first transaction without an answer was done.
func (r *Receipt) Done() { r.version++ }

// Resolve finds out which transactions were done whose answers are lost, given their stamps in the order in which they
// were sent. It returns how many were, and makes sure that no other ever will be. Seen is told the server's time. It
// asks again what is refused for now, and continues under the next session.
//
// If session returns an error, or a server refuses to answer, it returns that error; if another client has deleted the
// receipt, ErrGone. The caller must not use the receipt again then: a transaction that is still under way would take
// later ones for its own.
func (r *Receipt) Resolve(
	ctx context.Context, session func(context.Context) (*zk.Session, error), stamps []string, seen func(ms int64),
) (done int, err error) {
	for tries := 0; ; tries++ {
		sess, err := session(ctx)
		if err != nil {
			return done, err
		}
		// One write for each transaction that may still arrive: then the node is past the versions that they expect,
		// all of them. With a single write the second of them would be done if it arrived late, although the first is
		// refused. If these writes get no answer they are repeated. Should they have been done, the server refuses the
		// repetition, and the receipt is empty; then the next ones, with the version of now, are done.
		ops := make([]zk.Op, len(stamps)-done)
		for i := range ops {
			ops[i] = zk.SetOp(r.Path, nil, r.version+int32(i))
		}
		results, err := sess.Multi(ctx, ops...)
		if err == nil {
			stat := results[len(results)-1].Stat
			if stat.Czxid != r.czxid {
				return done, ErrGone
			}
			r.version = stat.Version
			seen(stat.Mtime)
			return done, nil
		}
		if errors.Is(err, zk.BadVersion) {
			var stamp []byte
			stamp, err = r.read(ctx, sess)
			if err == nil {
				last := slices.IndexFunc(stamps, func(s string) bool { return bytes.Equal(stamp, []byte(s)) })
				done = max(done, 1+last)
				if done == len(stamps) {
					return done, nil
				}
				continue // those behind the one that was done may still come
			}
		}
		switch err := again(ctx, sess, err, tries); {
		case errors.Is(err, zk.NoNode):
			return done, ErrGone
		case ctx.Err() != nil:
			return done, context.Cause(ctx)
		case err != nil && sess.Err() == nil:
			return done, err
		}
	}
}

// read returns the receipt's data, and learns its version.
func (r *Receipt) read(ctx context.Context, sess *zk.Session) ([]byte, error) {
	// A server that lags behind may not know yet what the one that refused has known.
	if err := sess.Sync(ctx, r.Path); err != nil {
		return nil, err
	}
	data, stat, err := sess.Get(ctx, r.Path)
	if err == nil && stat.Czxid != r.czxid {
		return nil, ErrGone
	}
	if err == nil {
		r.version, r.mzxid = stat.Version, stat.Mzxid
	}
	return data, err
}

// Pool keeps the receipts that are not in use: as many as there were callers at once. Other clients do not notice them:
// a change of a node's data wakes no client that watches a list.
type Pool struct {
	Node    func() zk.Node // of a new receipt: no other client uses its name
	MakeDir func(ctx context.Context, sess *zk.Session, dir string) error
	Created func(path string, ms int64) // called with a new receipt and the server's time

	mu   sync.Mutex // guards idle; never held while an answer is waited for
	idle []*Receipt
}

// Get returns a receipt that is not in use. It creates one if there is none.
func (p *Pool) Get(ctx context.Context, sess *zk.Session) (*Receipt, error) {
	if r := p.Idle(sess); r != nil {
		return r, nil
	}
	return p.New(ctx, sess)
}

// Idle returns a receipt that is not in use, or nil if there is none.
func (p *Pool) Idle(sess *zk.Session) *Receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if r.sess == nil || r.sess == sess {
			return r
		}
	}
	return nil
}

// Put takes back a receipt whose version is certain. A nil receipt is ignored.
func (p *Pool) Put(r *Receipt) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, r)
}

// Drain returns all receipts that are not in use, and forgets them.
func (p *Pool) Drain() []*Receipt {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle
	p.idle = nil
	return idle
}

// New creates a receipt.
func (p *Pool) New(ctx context.Context, sess *zk.Session) (*Receipt, error) {
	node := p.Node()
	r := &Receipt{Path: node.Path}
	if node.Mode == zk.Ephemeral {
		r.sess = sess
	}
	made := func(version int32, czxid, ms int64) (*Receipt, error) {
		r.version, r.czxid = version, czxid
		p.Created(r.Path, ms)
		return r, nil
	}
	parents := 0
	for tries := 0; ; tries++ {
		c, err := sess.CreateNode(ctx, node)
		if err == nil {
			return made(0, c.Stat.Czxid, c.Stat.Ctime)
		}
		switch {
		case errors.Is(err, zk.NodeExists):
			// It is ours: the answer was lost, and no other client has this name.
			var stat zk.Stat
			stat, err = sess.Set(ctx, r.Path, nil, -1) // tells the server's time, which the answer would have told
			if err == nil {
				return made(stat.Version, stat.Czxid, stat.Mtime)
			}
			if errors.Is(err, zk.NoNode) {
				continue
			}
		case errors.Is(err, zk.NoNode):
			if parents++; parents > MaxRemakes {
				// Not wrapped: what is missing is not a node of the recipe's.
				const text = "the directory of receipts vanishes as often as it is created: %v"
				return nil, fmt.Errorf(text, err)
			}
			if err := p.MakeDir(ctx, sess, path.Dir(r.Path)); err != nil {
				return nil, err
			}
			continue
		}
		if err := again(ctx, sess, err, tries); err != nil {
			return nil, err
		}
	}
}
