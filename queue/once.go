package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// sweepEvery is after how many puts a Queue sweeps old keys away, in that part of them which the put has used.
const sweepEvery = 64

// PutOnce adds an item unless one was added under the same key before, and returns the id of the one that is in, or was, and whether this
// call has added it. The key is remembered for Config.KeepKeys after the put, also after the item was consumed, and across restarts of the
// producer. A full queue neither refuses nor delays a call whose item is in, or was. Everything else is as with Put.
//
// The key stands in a node of its own, made in the transaction that adds the item: there is no moment at which only one of the two is there.
func (q *Queue) PutOnce(ctx context.Context, key string, body []byte, opts PutOptions) (id string, added bool, err error) {
	p, err := q.wrap(&Message{Body: body, PutOptions: opts}, newID())
	if err != nil {
		return "", false, q.failed("put", err)
	}
	sum := sha256.Sum256([]byte(key))
	dir := q.path(dirKeys, hex.EncodeToString(sum[:1]))
	o := &once{q: q, dir: dir, path: dir + "/" + hex.EncodeToString(sum[1:17]), parcel: p}
	id, added, err = o.put(ctx)
	if err != nil {
		return "", false, q.failed("put", err)
	}
	return id, added, nil
}

// once is a PutOnce under way.
type once struct {
	q         *Queue
	dir, path string
	parcel    parcel
}

func (o *once) put(ctx context.Context) (id string, added bool, err error) {
	ours := o.parcel.rec.name()
	guards := []zk.Op{o.q.create(o.path, []byte(ours), zk.Persistent)}
	for {
		s := &shipment{q: o.q, items: []parcel{o.parcel}, guards: guards, full: o.remembered}
		err := s.send(ctx)
		failed, refused := errors.AsType[guardError](err)
		known, remembered := errors.AsType[rememberedError](err)
		switch {
		case err == nil:
			o.sweep()
			return ours, true, nil
		case remembered:
			return known.id, known.id == ours, nil
		case !refused:
			return "", false, err
		case errors.Is(failed, zk.NoNode):
			// There is no place for keys like this one yet; or the old key that we wanted to replace was swept.
			guards = guards[len(guards)-1:]
			if err := o.makeDir(ctx); err != nil {
				return "", false, err
			}
			continue
		case !errors.Is(failed, zk.NodeExists) && !errors.Is(failed, zk.BadVersion):
			return "", false, failed.failed
		}
		theirs, stat, err := o.read(ctx)
		switch {
		case errors.Is(err, zk.NoNode):
			guards = guards[len(guards)-1:]
		case err != nil:
			return "", false, err
		case theirs == ours || o.counts(stat):
			return theirs, theirs == ours, nil
		default:
			// Old: it goes in the transaction that makes the new one, unless somebody else is quicker.
			guards = []zk.Op{zk.DeleteOp(o.path, stat.Version), guards[len(guards)-1]}
		}
	}
}

// rememberedError says that an item was put under the key before.
type rememberedError struct{ id string }

func (e rememberedError) Error() string { return "queue: there was a put of this key: " + e.id }

// remembered returns a rememberedError if the key counts. It is asked where a put would wait for room, which this one does not need then.
func (o *once) remembered(ctx context.Context) error {
	id, stat, err := o.read(ctx)
	switch {
	case errors.Is(err, zk.NoNode):
		return nil
	case err != nil:
		return err
	case o.counts(stat):
		return rememberedError{id}
	}
	return nil
}

// counts reports whether a key with this Stat is remembered still.
func (o *once) counts(stat zk.Stat) bool {
	return stat.Mtime+o.q.cfg.KeepKeys.Milliseconds() > o.q.clock.now()
}

// read returns the id that the key stands for.
func (o *once) read(ctx context.Context) (string, zk.Stat, error) {
	for {
		sess, err := o.q.session(ctx)
		if err != nil {
			return "", zk.Stat{}, err
		}
		b := sess.Batch()
		b.Sync(o.path)
		get := b.Get(o.path)
		b.Send()
		d, err := get.Get(ctx)
		if err == nil || !o.q.again(ctx, sess, err) {
			return string(d.Data), d.Stat, err
		}
	}
}

// again reports whether what failed with err is worth another try: the connection broke, or the session ended.
func (q *Queue) again(ctx context.Context, sess *zk.Session, err error) bool {
	return ctx.Err() == nil && (sess.Err() != nil || errors.Is(err, zk.ErrConnectionLost))
}

func (o *once) makeDir(ctx context.Context) error {
	for {
		sess, err := o.q.session(ctx)
		if err != nil {
			return err
		}
		_, err = sess.CreateNode(ctx, o.q.node(o.dir, nil, zk.Persistent))
		switch {
		case err == nil, errors.Is(err, zk.NodeExists):
			return nil
		case !o.q.missing(err) && !o.q.again(ctx, sess, err):
			return err
		}
	}
}

// sweep removes old keys now and then.
func (o *once) sweep() {
	if o.q.puts.Add(1)%sweepEvery != 1 {
		return
	}
	o.q.background(func() {
		if sess, err := o.q.session(o.q.ctx); err == nil {
			o.q.sweep(o.q.ctx, sess, o.dir, o.q.cfg.KeepKeys)
		}
	})
}
