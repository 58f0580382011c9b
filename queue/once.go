package queue

// Putting an item once.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// sweepEvery is after how many puts a Queue removes old keys, in the directory of the put's key.
const sweepEvery = 64

// PutOnce adds an item unless one was added under the same key before, and returns the id of the one that is in, or
// was, and whether this call has added it. The key must not be empty. It counts for Config.KeepKeys after the put, also
// after the item was consumed, and across restarts of the producer, but not after the item was removed by Remove, Purge
// or PurgeDead. Later puts of new keys remove keys that no longer count. A full queue neither refuses nor delays a call
// whose item is in, or was. Otherwise it is like Put.
//
// The key is a node, which the transaction that adds the item creates: there is no moment at which only one of the
// two exists.
//
// Given ops, it adds the item together with these writes, as Put does; if it adds nothing, they are not done.
func (q *Queue) PutOnce(
	ctx context.Context, key string, m Message, ops ...zk.Op,
) (id string, added bool, err error) {
	s, messages, err := q.producer.sending(ctx, []Message{m})
	if err == nil {
		id, added, err = q.putOnce(ctx, key, &messages[0], ops)
	}
	var ids []string
	if err == nil {
		ids = []string{id}
	}
	q.producer.sent(ctx, s, ids, err)
	return id, added, err
}

func (q *Queue) putOnce(ctx context.Context, key string, m *Message, ops []zk.Op) (id string, added bool, err error) {
	if key == "" {
		return "", false, q.failed("put", fmt.Errorf("%w: the key is empty", zk.BadArguments))
	}
	p, err := q.producer.wrap(m, segment.NewID())
	if err != nil {
		return "", false, q.failed("put", err)
	}
	sum := sha256.Sum256([]byte(key))
	part := hex.EncodeToString(sum[:1])
	p.rec.Key = part + "/" + hex.EncodeToString(sum[1:17])
	p.data = p.rec.Encode()
	dir, path := q.layout.path(dirKeys, part), q.layout.path(dirKeys, p.rec.Key)
	o := &once{producer: &q.producer, dir: dir, path: path, encodedItem: p, ops: ops}
	id, added, err = o.put(ctx)
	if err != nil {
		return "", false, q.failed("put", err)
	}
	return id, added, nil
}

// once is a PutOnce operation.
type once struct {
	*producer
	dir, path   string
	encodedItem encodedItem
	ops         []zk.Op // the caller's
}

func (o *once) put(ctx context.Context) (id string, added bool, err error) {
	ours := o.encodedItem.rec.ID.String()
	data := keyData(ours, o.cfg.KeepKeys)
	fresh := o.layout.store.CreateOp(o.path, data)
	for mark := fresh; ; {
		s := &putOp{
			producer: o.producer, items: []encodedItem{o.encodedItem}, guards: []zk.Op{mark}, full: o.remembered,
			ops: o.ops, whole: len(o.ops) > 0,
		}
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
		case failed.failed.Index > 1: // one of the caller's
			return "", false, s.refusal(err)
		case errors.Is(failed, zk.NoNode):
			// The directory of such keys is missing; or the old key that was to be replaced was removed.
			mark = fresh
			if err := o.makeDir(ctx); err != nil {
				return "", false, err
			}
			continue
		case !errors.Is(failed, zk.NodeExists) && !errors.Is(failed, zk.BadVersion):
			return "", false, failed.failed
		}
		theirs, there, err := o.read(ctx)
		switch {
		case err != nil:
			return "", false, err
		case !there:
			mark = fresh
		case theirs.id == ours || o.counts(theirs):
			return theirs.id, theirs.id == ours, nil
		default:
			// It no longer counts: replace it, unless another producer is quicker. A node that was deleted and
			// created would have the version of the old one, by which a sweeper goes that has seen the old one.
			mark = zk.SetOp(o.path, data, theirs.version)
		}
	}
}

// rememberedError says that an item was put under the key before.
type rememberedError struct{ id string }

func (e rememberedError) Error() string { return "queue: there was a put of this key: " + e.id }

// remembered returns a rememberedError if the key counts. It is called where a put would wait for room, which this
// one then does not need.
func (o *once) remembered(ctx context.Context) error {
	k, there, err := o.read(ctx)
	if err == nil && there && o.counts(k) {
		return rememberedError{k.id}
	}
	return err
}

// key is a key's node: which item was put under it, and until when that counts, by the servers' clock.
type key struct {
	id      string
	until   int64
	version int32
}

// keyData returns a key's data: the item's id, and for how many milliseconds the key counts. Each producer decides
// that for its own keys.
func keyData(id string, keep time.Duration) []byte {
	return []byte(id + " " + strconv.FormatInt(keep.Milliseconds(), 10))
}

// parseKey reads a key's node. If it does not say how long it counts, it counts as long as ours.
func (p *producer) parseKey(d *zk.Data) key {
	id, text, _ := strings.Cut(string(d.Data), " ")
	if text == forgotten {
		return key{id: id, version: d.Stat.Version}
	}
	keep, err := strconv.ParseInt(text, 10, 64)
	if err != nil || keep < 0 || keep > math.MaxInt64-d.Stat.Mtime {
		keep = p.cfg.KeepKeys.Milliseconds()
	}
	return key{id: id, until: d.Stat.Mtime + keep, version: d.Stat.Version}
}

// forgotten stands for how long a key counts whose item was removed.
const forgotten = "0"

// forget returns the operation with which the key of an item no longer counts, if there is one: the transaction that
// removes the item does it, too. The server refuses it if another item has been put under the key since. The node
// stays for a sweep: one that was deleted and made again would have a version that others have seen.
func (b *base) forget(ctx context.Context, sess *zk.Session, key, id string) ([]zk.Op, error) {
	if key == "" {
		return nil, nil
	}
	path := b.layout.path(dirKeys, key)
	d, err := latest(ctx, sess, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if of, _, _ := strings.Cut(string(d.Data), " "); err != nil || of != id {
		return nil, err
	}
	return []zk.Op{zk.SetOp(path, []byte(id+" "+forgotten), d.Stat.Version)}, nil
}

// counts reports whether a key still counts.
func (p *producer) counts(k key) bool { return k.until > p.clock.now() }

// read returns what the key's node says, and whether it is there.
func (o *once) read(ctx context.Context) (k key, there bool, err error) {
	err = o.do(ctx, func(sess *zk.Session) error {
		d, err := latest(ctx, sess, o.path)
		k, there = o.parseKey(&d), err == nil
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		return err
	})
	return k, there, err
}

func (o *once) makeDir(ctx context.Context) error {
	return o.do(ctx, func(sess *zk.Session) error {
		_, err := sess.CreateNode(ctx, o.layout.node(o.dir, nil, zk.Persistent))
		if errors.Is(err, zk.NodeExists) {
			return nil
		}
		return err
	})
}

// sweep removes old keys now and then.
func (o *once) sweep() {
	if o.keyed.Add(1)%sweepEvery != 1 {
		return
	}
	o.sweeper.run(func(ctx context.Context, sess *zk.Session) {
		o.sweeper.sweep(ctx, sess, o.dir, func(d *zk.Data) bool { return !o.counts(o.parseKey(d)) })
	})
}
