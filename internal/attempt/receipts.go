package attempt

// The receipts of writes to one node.

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Receipts tell what became of writes to one node that lasts. They are persistent nodes below that node, in
// directories by the minute of their creation, so that no list of them grows large:
//
//	NODE/__receipts__/MINUTE/GUID
//
// So the node's rights guard them, who deletes the node deletes them, and no other recipe's node has their names. They
// also keep the node: should it be a container that another recipe has made, it has a child as long as it is used.
//
// A client that may not create below the node does without: a lost reply is ErrUnresolved then. A receipt that was not
// used for an hour may be removed by other clients.
type Receipts struct {
	Pool
	node string
	acl  []zk.ACL

	mu     sync.Mutex  // guards denied; never held while an answer is waited for
	denied *zk.Session // may not create receipts
}

const (
	// keepReceipts is how long a receipt may be unused before other clients remove it.
	keepReceipts = time.Hour
	// sweepEvery is how many receipts are created, on average, for each sweep.
	sweepEvery = 16
	// sweptMinutes and sweptReceipts bound what a sweep looks at. It is more than is created between two sweeps, so
	// that nothing piles up.
	sweptMinutes, sweptReceipts = 8 * sweepEvery, 4096
)

// NewReceipts returns the receipts of the writes to node. Acl is that of the node; nil is open.
func NewReceipts(node string, acl []zk.ACL) *Receipts {
	r := &Receipts{node: node, acl: acl}
	r.Pool = Pool{Node: r.fresh, MakeDir: r.makeDir, Created: func(string, int64) {}}
	return r
}

func (r *Receipts) dir() string { return Join(r.node, Mark("receipts")) }

// fresh returns a new receipt's node. Clients whose clocks differ use different directories, which does no harm.
func (r *Receipts) fresh() zk.Node {
	minute := strconv.FormatInt(time.Now().Unix()/60, 10)
	return zk.Node{Path: r.dir() + "/" + minute + "/" + NewGUID(), ACL: r.acl}
}

// makeDir makes the directory of a minute. It returns NoNode if the node is missing.
func (r *Receipts) makeDir(ctx context.Context, sess *zk.Session, dir string) error {
	for _, d := range []string{r.dir(), dir} {
		err := Do(ctx, sess, func() error {
			_, err := sess.CreateNode(ctx, zk.Node{Path: d, ACL: r.acl})
			return err
		})
		if err != nil && !errors.Is(err, zk.NodeExists) {
			return err
		}
	}
	return nil
}

// Get returns a receipt that is not in use, or nil if the client may not have one. If it has to create one, it now and
// then has old ones of other clients removed, in the background: only space depends on that. It returns NoNode if the
// node is missing.
func (r *Receipts) Get(ctx context.Context, sess *zk.Session) (*Receipt, error) {
	if rec := r.Idle(sess); rec != nil || r.mayNot(sess) {
		return rec, nil
	}
	rec, err := r.New(ctx, sess)
	switch {
	case errors.Is(err, zk.NoAuth):
		return nil, r.doWithout(ctx, sess)
	case err == nil && rand.N(sweepEvery) == 0:
		go r.sweep(sess.Context(), sess, rec.Path) //nolint:contextcheck // it ends with the session
	}
	return rec, err
}

func (r *Receipts) mayNot(sess *zk.Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied == sess
}

// doWithout notes that sess may not create receipts. A node that has had children may be a container, which servers
// remove with the state in it when the last child goes; then nothing is to be written to it that lasts.
func (r *Receipts) doWithout(ctx context.Context, sess *zk.Session) error {
	if err := mayLast(ctx, sess, r.node); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = sess
	return nil
}

// Write executes the operations that ops returns in one transaction, once, under the next sessions if need be. If it
// returns an error, the transaction was not done and never will be, with one exception: the error is ErrUnresolved.
// Otherwise it is ops' error, the server's refusal, ctx's cause or the client's error. The node must exist.
func (r *Receipts) Write(
	ctx context.Context, client *zk.Client, ops func(*zk.Session) ([]zk.Op, error),
) (Done, error) {
	return Run(ctx, client, func(sess *zk.Session) (Done, error) {
		rec, err := r.Get(ctx, sess)
		if err != nil {
			return Done{}, err
		}
		what, err := ops(sess)
		if err != nil {
			r.Put(rec)
			return Done{}, err
		}
		b := sess.Batch()
		t := r.Send(client, sess, b, rec, what...)
		b.Send()
		return t.Outcome(ctx)
	})
}

