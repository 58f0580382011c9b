package zk

// The deletion of a node together with everything below it.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	maxDeletes     = 256       // in one write
	maxDeleteBytes = 256 << 10 // of their paths
	maxLists       = 16        // in one write; each list may be as large as Config.MaxFrame
	maxPending     = 1 << 13   // nodes that are known and not deleted yet
	minChildren    = 64        // that are taken from a list, even if so many are pending
)

// DeleteAll deletes a node and all nodes below it, children first, and returns how many it has deleted. It is no error
// if the node does not exist, nor if other clients delete nodes at the same time (CURATOR-430). What they create below
// the node meanwhile is deleted, too: DeleteAll ends when the node itself is gone, or else with ctx, which may be never
// if others create nodes fast enough.
//
// The nodes are not deleted in one transaction. DeleteAll stops at the first node that the server refuses to delete,
// unless that is Temporary, or when ctx or the session ends; what it has deleted stays deleted, and the error names the
// node. If a connection breaks it goes on with the next one; a node whose reply was lost may be missing in the count,
// and is deleted once more if another client creates it meanwhile. After a lost reply the outcome of an error is
// Unknown, whatever the last reply was.
//
// It sends many deletions at once, and needs memory for about ten thousand names, however wide or deep the tree is;
// only a list of children that exceeds Config.MaxFrame fails, with ErrReplyTooLarge.
//
// It refuses "/", and "/zookeeper", which belongs to the servers.
func (s *Session) DeleteAll(ctx context.Context, path string) (deleted int, err error) {
	if err := s.client.mayDeleteAll(path); err != nil {
		return 0, err
	}
	var d deletion
	err = d.run(ctx, s, path)
	return d.deleted, d.stopped(path, err)
}

func (c *Client) mayDeleteAll(path string) error {
	if err := ValidatePath(path); err != nil {
		return refuse(wire.OpDelete, path, err)
	}
	if server := c.cfg.root.server(path); path == "/" || server == "/" || server == "/zookeeper" {
		err := fmt.Errorf("%w: DeleteAll does not delete %s and everything below it", BadArguments, path)
		return refuse(wire.OpDelete, path, err)
	}
	return nil
}

// run deletes the node and all nodes below it under one session.
func (d *deletion) run(ctx context.Context, s *Session, path string) (err error) {
	d.sess, d.pending = s, []*doomed{{name: path}}
	for len(d.pending) > 0 && err == nil {
		switch {
		case ctx.Err() != nil:
			err = refuse(wire.OpDelete, d.top().path(), contextError(ctx))
		case d.top().full:
			err = d.list(ctx)
		default:
			err = d.delete(ctx)
		}
	}
	d.lost = d.lost || err != nil && OutcomeOf(err) == Unknown
	return err
}

// stopped returns the error of a DeleteAll that err has stopped.
func (d *deletion) stopped(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && d.lost {
		err = &Error{Op: e.Op, Path: e.Path, Err: e.Err, Outcome: Unknown}
	}
	return fmt.Errorf("zk: deleteAll %s: stopped after %d nodes: %w", printable(path), d.deleted, err)
}

// A deletion is the state of a DeleteAll.
type deletion struct {
	sess *Session
	lost bool // a reply, so that more may be deleted than is known
	// pending is a stack: what is below a node lies above it, with nothing else in between.
	pending []*doomed
	deleted int
	tries   int // that servers have refused for now, in a row
}

// doomed is a node that is to be deleted. Its path is made from those above it when it is needed, because the paths of
// a deep tree are long.
type doomed struct {
	parent *doomed
	name   string // of the first node the whole path
	depth  int
	full   bool // it has children that are not pending
	listed bool // it had children
}

func (d *deletion) top() *doomed { return d.pending[len(d.pending)-1] }

func (d *deletion) pop() *doomed {
	n := d.top()
	d.pending[len(d.pending)-1] = nil
	d.pending = d.pending[:len(d.pending)-1]
	return n
}

