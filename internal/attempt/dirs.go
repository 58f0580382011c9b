package attempt

// Parents.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// Keep says for how long directories are kept that nothing uses.
type Keep int

const (
	// WhileUsed makes containers, which servers remove when they are empty again: for nodes that come and go. With a
	// list of rights it is Forever: in a container that was removed, any client could make the path its own.
	WhileUsed Keep = iota
	// Forever makes persistent nodes: for state that lasts, and for programs that do not make their directories again.
	Forever
)

// MaxRemakes bounds how often nodes are made again whose parents vanish in between. Containers are collected when they
// are empty, so once is ordinary, and ten times in a row is another client deleting them.
const MaxRemakes = 10

// Vanishes says that another client deletes the parents of a path again and again.
func Vanishes(path string, err error) error {
	return fmt.Errorf("the parents of %s vanish as often as they are made: %w", path, err)
}

// Dirs says how directories are made.
type Dirs struct {
	Keep Keep
	ACL  []zk.ACL // of the directories; open if nil

	// AnyACL accepts directories that exist and grant more than ACL. Otherwise they are refused with an error that is
	// ErrWider, if ACL is not nil: a client that may delete or replace what is on the way to a node can make the node
	// its own, whatever the node's own list says.
	AnyACL bool

	// Above says that the directories are only on the way to the recipe's nodes: others may read and set them.
	Above bool
}

// Make makes the directories and what is missing above them, and the client's chroot if that is missing. It works from
// the leaves upward, because the ancestors may be closed to us (CURATOR-715). All that are wanted at a time leave in
// one write, so that many cost as many round trips as one.
//
// No request tells a container from a persistent node: so a directory that is there may be one, whatever Keep says.
// State that lasts needs a persistent child of the recipe's own below it (see Receipts).
func (d Dirs) Make(ctx context.Context, sess *zk.Session, dirs ...string) error {
	if err := d.Check(ctx, sess, dirs...); err != nil {
		return err
	}
	return d.make(ctx, sess, dirs...)
}

func (d Dirs) make(ctx context.Context, sess *zk.Session, dirs ...string) error {
	mode := zk.Container
	if d.Keep == Forever || d.ACL != nil {
		mode = zk.Persistent
	}
	vanished := 0
	for tries := 0; len(dirs) > 0; tries++ {
		r, err := d.try(ctx, sess, mode, dirs)
		if err == nil && len(r.exist) > 0 {
			err = d.Check(ctx, sess, r.exist...)
		}
		if err != nil {
			if err := again(ctx, sess, err, tries); err != nil {
				return err
			}
			continue
		}
		if len(r.above) > 0 {
			if vanished++; vanished > MaxRemakes {
				return Vanishes(dirs[0], zk.NoNode)
			}
			if err := d.make(ctx, sess, r.above...); err != nil {
				return err
			}
		}
		dirs, mode = r.missing, r.next
	}
	return nil
}

// tried is what became of directories that were to be made.
type tried struct {
	exist   []string // another client has made them
	missing []string // still
	above   []string // their parents, if these are missing
	next    zk.Mode  // to make them with
}

// try tries to make each of dirs. An error is about one of them, and says nothing of the others.
func (d Dirs) try(ctx context.Context, sess *zk.Session, mode zk.Mode, dirs []string) (r tried, refused error) {
	r.next = mode
	empty := []byte{} // not nil: kazoo's Semaphore fails on a path that has null for its data
	for dir, made := range Each(sess, dirs, func(b *zk.Batch, dir string) *zk.Future[zk.Created] {
		return b.CreateNode(zk.Node{Path: dir, Data: empty, Mode: mode, ACL: d.ACL})
	}) {
		_, err := made.Get(ctx)
		switch {
		case err == nil:
		case errors.Is(err, zk.NodeExists):
			r.exist = append(r.exist, dir)
		case errors.Is(err, zk.NoNode) && dir != "/":
			r.above = append(r.above, path.Dir(dir))
			r.missing = append(r.missing, dir)
		case errors.Is(err, zk.NoNode):
			refused = sess.CreateChroot(ctx, d.ACL)
		case errors.Is(err, zk.Unimplemented) && mode == zk.Container:
			r.next = zk.Persistent // a server before 3.5.3
			r.missing = append(r.missing, dir)
		case refused == nil || zk.Temporary(refused):
			refused = err // of several, one that does not pass
		}
	}
	slices.Sort(r.above)
	r.above = slices.Compact(r.above)
	return r, refused
}
