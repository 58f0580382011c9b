package counter

// A node that is written exactly once for each call.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

// register is a node whose data many processes change, with writes whose outcome can be found out.
//
// A lost reply to a conditional write leaves two questions: was it done, and can it still be done later? The node alone
// answers neither. If its version has moved by one and its data is what we wrote, another process may have written the
// same bytes: all processes that add 1 to the same value do. Its Mzxid names a transaction but not its session. If the
// version has not moved, the write may be on its way; to repeat it would be harmless, because of two writes on
// condition of one version at most one is done; but if the repetition is refused the first question is open again. And
// the layouts are other projects', with no room for a mark.
//
// So every write is a transaction of two: it stamps a receipt, on condition of the receipt's version, and changes the
// node. That is one request, one entry of the servers' log and one wait for their disks, as the change alone would be.
// After a lost reply the receipt answers both questions (see receipt.Receipt). Receipts are persistent, so that they
// answer under the next session, too.
type register struct {
	client   *zk.Client
	path     string
	acl      []zk.ACL
	receipts *receipts
}

// content is what a node held at some time.
type content struct {
	exists bool
	data   []byte
	stat   zk.Stat
}

func newRegister(client *zk.Client, path, dir string, acl []zk.ACL) (*register, error) {
	if client == nil {
		return nil, errors.New("counter: client is nil; open one with zk.Open")
	}
	dir = cmp.Or(dir, path+"-receipts")
	for _, p := range []string{path, dir} {
		if err := zk.ValidatePath(p); err != nil {
			return nil, fmt.Errorf("counter: %w", err)
		}
		if line.Reserved(p) {
			return nil, fmt.Errorf("counter: %w: %s belongs to the server; use a path such as /counters/visits",
				zk.BadArguments, p)
		}
	}
	if dir == path {
		return nil, fmt.Errorf("counter: %w: Receipts must not be the counter's path", zk.BadArguments)
	}
	r := &register{client: client, path: path, acl: acl}
	r.receipts = newReceipts(dir, acl)
	return r, nil
}

// makeParents creates what is missing above the node, as containers like Curator's.
func (r *register) makeParents(ctx context.Context, sess *zk.Session) error {
	above := line.Line{Dir: path.Dir(r.path), ACL: r.acl}
	return above.MakeDir(ctx, sess)
}

// read returns what the node holds, as the session's server knows it: perhaps not the newest.
func (r *register) read(ctx context.Context, sess *zk.Session) (content, error) {
	data, stat, err := sess.Get(ctx, r.path)
	return toContent(data, stat, err)
}

// readSynced returns what the node holds, no older than the call.
func (r *register) readSynced(ctx context.Context, sess *zk.Session) (content, error) {
	b := sess.Batch()
	synced := b.Sync(r.path)
	got := b.Get(r.path)
	b.Send()
	if _, err := synced.Get(ctx); err != nil {
		return content{}, err
	}
	data, err := got.Get(ctx)
	return toContent(data.Data, data.Stat, err)
}

func toContent(data []byte, stat zk.Stat, err error) (content, error) {
	switch {
	case err == nil:
		return content{exists: true, data: data, stat: stat}, nil
	case errors.Is(err, zk.NoNode):
		return content{}, nil
	default:
		return content{}, err
	}
}

// anyVersion makes a write unconditional.
const anyVersion = -1

// change returns the operation that replaces what the node holds, on condition that it is still old.
func (r *register) change(old content, data []byte) (zk.Op, error) {
	switch {
	case !old.exists:
		return r.creation(data), nil
	case old.stat.Version == anyVersion:
		return zk.Op{}, ErrVersions
	default:
		return zk.SetOp(r.path, data, old.stat.Version), nil
	}
}

// creation returns the operation that creates the node.
func (r *register) creation(data []byte) zk.Op {
	return zk.CreateNodeOp(zk.Node{Path: r.path, Data: data, ACL: r.acl})
}

// A written is a write that was sent.
type written struct {
	reg   *register
	sess  *zk.Session
	rec   *receipt.Receipt
	stamp string
	reply *zk.Future[[]zk.Result]
}

// The operations of a transaction: the receipt's, the change of the node, and those for other processes.
const (
	receiptOp = iota
	changeOp
	firstGuestOp
)

// add adds the change to b, in one transaction with the receipt's and what is to be done for other processes.
func (r *register) add(sess *zk.Session, b *zk.Batch, rec *receipt.Receipt, change zk.Op, guests ...zk.Op) *written {
	op, stamp := rec.Stamp(0)
	ops := append([]zk.Op{receiptOp: op, changeOp: change}, guests...)
	return &written{reg: r, sess: sess, rec: rec, stamp: stamp, reply: b.Multi(ops...)}
}

