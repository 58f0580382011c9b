package treecmd

// Sequence numbers that continue in a copy.

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

// creations returns how many children were ever created under a node, which is the sequence number of the next one. A
// server reports twice that number, less the children that there are, as Cversion, in 32 bits.
func creations(s zk.Stat) int64 { return (int64(uint32(s.Cversion)) + int64(s.NumChildren)) / 2 }

// number says which sequence number a node's next child is to have.
type number struct {
	path string
	next int64
}

// counting finds the nodes of a stream under which more children were created than the stream has. It holds one way
// from the root, and what it has found.
type counting struct {
	limit   int
	way     []counted
	found   []number
	missing int64
	most    number // of the node that misses most
}

type counted struct {
	number
	children int64
}

// add adds a node, which stands behind its parent.
func (c *counting) add(path string, next int64) {
	depth := strings.Count(path, "/")
	c.leave(depth)
	if depth > 0 {
		c.way[depth-1].children++
	}
	c.way = append(c.way, counted{number: number{path, next}})
}

// leave ends the nodes at this depth and below it: no more children of theirs follow.
func (c *counting) leave(depth int) {
	for len(c.way) > depth {
		last := c.way[len(c.way)-1]
		c.way = c.way[:len(c.way)-1]
		missing := last.next - last.children
		if missing <= 0 || c.limit == 0 {
			continue
		}
		c.found = append(c.found, last.number)
		c.missing += missing
		if last.next > c.most.next {
			c.most = last.number
		}
	}
}

// end returns the nodes whose numbers are to continue, or an error if that takes too many creations. The paths are
// below root.
func (c *counting) end(root string) ([]number, error) {
	c.leave(0)
	if c.missing > int64(c.limit) {
		return nil, fmt.Errorf("to continue its sequence numbers takes %d creations, more than --sequence-limit %d: "+
			"the next one of %s is %d", c.missing, c.limit, root+c.most.path, c.most.next)
	}
	return c.found, nil
}

// The bounds of a transaction that moves a number.
const (
	pairsAtOnce = 500
	opBytes     = 80 // of a request, besides its path
)

// continueNumbers creates and deletes children until the next sequence numbers are those of the original. Both are in
// one transaction, so that nothing of it is ever seen or left.
func (m *importer) continueNumbers(ctx context.Context) error {
	for _, n := range m.numbers {
		if err := m.continueNumber(ctx, m.Path+n.path, n.next); err != nil {
			return fmt.Errorf("sequence numbers of %s: %w", m.Path+n.path, err)
		}
	}
	return nil
}

func (m *importer) continueNumber(ctx context.Context, path string, next int64) error {
	child := path + "/turnstile-import-" + rand.Text()
	most := max(1, min(pairsAtOnce, batchBytes/(2*(len(child)+opBytes))))
	for unsure := false; ; {
		sess, err := m.client.Session(ctx)
		if err != nil {
			return err
		}
		if unsure {
			err := fence(ctx, sess, path)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				continue // under the next session
			}
			unsure = false
		}
		stat, there, err := sess.Exists(ctx, path)
		switch {
		case err != nil && zk.OutcomeOf(err) != zk.Refused && ctx.Err() == nil:
			continue // under the next session
		case err != nil:
			return err
		case !there:
			return zk.NoNode
		}
		missing := next - creations(stat)
		if missing <= 0 {
			return nil
		}
		var ops []zk.Op
		for range min(missing, int64(most)) {
			ops = append(ops, zk.CreateNodeOp(zk.Node{Path: child, ACL: zk.OpenACL()}), zk.DeleteOp(child, 0))
		}
		if _, err = sess.Multi(ctx, ops...); err == nil {
			continue
		}
		if ctx.Err() != nil || zk.OutcomeOf(err) == zk.Refused {
			return err
		}
		unsure = true // the next look counts what is done of it, when nothing of it is on its way any more
	}
}