// path returns the node's path.
func (n *doomed) path() string {
	size := len(n.name)
	for up := n.parent; up != nil; up = up.parent {
		size += len(up.name) + 1
	}
	b := make([]byte, size)
	for {
		size -= copy(b[size-len(n.name):], n.name)
		if n = n.parent; n == nil {
			return string(b)
		}
		size--
		b[size] = '/'
	}
}

// above reports whether n lies above the other node. It is false if that is nil.
func (n *doomed) above(other *doomed) bool {
	for other != nil && other.depth > n.depth {
		if other = other.parent; other == n {
			return true
		}
	}
	return false
}

// delete sends one batch of deletions and handles the replies.
func (d *deletion) delete(ctx context.Context) error {
	b := d.sess.Batch()
	nodes, replies := d.next(b)
	b.Send()
	var refused, later error
	var left []*doomed
	var full *doomed // the last one that had children
	for i, n := range nodes {
		_, err := replies[i].Get(ctx)
		switch {
		case err == nil:
			d.deleted++
		case errors.Is(err, NoNode):
		case errors.Is(err, NotEmpty):
			n.full = !n.above(full) // otherwise those below it are tried again before
			full = n
			left = append(left, n)
		case d.sess.canRepeat(ctx, err):
			d.lost = d.lost || !passes(err)
			left = append(left, n)
			later = err
		case refused == nil:
			refused = err
		}
	}
	slices.Reverse(left)
	d.pending = append(d.pending, left...)
	return d.rest(ctx, refused, later)
}

// rest returns refused. If there is none, but a request is to be repeated because of later, it pauses as need be.
func (d *deletion) rest(ctx context.Context, refused, later error) error {
	switch {
	case refused != nil:
	case passes(later):
		d.sess.pause(ctx, d.tries)
		d.tries++
	default:
		d.tries = 0
	}
	return refused
}

// next takes the next nodes from the stack and adds their deletions to b. The server executes them in order, so a node
// may follow its children. It leaves nodes that would most likely not be empty: those two levels above one that was not
// tried before.
func (d *deletion) next(b *Batch) (nodes []*doomed, replies []*Future[struct{}]) {
	var untried, listed *doomed // the last of each
	for size := 0; len(d.pending) > 0 && len(nodes) < maxDeletes && size < maxDeleteBytes; {
		n := d.top()
		if n.full || n.listed && n.above(listed) && listed.above(untried) {
			break
		}
		if n.listed {
			listed = n
		} else {
			untried = n
		}
		path := n.path()
		size += len(path)
		nodes, replies = append(nodes, d.pop()), append(replies, b.Delete(path, -1))
	}
	return nodes, replies
}

// list lists the children of the topmost nodes that have some, and puts them on the stack.
func (d *deletion) list(ctx context.Context) error {
	var nodes []*doomed
	for len(nodes) < maxLists && len(d.pending) > 0 && d.top().full {
		nodes = append(nodes, d.pop())
	}
	b := d.sess.Batch()
	replies := make([]*Future[Children], len(nodes))
	for i, n := range nodes {
		replies[i] = b.Children(n.path())
	}
	b.Send()
	room := max(minChildren, (maxPending-len(d.pending))/len(nodes))
	var failed, later error
	for i, n := range slices.Backward(nodes) {
		reply, err := replies[i].Get(ctx)
		switch {
		case errors.Is(err, NoNode):
			continue
		case d.sess.canRepeat(ctx, err):
			d.pending = append(d.pending, n)
			later = err
			continue
		case err != nil:
			if failed == nil || errors.Is(err, ErrReplyTooLarge) { // which broke the connection of those behind it
				failed = err
			}
			continue
		}
		n.full, n.listed = false, true
		d.pending = append(d.pending, n)
		// The others stay for the next list: then the deletion of the node is refused again.
		for _, name := range reply.Names[:min(room, len(reply.Names))] {
			d.pending = append(d.pending, &doomed{parent: n, name: name, depth: n.depth + 1})
		}
	}
	return d.rest(ctx, failed, later)
}
