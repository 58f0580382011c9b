package queue

// The nodes of a queue.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// mark is the data of a queue's root: it distinguishes it from other recipes' nodes, and its layout from later ones.
const mark = `{"recipe":"turnstile queue","layout":1}`

// The nodes below the root. docs/decisions/020-queue-layout.md has the reasons.
//
//	/q                                      the mark
//	/q/ready/p1000                          the list of priority 0 (the number is priority + 1000); data: the cursor
//	/q/ready/p1000/bell                     set by every put into the list: the change node
//	/q/ready/p1000/s0000000007              a segment; data "small" or "large": how large its items may be
//	/q/ready/p1000/s0000000007/0000000123   an item; its number is the server's sequence
//	/q/claims/LIST.SEGMENT.ITEM.OWNER.SERIAL  a claim: {"first":100,"last":163,"handed":104,"tries":0,…}
//	/q/free/LIST.SEGMENT.ITEM.free.SERIAL   a claim that was given back, left behind, or cut for other consumers
//	/q/consumers/OWNER                      ephemeral: the owner lives
//	/q/waiters/…-wait-0000000004            ephemeral: a consumer that waits; only the first one watches anything
//	/q/gate                                 empty; or a pause and a rate. Claims are made on condition of its version
//	/q/rate                                 empty; or, in ns since 1970, when what was claimed at a rate is paid for
//	/q/groups/3f/NAME/s0000000001/…         items that wait for the head of their group, in 256 parts
//	/q/periodic/NAME                        the last time of a schedule; below it, a line of processes
//	/q/delayed/ba00001795000000000          a bucket: segments of items that are due in that second (ba), minute (bb),
//	                                        hour (bc) or day (bd); the number of its first segment is random, because
//	                                        buckets come and go, and a path must not come again
//	/q/dead/s0000000001/…                   dead letters, in segments
//	/q/keys/3f/…                            keys of PutOnce, in 256 parts
//	/q/receipts/2a/…                        receipts, in 64 parts
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
	dirGate      = "gate"
	dirRate      = "rate"
	dirPeriodic  = "periodic"
	dirGroups    = "groups"
)

var dirs = []string{
	dirReady, dirClaims, dirFree, dirConsumers, dirDelayed, dirDead, dirKeys, dirReceipts, dirWaiters,
	dirGate, dirRate, dirPeriodic, dirGroups,
}

// layout is where a queue's nodes are, and how they are created.
type layout struct {
	root  string
	store segment.Store
	asked atomic.Int64 // for lists that come and go
	parts sync.Map     // paths of parts of the directory of groups that were there
}

func (y *layout) path(parts ...string) string {
	return y.root + "/" + strings.Join(parts, "/")
}

// build creates those of the queue's nodes that do not exist.
func (y *layout) build(ctx context.Context, sess *zk.Session) error {
	data, stat, err := sess.Get(ctx, y.root)
	switch {
	case errors.Is(err, zk.NoNode):
		if err := y.makeRoot(ctx, sess); err != nil {
			return err
		}
	case err != nil:
		return err
	case string(data) == mark:
	case len(data) == 0 && stat.NumChildren == 0:
		// Another client has created an empty node for us.
		_, err := sess.Set(ctx, y.root, []byte(mark), stat.Version)
		if errors.Is(err, zk.BadVersion) { // another client has written to it meanwhile
			return y.build(ctx, sess)
		}
		if err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: the node at %s belongs to something else", ErrNotQueue, y.root)
	}
	// It only creates what is missing: a client that may only read can look at a queue that exists.
	there, _, err := sess.Children(ctx, y.root)
	if err != nil {
		return err
	}
	b := sess.Batch()
	var made []*zk.Future[zk.Created]
	for _, dir := range dirs {
		if !slices.Contains(there, dir) {
			made = append(made, b.CreateNode(y.node(y.path(dir), nil, zk.Persistent)))
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

func (y *layout) makeRoot(ctx context.Context, sess *zk.Session) error {
	_, err := sess.CreateNode(ctx, y.node(y.root, []byte(mark), zk.Persistent))
	if errors.Is(err, zk.NoNode) {
		dirs := attempt.Dirs{Keep: attempt.Forever, ACL: y.store.ACL, AnyACL: true} // mayUse has checked them
		if err := dirs.Make(ctx, sess, path.Dir(y.root)); err != nil {
			return err
		}
		_, err = sess.CreateNode(ctx, y.node(y.root, []byte(mark), zk.Persistent))
	}
	if errors.Is(err, zk.NodeExists) {
		return nil
	}
	return err
}

func (y *layout) node(path string, data []byte, mode zk.Mode) zk.Node {
	return zk.Node{Path: path, Data: data, Mode: mode, ACL: y.store.ACL}
}

// Ready lists are named so that their names sort in the order in which they are served.
const priorityOffset = 1000

func priorityName(priority int) string { return fmt.Sprintf("p%04d", priority+priorityOffset) }

// parsePriority returns the priority of the ready list with that name, and false if it is not the name of one.
func parsePriority(name string) (int, bool) {
	n, ok := segment.Number(name, "p", func(n int) string { return priorityName(n - priorityOffset) })
	p := n - priorityOffset
	return p, ok && p >= MostUrgent && p <= LeastUrgent
}

// isList reports whether the child of that name of dir, which is dirReady or dirDelayed, is a list.
func isList(dir, name string) (ok bool) {
	if dir == dirReady {
		_, ok = parsePriority(name)
	} else {
		_, ok = parseBucket(name)
	}
	return ok
}

// readyList returns the list of the ready items of a priority.
func (y *layout) readyList(priority int) *segment.List {
	dir := y.path(dirReady, priorityName(priority))
	return y.store.List(dir, dir+"/"+segment.ChangeName, false)
}

// deadLetters returns the list of the dead letters.
func (y *layout) deadLetters() *segment.List { return y.store.List(y.path(dirDead), "", false) }

// keptLists is how many lists that come and go a Queue remembers.
const keptLists = 1000

func (y *layout) dropLists() {
	if y.asked.Add(1)%keptLists == 0 {
		y.store.ForgetTemporary()
	}
}

// bucket returns the list of a bucket.
func (y *layout) bucket(b bucket) *segment.List {
	y.dropLists()
	return y.store.List(y.path(dirDelayed, b.name()), y.path(dirDelayed), true)
}
