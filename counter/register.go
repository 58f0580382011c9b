package counter

// A node that is written exactly once for each call.

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/seed-a3166700/turnstile/internal/attempt"
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
// After a lost reply the receipt answers both questions (see attempt.Receipt). Receipts are persistent, so that they
// answer under the next session, too.
type register struct {
	client   *zk.Client
	path     string
	access   attempt.Access
	receipts *attempt.Receipts
}

// content is what a node held at some time.
type content struct {
	exists bool
	data   []byte
	stat   zk.Stat
}

func newRegister(client *zk.Client, path string, acl []zk.ACL, anyACL bool) (*register, error) {
	if err := attempt.Args("counter", client, path, acl); err != nil {
		return nil, err
	}
	receipts := attempt.NewReceipts(path, acl)
	return &register{
		client: client, path: path, access: attempt.Access{ACL: acl, AnyACL: anyACL}, receipts: receipts,
	}, nil
}

// close removes the receipts that this process keeps below the node.
func (r *register) close(ctx context.Context) error {
	return r.failed("remove the receipts of", r.receipts.Close(ctx, r.client))
}

// mayUse returns an error if the node, or one above it, grants more than it is to.
func (r *register) mayUse(ctx context.Context, sess *zk.Session) error {
	return r.access.Check(ctx, sess, r.path)
}

// makeParents creates what is missing above the node.
func (r *register) makeParents(ctx context.Context, sess *zk.Session) error {
	d := attempt.Dirs{Keep: attempt.Forever, ACL: r.access.ACL, AnyACL: r.access.AnyACL, Above: true}
	return d.Make(ctx, sess, path.Dir(r.path))
}

// read returns what the node holds, as the session's server knows it: perhaps not the newest.
func (r *register) read(ctx context.Context, sess *zk.Session) (content, error) {
	data, stat, err := sess.Get(ctx, r.path)
	return toContent(data, stat, err)
}

// readSynced returns what the node holds, no older than the call.
func (r *register) readSynced(ctx context.Context, sess *zk.Session) (content, error) {
	if err := r.mayUse(ctx, sess); err != nil {
		return content{}, err
	}
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

// A change is what to do to the node: create it, or set it on condition of its version.
type change struct {
	create  bool
	data    []byte
	version int32
}

// change returns the change that replaces what the node holds, on condition that it is still old.
func (old content) change(data []byte) (change, error) {
	switch {
	case !old.exists:
		return change{create: true, data: data}, nil
	case old.stat.Version == anyVersion:
		return change{}, ErrVersions
	default:
		return change{data: data, version: old.stat.Version}, nil
	}
}

// errConflict reports that a write was not done because the node is not what it is conditional on.
var errConflict = errors.New("another process was quicker")

// send sends the change once, with what add adds to the batch behind it. It returns an error if nothing was sent.
func (r *register) send(
	ctx context.Context, sess *zk.Session, rec *attempt.Receipt, c change, add func(*zk.Batch),
) (*attempt.Txn, error) {
	if c.create {
		r.receipts.Put(rec)
		return r.receipts.Birth(ctx, r.client, sess, c.data)
	}
	b := sess.Batch()
	t := r.receipts.Send(r.client, sess, b, rec, zk.SetOp(r.path, c.data, c.version))
	add(b)
	b.Send()
	return t, nil
}

// outcome waits until it is known whether a change was done, and returns the node's Stat after it. If the reply was
// lost and the change was done, the Stat has only Mzxid, which is that of the write. An error is ErrUnresolved, or the
// change was not done and will never be: errConflict, NoNode if its parents have to be made first, or what Run tries
// again. If ctx ends outcome gives up only after the session has ended, too.
func (c change) outcome(ctx context.Context, t *attempt.Txn) (zk.Stat, error) {
	done, err := t.Outcome(ctx)
	switch {
	case err == nil && done.Results == nil:
		return zk.Stat{Mzxid: done.Zxid}, nil
	case err == nil && done.Results[0].Stat.Czxid == 0: // servers before 3.8.4 leave out that of a created node
		return zk.Stat{Czxid: done.Zxid, Mzxid: done.Zxid}, nil
	case err == nil:
		return done.Results[0].Stat, nil
	case errors.Is(err, attempt.ErrUnresolved):
		return zk.Stat{}, fmt.Errorf("%w: %w", ErrUnresolved, err)
	case errors.Is(err, attempt.ErrGone): // perhaps with the node: another one may have its version
		return zk.Stat{}, errConflict
	case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NodeExists), errors.Is(err, zk.NoNode) && !c.create:
		return zk.Stat{}, errConflict
	default:
		return zk.Stat{}, err
	}
}

// write makes the change once, under the next sessions if need be, and returns what outcome does.
func (r *register) write(ctx context.Context, c change) (zk.Stat, error) {
	return attempt.Run(ctx, r.client, func(sess *zk.Session) (stat zk.Stat, err error) {
		var rec *attempt.Receipt
		err = r.mayUse(ctx, sess)
		if err == nil && !c.create {
			rec, err = r.receipts.Get(ctx, sess)
		}
		var t *attempt.Txn
		if err == nil {
			t, err = r.send(ctx, sess, rec, c, func(*zk.Batch) {})
		}
		if err == nil {
			stat, err = c.outcome(ctx, t)
		}
		switch {
		case err == nil || !errors.Is(err, zk.NoNode):
			return stat, err
		case !c.create:
			return stat, errConflict // it was deleted before it had a receipt
		}
		if err := r.makeParents(ctx, sess); err != nil {
			return stat, err
		}
		return stat, attempt.ErrNotDone
	})
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
