package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// sweepEvery is after how many puts a Queue sweeps old keys away, in that part of them which the put has used.
const sweepEvery = 64

// PutOnce adds an item unless one was added under the same key before, and returns the id of the one that is in, or
// was, and whether this call has added it. The key is remembered for Config.KeepKeys after the put, also after the
// item was consumed, and across restarts of the producer. Keys that have had their time are removed by later puts of
// new ones. A full queue neither refuses nor delays a call whose item is in, or was. Everything else is as with Put.
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
	data := keyData(ours, o.q.cfg.KeepKeys)
	fresh := o.q.create(o.path, data, zk.Persistent)
	for mark := fresh; ; {
		s := &shipment{q: o.q, items: []parcel{o.parcel}, guards: []zk.Op{mark}, full: o.remembered}
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
			mark = fresh
			if err := o.makeDir(ctx); err != nil {
				return "", false, err
			}
			continue
		case !errors.Is(failed, zk.NodeExists) && !errors.Is(failed, zk.BadVersion):
			return "", false, failed.failed
		}
		theirs, err := o.read(ctx)
		switch {
		case errors.Is(err, zk.NoNode):
			mark = fresh
		case err != nil:
			return "", false, err
		case theirs.id == ours || o.q.counts(theirs):
			return theirs.id, theirs.id == ours, nil
		default:
			// Old: it is written anew, unless somebody else is quicker. A node made anew would have the old one's version, which a sweeper
			// that has seen the old one goes by.
			mark = zk.SetOp(o.path, data, theirs.version)
		}
	}
}

// rememberedError says that an item was put under the key before.
type rememberedError struct{ id string }

func (e rememberedError) Error() string { return "queue: there was a put of this key: " + e.id }

// remembered returns a rememberedError if the key counts. It is asked where a put would wait for room, which this one does not need then.
func (o *once) remembered(ctx context.Context) error {
	k, err := o.read(ctx)
	switch {
	case errors.Is(err, zk.NoNode):
		return nil
	case err != nil:
		return err
	case o.q.counts(k):
		return rememberedError{k.id}
	}
	return nil
}

// key is what a key's node says: which item was put under it, and until when that counts, by the servers' clock.
type key struct {
	id      string
	until   int64
	version int32
}

// keyData is a key's data: the item's id, and for how many milliseconds the key counts. Each producer says so for its own.
func keyData(id string, keep time.Duration) []byte {
	return []byte(id + " " + strconv.FormatInt(keep.Milliseconds(), 10))
}

// parseKey reads a key's node. One that does not say for how long it counts does so for as long as ours.
func (q *Queue) parseKey(d *zk.Data) key {
	id, text, _ := strings.Cut(string(d.Data), " ")
	keep, err := strconv.ParseInt(text, 10, 64)
	if err != nil || keep < 0 || keep > math.MaxInt64-d.Stat.Mtime {
		keep = q.cfg.KeepKeys.Milliseconds()
	}
	return key{id: id, until: d.Stat.Mtime + keep, version: d.Stat.Version}
}

// counts reports whether a key is remembered still.
func (q *Queue) counts(k key) bool { return k.until > q.clock.now() }

// read returns what the key's node says.
func (o *once) read(ctx context.Context) (key, error) {
	for {
		sess, err := o.q.session(ctx)
		if err != nil {
			return key{}, err
		}
		b := sess.Batch()
		b.Sync(o.path)
		get := b.Get(o.path)
		b.Send()
		d, err := get.Get(ctx)
		if err == nil || !o.q.again(ctx, sess, err) {
			return o.q.parseKey(&d), err
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
	o.q.sweepAway(func(ctx context.Context, sess *zk.Session) {
		o.q.sweep(ctx, sess, o.dir, func(d *zk.Data) bool { return !o.q.counts(o.q.parseKey(d)) })
	})
}
