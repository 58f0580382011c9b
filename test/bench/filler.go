package main

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// A filler fills a contender's queue while it is not measured, because no contender's own way of putting items is fast
// enough everywhere.
type filler interface {
	fill(ctx context.Context, n int) error
	count(ctx context.Context) (int, error)
	close()
}

// openFiller returns the filler of the queue at root, which it makes if the contender cannot.
func openFiller(ctx context.Context, kind, addr, root string) (filler, error) {
	p := &plan{addr: addr, root: root}
	switch kind {
	case kindTurnstileQueue:
		t, err := openTurnstileQueue(ctx, p)
		if err != nil {
			return nil, err
		}
		return &ourFiller{ourQueue: t.(*ourQueue)}, nil
	case kindRedisList:
		t, err := openRedisList(ctx, p)
		if err != nil {
			return nil, err
		}
		return &redisFiller{redisList: t.(*redisList)}, nil
	case kindCuratorSimple:
		return openNodeFiller(ctx, addr, root, "qn-", nil)
	case kindCuratorQueue:
		return openNodeFiller(ctx, addr, root, "queue-", func(b []byte) []byte { return classic.MarshalElements(b) })
	case kindKazooQueue:
		return openNodeFiller(ctx, addr, root, "entry-100-", nil)
	case kindKazooLocking:
		return openNodeFiller(ctx, addr, root+"/entries", "entry-100-", nil)
	default:
		return nil, fmt.Errorf("there is no queue of %q", kind)
	}
}

// inParts calls put for n items, in parts.
func (m *numbering) inParts(n, part int, put func(bodies [][]byte) error) error {
	for ; n > 0; n -= part {
		if err := put(m.bodies(min(n, part))); err != nil {
			return err
		}
	}
	return nil
}

type ourFiller struct {
	*ourQueue
	numbering
}

func (s *ourFiller) fill(ctx context.Context, n int) error {
	return s.inParts(n, 20_000, func(bodies [][]byte) error {
		_, err := s.queue.PutBatch(ctx, messages(bodies))
		return err
	})
}

func (s *ourFiller) count(ctx context.Context) (int, error) {
	c, err := s.queue.Len(ctx)
	return c.Ready + c.Claimed + c.Delayed, err
}

type redisFiller struct {
	*redisList
	numbering
}

func (s *redisFiller) fill(ctx context.Context, n int) error {
	return s.inParts(n, batchItems, func(bodies [][]byte) error { return s.put(ctx, bodies) })
}

func (s *redisFiller) count(ctx context.Context) (int, error) {
	ready, err := s.client.LLen(ctx, s.ready).Result()
	taken, e := s.client.LLen(ctx, s.taken).Result()
	return int(ready + taken), errors.Join(err, e)
}

// A nodeFiller fills a queue in which every item is a sequential node of one directory.
type nodeFiller struct {
	client *zk.Client
	sess   *zk.Session
	dir    string
	prefix string
	frame  func([]byte) []byte // nil for bodies as they are
	numbering
}

func openNodeFiller(ctx context.Context, addr, dir, prefix string, frame func([]byte) []byte) (*nodeFiller, error) {
	client, sess, err := connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	for _, p := range []string{path.Dir(dir), dir} {
		if p == "/" {
			continue
		}
		if _, err := sess.Create(ctx, p, nil, zk.Persistent); err != nil && !errors.Is(err, zk.NodeExists) {
			_ = client.Close()
			return nil, err
		}
	}
	return &nodeFiller{client: client, sess: sess, dir: dir, prefix: prefix, frame: frame}, nil
}

// listed is how many bytes a list of n items has.
func (s *nodeFiller) listed(n int) int { return n * (4 + len(s.prefix) + len("0000000000")) }

// fill sends transactions of a few hundred items, a few at a time.
func (s *nodeFiller) fill(ctx context.Context, n int) error {
	const items, maxSent = 500, 4
	b := s.sess.Batch()
	var sent []*zk.Future[[]zk.Result]
	await := func() error {
		b.Send()
		var errs []error
		for _, f := range sent {
			_, err := f.Get(ctx)
			errs = append(errs, err)
		}
		b, sent = s.sess.Batch(), nil
		return errors.Join(errs...)
	}
	err := s.inParts(n, items, func(bodies [][]byte) error {
		ops := make([]zk.Op, len(bodies))
		for i, body := range bodies {
			if s.frame != nil {
				body = s.frame(body)
			}
			ops[i] = zk.CreateOp(s.dir+"/"+s.prefix, body, zk.PersistentSequential)
		}
		if sent = append(sent, b.Multi(ops...)); len(sent) < maxSent {
			return nil
		}
		return await()
	})
	return errors.Join(err, await())
}

func (s *nodeFiller) count(ctx context.Context) (int, error) {
	stat, there, err := s.sess.Exists(ctx, s.dir)
	if err == nil && !there {
		err = fmt.Errorf("%s is gone", s.dir)
	}
	return int(stat.NumChildren), err
}

func (s *nodeFiller) close() { _ = s.client.Close() }

// defaultPacket is the largest reply that a Java client accepts by default: its jute.maxbuffer.
const defaultPacket = 0xfffff

// tooLong says that the list of the items is too long for a packet; it is empty if it is not.
func (s *nodeFiller) tooLong(depth, packet int) string {
	if packet == 0 {
		packet = defaultPacket
	}
	if s.listed(depth) <= packet {
		return ""
	}
	return fmt.Sprintf("; the list of its items has %s bytes, and its client takes %s (jute.maxbuffer)",
		number(float64(s.listed(depth))), number(float64(packet)))
}