// Birth sends the transaction that creates the node, with its data, together with the first receipt. It returns NoNode
// if the node's parent is missing; Txn.Outcome returns NodeExists if the node exists. For Outcome a client that may not
// create below its own node has no receipt.
func (r *Receipts) Birth(ctx context.Context, client *zk.Client, sess *zk.Session, data []byte) (*Txn, error) {
	create := zk.CreateNodeOp(zk.Node{Path: r.node, Data: data, ACL: r.acl})
	b := sess.Batch()
	if r.mayNot(sess) {
		t := r.Send(client, sess, b, nil, create)
		b.Send()
		return t, nil
	}
	before, err := Ask(ctx, sess, func() (zk.Stat, error) {
		stat, exists, err := sess.Exists(ctx, path.Dir(r.node))
		if err == nil && !exists {
			err = zk.NoNode
		}
		return stat, err
	})
	if err != nil {
		return nil, err
	}
	first := r.fresh()
	t := &Txn{client: client, pool: &r.Pool, sess: sess, rec: &Receipt{Path: first.Path}}
	t.birth = &birth{receipts: r, parent: before, ops: []zk.Op{
		create,
		zk.CreateNodeOp(zk.Node{Path: r.dir(), ACL: r.acl}),
		zk.CreateNodeOp(zk.Node{Path: path.Dir(first.Path), ACL: r.acl}),
		zk.CreateNodeOp(first),
	}}
	t.reply = b.Multi(t.birth.ops...)
	b.Send()
	return t, nil
}

// birth is what is known of a transaction that creates a node and its first receipt.
type birth struct {
	receipts *Receipts
	parent   zk.Stat // of the node, before the transaction was sent
	ops      []zk.Op
}

// errAbsent is look's answer if a birth was not done so far. A partition may still deliver it (see Creation.sweep).
var errAbsent = errors.New("there is no node")

// outcome is Txn.Outcome, given the reply.
//
// A birth that was not done so far is sent again as it was: as long as the node is there, one of the two at most is
// done, and the receipt is the same. No other birth may follow it: if the first one came late, it would be taken for
// another client's. If ctx has ended, or the server refuses, it is unresolved: it may still come.
func (b *birth) outcome(ctx context.Context, t *Txn, results []zk.Result, err error) (Done, error) {
	for tries := 0; ; tries++ {
		refusal, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			last := results[len(results)-1]
			t.rec.czxid = last.Zxid
			t.pool.Put(t.rec)
			return Done{Results: results[:1], Zxid: last.Zxid}, nil
		case refused && refusal.Index > 0 && refusal.Err == zk.NoAuth: // by the list of rights that it creates
			b.receipts.mu.Lock()
			defer b.receipts.mu.Unlock()
			b.receipts.denied = t.sess
			return Done{}, ErrNotDone
		case tries == 0 && zk.OutcomeOf(err) != zk.Unknown:
			return Done{}, err
		}
		done, found := b.find(ctx, t)
		if !errors.Is(found, errAbsent) {
			return done, found
		}
		if why := again(ctx, t.sess, err, tries); why == nil {
			batch := t.sess.Batch()
			reply := batch.Multi(b.ops...)
			batch.Send()
			results, err = reply.Get(context.Background()) //nolint:contextcheck // the end of the session ends it
		} else if t.sess.Err() == nil {
			return Done{}, unresolved(why)
		}
	}
}

// find finds out what became of a birth without an outcome. It returns what look does, but no error that passes.
func (b *birth) find(ctx context.Context, t *Txn) (Done, error) {
	for tries := 0; ; tries++ {
		sess, err := t.session(ctx)(ctx)
		if err != nil {
			return Done{}, unresolved(err)
		}
		done, err := b.look(context.WithoutCancel(ctx), t, sess)
		if err == nil || errors.Is(err, errAbsent) || errors.Is(err, ErrNotDone) || errors.Is(err, ErrUnresolved) {
			return done, err
		}
		if err := again(context.WithoutCancel(ctx), sess, err, tries); err != nil && sess.Err() == nil {
			return Done{}, unresolved(err)
		}
	}
}