// Why a write was not done: the caller reads and tries again.
var (
	errConflict = errors.New("another process was quicker")
	errParents  = errors.New("the node's parents are missing")
	errReceipt  = errors.New("the receipt is gone")
	errLost     = errors.New("the write was lost on its way")
)

// guestError says that a write was not done because of what was to be done for another process.
type guestError struct{ op int } // the number of the operation

func (e *guestError) Error() string {
	return fmt.Sprintf("operation %d was not to be done any more", e.op)
}

// outcome waits until it is known whether the write was done, and returns the node's Stat after it. If the reply was
// lost and the write was done, the Stat has only Mzxid, which is that of the write. An error is ErrUnresolved, or the
// write was not done and will never be. It is errConflict if the node was not what the write is conditional on,
// errParents if they have to be made first, errReceipt if the write needs another receipt, errLost if it may just be
// sent again, and a guestError if it may be sent again without what is to be done for one other process.
//
// It gives the receipt back, unless the receipt must not be used again. If ctx ends it gives up only after the session
// has ended, too.
func (w *written) outcome(ctx context.Context) (zk.Stat, error) {
	results, err := w.reply.Get(context.Background()) //nolint:contextcheck // the end of the session ends it
	if err == nil {
		w.rec.Done()
		w.reg.receipts.Put(w.rec)
		return statOf(results), nil
	}
	refusal, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case refused && refusal.Index == receiptOp && (refusal.Err == zk.NoNode || refusal.Err == zk.BadVersion):
		// Another process has swept the receipt away, or an operator has written to it.
		return zk.Stat{}, errReceipt
	case zk.OutcomeOf(err) == zk.Unknown:
		return w.resolve(ctx)
	}
	w.reg.receipts.Put(w.rec)
	switch {
	case !refused:
	case refusal.Index >= firstGuestOp:
		return zk.Stat{}, &guestError{refusal.Index}
	case refusal.Err == zk.NoNode && refusal.Op == "create":
		return zk.Stat{}, errParents
	case refusal.Err == zk.BadVersion, refusal.Err == zk.NoNode, refusal.Err == zk.NodeExists:
		return zk.Stat{}, errConflict
	}
	return zk.Stat{}, err
}

// resolve finds out whether a write was done whose reply was lost.
func (w *written) resolve(ctx context.Context) (zk.Stat, error) {
	// As long as the session lives, the answer is near, and worth more than to leave in time.
	session := func(context.Context) (*zk.Session, error) {
		if w.sess.Err() == nil {
			return w.sess, nil
		}
		return w.reg.client.Session(ctx)
	}
	for {
		done, err := w.rec.Resolve(context.WithoutCancel(ctx), session, []string{w.stamp}, func(int64) {})
		switch {
		case err == nil && done == 0:
			w.reg.receipts.Put(w.rec)
			return zk.Stat{}, errLost
		case err == nil:
			w.reg.receipts.Put(w.rec)
			return zk.Stat{Mzxid: w.rec.Mzxid()}, nil
		case line.Transient(err):
			if sess, sessErr := session(ctx); sessErr == nil {
				_ = line.AwaitRetry(context.WithoutCancel(ctx), sess, err) // session ends it if it has to
				continue
			}
		}
		return zk.Stat{}, fmt.Errorf("%w: %w", ErrUnresolved, err)
	}
}

// statOf returns the Stat of the node that a transaction has created or set behind its receipt. Servers before 3.8.4
// leave out that of a created node.
func statOf(results []zk.Result) zk.Stat {
	change := results[changeOp]
	if change.Stat.Czxid == 0 {
		return zk.Stat{Czxid: change.Zxid, Mzxid: change.Zxid}
	}
	return change.Stat
}

// after returns what the node holds after a write of data on condition of old, given outcome's Stat.
func (old content) after(data []byte, stat zk.Stat) (content, error) {
	now := content{exists: true, data: data, stat: stat}
	switch {
	case stat.Czxid != 0 && old.exists && stat.Czxid != old.stat.Czxid:
		return now, ErrRecreated
	case stat.Czxid != 0:
	case old.exists: // the reply was lost
		now.stat.Czxid, now.stat.Version = old.stat.Czxid, old.stat.Version+1
	default:
		now.stat.Czxid = stat.Mzxid
	}
	return now, nil
}
