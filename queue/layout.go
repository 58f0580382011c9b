package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// mark is the data of a queue's root: what tells it from other recipes' nodes, and its layout from later ones.
const mark = `{"recipe":"turnstile queue","layout":1}`

// The nodes below the root. The page on the layout in docs/decisions says what each is for.
const (
	dirReady     = "ready"
	dirClaims    = "claims"
	dirFree      = "free"
	dirConsumers = "consumers"
	dirDelayed   = "delayed"
	dirDead      = "dead"
	dirKeys      = "keys"
	dirReceipts  = "receipts"
	dirWaiters   = "waiters"
)

var dirs = []string{dirReady, dirClaims, dirFree, dirConsumers, dirDelayed, dirDead, dirKeys, dirReceipts, dirWaiters}

func (q *Queue) path(parts ...string) string {
	return q.root + "/" + strings.Join(parts, "/")
}

// build makes the queue's nodes, as far as they are not there.
func (q *Queue) build(ctx context.Context, sess *zk.Session) error {
	data, stat, err := sess.Get(ctx, q.root)
	switch {
	case errors.Is(err, zk.NoNode):
		if err := q.makeRoot(ctx, sess); err != nil {
			return err
		}
	case err != nil:
		return err
	case string(data) == mark:
	case len(data) == 0 && stat.NumChildren == 0:
		// Somebody made an empty node for us.
		if _, err := sess.Set(ctx, q.root, []byte(mark), stat.Version); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: the node at %s belongs to something else", ErrNotQueue, q.root)
	}
	// Only what is missing is made: whoever may only read can look at a queue that is there.
	there, _, err := sess.Children(ctx, q.root)
	if err != nil {
		return err
	}
	b := sess.Batch()
	var made []*zk.Future[zk.Created]
	for _, dir := range dirs {
		if !slices.Contains(there, dir) {
			made = append(made, b.CreateNode(q.node(q.path(dir), nil, zk.Persistent)))
		}
	}
	b.Send()
	for _, m := range made {
		if _, err := m.Get(ctx); err != nil && !errors.Is(err, zk.NodeExists) {
			return err
		}
	}
	return nil
}

func (q *Queue) makeRoot(ctx context.Context, sess *zk.Session) error {
	_, err := sess.CreateNode(ctx, q.node(q.root, []byte(mark), zk.Persistent))
	if errors.Is(err, zk.NoNode) {
		if err := q.makeParents(ctx, sess, path.Dir(q.root)); err != nil {
			return err
		}
		_, err = sess.CreateNode(ctx, q.node(q.root, []byte(mark), zk.Persistent))
	}
	if errors.Is(err, zk.NodeExists) {
		return nil
	}
	return err
}

// makeParents makes what is missing above the root, from the leaf upward, because the ancestors may be closed to us (CURATOR-715).
func (q *Queue) makeParents(ctx context.Context, sess *zk.Session, dir string) error {
	_, err := sess.CreateNode(ctx, q.node(dir, nil, zk.Persistent))
	if errors.Is(err, zk.NoNode) && path.Dir(dir) != dir {
		if err := q.makeParents(ctx, sess, path.Dir(dir)); err != nil {
			return err
		}
		_, err = sess.CreateNode(ctx, q.node(dir, nil, zk.Persistent))
	}
	if errors.Is(err, zk.NodeExists) {
		return nil
	}
	return err
}

func (q *Queue) node(path string, data []byte, mode zk.Mode) zk.Node {
	return zk.Node{Path: path, Data: data, Mode: mode, ACL: q.cfg.ACL}
}

func (q *Queue) create(path string, data []byte, mode zk.Mode) zk.Op {
	return zk.CreateNodeOp(q.node(path, data, mode))
}

// Lines are named so that their names sort as they are served.
const lineOffset = 1000

func lineName(priority int) string { return fmt.Sprintf("p%04d", priority+lineOffset) }

func parseLine(name string) (int, bool) {
	n, ok := segment.Number(name, "p")
	return n - lineOffset, ok
}

// line returns the list of the ready items of a priority.
func (q *Queue) line(priority int) *segment.List {
	dir := q.path(dirReady, lineName(priority))
	return q.store.List(dir, dir+"/"+segment.ChangeName, false)
}

// deadLetters returns the list of the dead letters.
func (q *Queue) deadLetters() *segment.List { return q.store.List(q.path(dirDead), "", false) }