// look looks for what a birth has done. No other client makes a node with the receipt's name. If it is not there, the
// birth may have been done all the same, and another client have deleted the node since: unless the children of the
// parent have not changed, or only by the one node of that name that is there. It looks for the receipt last: the birth
// may come meanwhile.
//
// A session that ended at this client alone may still have it done: then it is unresolved.
func (b *birth) look(ctx context.Context, t *Txn, sess *zk.Session) (Done, error) {
	batch := sess.Batch()
	passed := Fence(batch)
	parent, node := batch.Exists(path.Dir(b.receipts.node)), batch.Exists(b.receipts.node)
	receipt := batch.Get(t.rec.Path)
	batch.Send()
	if err := passed(ctx); err != nil {
		return Done{}, err
	}
	rec, err := receipt.Get(ctx)
	if err == nil {
		t.rec.version, t.rec.czxid = rec.Stat.Version, rec.Stat.Czxid
		t.pool.Put(t.rec)
		return Done{Zxid: rec.Stat.Czxid}, nil
	}
	if !errors.Is(err, zk.NoNode) {
		return Done{}, err
	}
	there, err := node.Get(ctx)
	if err != nil {
		return Done{}, err
	}
	above, err := parent.Get(ctx)
	if err != nil {
		return Done{}, err
	}
	changes := above.Stat.Cversion - b.parent.Cversion
	switch {
	case sess != t.sess && !errors.Is(t.sess.Err(), zk.ErrExpired):
	case !above.Exists || above.Stat.Czxid != b.parent.Czxid:
	case changes == 0 && sess == t.sess:
		return Done{}, errAbsent
	case changes == 0, changes == 1 && there.Exists:
		return Done{}, ErrNotDone
	}
	return Done{}, unresolved(errors.New("the creation's reply was lost, and other clients have changed the directory"))
}

// Close removes this client's receipts that are not in use, and waits for it. It returns ctx's cause or the client's
// error if that ends first; then other clients remove them, in time.
func (r *Receipts) Close(ctx context.Context, client *zk.Client) error {
	idle := r.Drain()
	if len(idle) == 0 {
		return nil
	}
	paths := make([]string, len(idle))
	for i, rec := range idle {
		paths[i] = rec.Path
	}
	_, err := Run(ctx, client, func(sess *zk.Session) (none struct{}, err error) {
		for _, gone := range Each(sess, paths, func(b *zk.Batch, path string) *zk.Future[struct{}] {
			return b.Delete(path, -1) // only this client uses its name
		}) {
			if _, err := gone.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// sweep removes receipts that were not written to for long before fresh was created, and the directories that are empty
// then. It looks at a random part of them. If it fails, a later sweep does its work.
func (r *Receipts) sweep(ctx context.Context, sess *zk.Session, fresh string) {
	now, _, err := sess.Exists(ctx, fresh) // the server's clock
	if err != nil {
		return
	}
	before := now.Mtime - keepReceipts.Milliseconds()
	minutes, _, err := sess.Children(ctx, r.dir())
	if err != nil {
		return
	}
	minutes = slices.DeleteFunc(minutes, func(m string) bool {
		n, err := strconv.ParseInt(m, 10, 64)
		return err != nil || n*60_000 > before
	})
	rand.Shuffle(len(minutes), func(i, k int) { minutes[i], minutes[k] = minutes[k], minutes[i] })
	looked := 0
	for _, m := range minutes[:min(len(minutes), sweptMinutes)] {
		dir := r.dir() + "/" + m
		names, _, err := sess.Children(ctx, dir)
		if err == nil {
			looked += len(names)
			err = sweepMinute(ctx, sess, dir, names, before)
		}
		if err != nil && !errors.Is(err, zk.NoNode) || looked > sweptReceipts {
			return
		}
	}
}

func sweepMinute(ctx context.Context, sess *zk.Session, dir string, names []string, before int64) error {
	for i, name := range names {
		names[i] = dir + "/" + name
	}
	var old []string
	versions := make(map[string]int32)
	for receipt, seen := range Each(sess, names, (*zk.Batch).Exists) {
		node, err := seen.Get(ctx)
		if err != nil {
			return err
		}
		if node.Exists && node.Stat.Mtime < before {
			old = append(old, receipt)
			versions[receipt] = node.Stat.Version
		}
	}
	if len(old) == len(names) {
		old, versions[dir] = append(old, dir), -1 // refused if there is a new one
	}
	for _, gone := range Each(sess, old, func(b *zk.Batch, path string) *zk.Future[struct{}] {
		return b.Delete(path, versions[path])
	}) {
		_, err := gone.Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NotEmpty) {
			return err
		}
	}
	return nil
}
