package lock

// The limit of a semaphore, and storing it.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// ErrLimit reports that a Semaphore's stored limit differs from its own.
var ErrLimit = errors.New("the limits of the semaphore differ")

// Limit is the number of permits of a Semaphore, and how its users agree on it. The zero Limit is invalid.
type Limit struct {
	permits int
	stored  bool
	path    string // of the node that says it
}

// AgreedLimit is a number that all users of the semaphore pass, as with Curator's InterProcessSemaphoreV2. Nothing
// checks that they pass the same one: a user that passes a larger number has more permits.
func AgreedLimit(permits int) Limit { return Limit{permits: permits} }

// StoredLimit is a number that the first user of the semaphore stores, as decimal digits, in the node at its path,
// which is persistent. Users with another number get ErrLimit. To change the number, write it to the node: holders
// keep their permits, and users with the old number get ErrLimit from then on. It is the limit of kazoo's Semaphore.
//
// If another recipe has made the node, servers may remove it when it is empty. So it is given a child, __keep__; in the
// layout Kazoo, where each child is a permit, it is made anew, or refused with zk.NotEmpty if it has children.
func StoredLimit(permits int) Limit { return Limit{permits: permits, stored: true} }

// WatchedLimit is the number in the node at path, in the form of Curator's SharedCount: four bytes, big-endian. A
// counter.Counter with the layout counter.Int writes it. When it is raised, waiters come in; when it is lowered,
// holders keep their permits, and no waiter comes in until there are fewer. Permits are given out only under the number
// that the node has at that moment. Zero lets no one in. Without a node Acquire returns an error, also if the node is
// deleted while it waits.
func WatchedLimit(path string) Limit { return Limit{path: path} }

// check says what is wrong with the limit of a semaphore at path.
func (l Limit) check(path string) error {
	if l.path == "" {
		if l.permits < 1 {
			return attempt.Bad("lock: %s: limit must be positive: %d", path, l.permits)
		}
		return nil
	}
	if err := ValidatePath(l.path); err != nil {
		return err
	}
	if l.path == path {
		return attempt.Bad("lock: %s is the semaphore's own path; use another node for its limit", path)
	}
	return nil
}

// holds reports whether n permits can ever be given out. A watched limit may be raised, so it allows any number.
func (l Limit) holds(n int) bool { return l.path != "" || n <= l.permits }

// line returns how the limit of a semaphore at path is read.
func (l Limit) line(path string) line.Limit {
	switch {
	case l.stored:
		return line.Limit{Path: path, Read: func(data []byte, there bool) (int, error) {
			if !there || len(data) == 0 {
				return 0, line.ErrGone // another client has deleted it since it was stored
			}
			return l.permits, l.same(data)
		}}
	case l.path != "":
		return line.Limit{Path: l.path, Read: func(data []byte, there bool) (int, error) {
			if !there {
				return 0, fmt.Errorf("limit node %s does not exist; set it with a counter of layout Int", l.path)
			}
			return readCount(l.path, data)
		}}
	default:
		return line.Limit{Permits: l.permits}
	}
}

// same returns an error unless data is the stored limit.
func (l Limit) same(data []byte) error {
	switch n, err := strconv.Atoi(string(data)); {
	case err != nil:
		return fmt.Errorf("%w: stored %.40q, which is not a number, given %d", ErrLimit, data, l.permits)
	case n != l.permits:
		return fmt.Errorf("%w: stored %d, given %d", ErrLimit, n, l.permits)
	default:
		return nil
	}
}

// store writes the limit if it is to be stored and is not yet, and returns ErrLimit if another one is. The node is
// one that servers do not remove.
func (s *Semaphore) store(ctx context.Context, sess *zk.Session) error {
	if !s.limit.stored {
		return nil
	}
	node := zk.Node{Path: s.name, Data: strconv.AppendInt(nil, int64(s.limit.permits), 10), ACL: s.cfg.ACL}
	for {
		b := sess.Batch()
		limit, kept := b.Get(s.name), attempt.Secured(b, s.name)
		b.Send()
		stored, err := limit.Get(ctx)
		switch {
		case errors.Is(err, zk.NoNode):
			if _, err = sess.CreateNode(ctx, node); errors.Is(err, zk.NoNode) {
				dirs := attempt.Dirs{Keep: attempt.Forever, ACL: s.cfg.ACL, AnyACL: s.cfg.AnyACL, Above: true}
				err = dirs.Make(ctx, sess, path.Dir(s.name))
			}
		case err == nil && len(stored.Data) > 0:
			if err := s.limit.same(stored.Data); err != nil {
				return err
			}
			// Of kazoo's layout every child is a permit: the node is one that remake or kazoo has made.
			if s.cfg.Layout == Kazoo {
				return nil
			}
			if keep, err := kept.Get(ctx); err == nil && keep.Exists {
				return nil
			}
			err = attempt.Secure(ctx, sess, s.name, s.cfg.ACL)
			if err == nil || errors.Is(err, zk.NoAuth) { // which was for the client that has stored it
				return nil
			}
		case err == nil && s.cfg.Layout == Kazoo:
			err = remake(ctx, sess, node, stored.Stat)
		case err == nil:
			if err = attempt.Secure(ctx, sess, s.name, s.cfg.ACL); err == nil {
				_, err = sess.Set(ctx, s.name, node.Data, stored.Stat.Version)
			}
		}
		switch {
		case err == nil, errors.Is(err, zk.NodeExists), errors.Is(err, zk.BadVersion), errors.Is(err, zk.NoNode):
			// Another client was quicker. The next read has what counts, also after an answer that was lost.
		default:
			if err := attempt.Again(ctx, sess, err); err != nil {
				return err
			}
		}
	}
}

// remake replaces a node without a limit, which may be a container that another recipe has left, by one that lasts.
// Recipes make containers only with an open list, so the node has the same list afterwards; one with another list has
// been made by hand, and is set.
func remake(ctx context.Context, sess *zk.Session, node zk.Node, old zk.Stat) error {
	acl, _, err := sess.GetACL(ctx, node.Path)
	switch {
	case errors.Is(err, zk.NoAuth), err == nil && !slices.Equal(acl, zk.OpenACL()):
		_, err = sess.Set(ctx, node.Path, node.Data, old.Version)
		return err
	case err != nil:
		return err
	}
	node.ACL = nil
	_, err = sess.Multi(ctx, zk.DeleteOp(node.Path, old.Version), zk.CreateNodeOp(node))
	switch {
	case errors.Is(err, zk.NoAuth): // we may make no node there, so it is others' to keep
		_, err = sess.Set(ctx, node.Path, node.Data, old.Version)
	case errors.Is(err, zk.NotEmpty):
		const text = "%w: %s has children but no limit, so another recipe may use it: " +
			"choose another path, or set the node's data to the limit"
		err = fmt.Errorf(text, zk.NotEmpty, node.Path)
	}
	return err
}

// readCount reads what a counter with layout Int and Curator's SharedCount write.
func readCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, fmt.Errorf("limit at %s has %d bytes, want 4; set it with a counter of layout Int", path, len(data))
	}
	n := int32(binary.BigEndian.Uint32(data))
	if n < 0 {
		return 0, fmt.Errorf("limit at %s is negative: %d; set it with a counter of layout Int", path, n)
	}
	return int(n), nil
}
