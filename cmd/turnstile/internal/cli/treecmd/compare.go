package treecmd

// Comparing what is there with a stream, and going on with an import that was interrupted.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// differenceJSON is a node that is not as in the stream.
type differenceJSON struct {
	Path string `json:"path"`
	What string `json:"what"`
}

// comparison is what "turnstile import --resume --json" and --compare print.
type comparison struct {
	Path        string           `json:"path"`
	Created     int              `json:"created"`
	Same        int              `json:"same"`
	Differ      int              `json:"differ"`
	Differences []differenceJSON `json:"differences"` // the first ones
}

// What a node is.
const (
	isMissing  = "missing"
	isSame     = ""
	otherData  = "other data"
	otherACL   = "another access list"
	unreadable = "these credentials may not read it"
	tooLarge   = "too large for the server: see jute.maxbuffer"
)

// maxDifferences is how many differences are shown one by one.
const maxDifferences = 1000

func (c *comparison) differs(path, what string) {
	c.Differ++
	if len(c.Differences) < maxDifferences {
		c.Differences = append(c.Differences, differenceJSON{path, what})
	}
}

// found is a node as it is.
type found struct {
	what string
	stat zk.Stat
}

// look reads nodes and says what they are.
func look(ctx context.Context, sess *zk.Session, nodes []entry) ([]found, error) {
	all := make([]found, len(nodes))
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() { all[i], errs[i] = lookAt(ctx, sess, &nodes[i]) })
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

func lookAt(ctx context.Context, sess *zk.Session, node *entry) (f found, err error) {
	var wg sync.WaitGroup
	var acl []zk.ACL
	var aclErr error
	wg.Go(func() { acl, _, aclErr = sess.GetACL(ctx, node.Path) })
	data, stat, err := sess.Get(ctx, node.Path)
	wg.Wait()
	f.stat = stat
	switch {
	case errors.Is(err, zk.NoNode), errors.Is(aclErr, zk.NoNode):
		f.what = isMissing
	case errors.Is(err, zk.NoAuth), err == nil && errors.Is(aclErr, zk.NoAuth):
		f.what = unreadable
	case err != nil:
		return f, err
	case aclErr != nil:
		return f, aclErr
	case !bytes.Equal(data, node.Data):
		f.what = otherData
	case !slices.EqualFunc(acl, node.ACL, sameEntry):
		f.what = otherACL
	}
	return f, nil
}

// sameEntry reports whether an entry of a list is the one that it should be, as far as the server shows it.
func sameEntry(is, want zk.ACL) bool {
	if user, hidden := strings.CutSuffix(is.ID.ID, command.HiddenHash); hidden && is.ID.Scheme == "digest" {
		wanted, _, _ := strings.Cut(want.ID.ID, ":")
		return is.Perms == want.Perms && want.ID.Scheme == is.ID.Scheme && user == wanted
	}
	return is == want
}

// sendMissing creates those of the nodes that are missing. A node that the server does not take for its size is left
// out, with everything below it: the comparison lists them.
func (m *importer) sendMissing(ctx context.Context, nodes []entry) error {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(node entry) bool {
		return slices.ContainsFunc(m.large, func(path string) bool { return strings.HasPrefix(node.Path, path+"/") })
	})
	sess, err := m.client.Session(ctx)
	if err != nil {
		return err
	}
	all, err := look(ctx, sess, nodes)
	if err != nil {
		return err
	}
	var missing []entry
	for i, f := range all {
		if f.what == isMissing {
			missing = append(missing, nodes[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = m.send(ctx, missing)
	if exit, ok := errors.AsType[*command.Error](err); ok && exit.Code == command.ExitData && len(missing) == 1 {
		m.large = append(m.large, missing[0].Path)
		return nil
	}
	return err
}

// compareAll compares every node of the stream with what is there, and prints the result.
func (m *importer) compareAll(ctx context.Context) error {
	sess, err := m.synced(ctx, m.client)
	if err != nil {
		return err
	}
	c := &comparing{m: m, sess: sess, comparison: comparison{Path: m.Path, Created: m.created}}
	var failure error
	err = m.nodes(func(node entry, _ int64) bool {
		c.nodes = append(c.nodes, node)
		if c.size += sizeOf(&node.Node); len(c.nodes) >= atOnce || c.size > batchBytes*4 {
			failure = c.flush(ctx)
		}
		return failure == nil
	})
	if err == nil && failure == nil {
		failure = c.flush(ctx)
	}
	if err := errors.Join(err, failure); err != nil {
		return err
	}
	c.leave(0)
	return c.report()
}

// comparing is a comparison that is being made.
type comparing struct {
	comparison
	m     *importer
	sess  *zk.Session
	nodes []entry
	size  int
	way   []compared // from the root to the last node
}

// compared is a node whose children in the stream are counted.
type compared struct {
	path     string
	children int32 // in the stream
	there    int32
}

func (c *comparing) flush(ctx context.Context) error {
	all, err := look(ctx, c.sess, c.nodes)
	if err != nil {
		return err
	}
	for i, f := range all {
		node := &c.nodes[i]
		depth := strings.Count(node.Path[len(c.m.Path):], "/")
		c.leave(depth)
		if depth > 0 {
			c.way[depth-1].children++
		}
		c.way = append(c.way, compared{path: node.Path, there: f.stat.NumChildren})
		what := f.what
		switch next := creations(f.stat); {
		case what == isMissing && slices.Contains(c.m.large, node.Path):
			what = tooLarge
		case what == isSame && c.m.limit > 0 && next < node.next:
			what = fmt.Sprintf("its next sequence number is %d, not %d", next, node.next)
		}
		if what == isSame {
			c.Same++
		} else {
			c.differs(node.Path, what)
		}
	}
	c.nodes, c.size = c.nodes[:0], 0
	return nil
}

// leave ends the nodes at this depth and below it: no more children of theirs follow.
func (c *comparing) leave(depth int) {
	for len(c.way) > depth {
		last := c.way[len(c.way)-1]
		c.way = c.way[:len(c.way)-1]
		if more := last.there - last.children; more > 0 {
			c.differs(last.path, command.Plural(int(more), "other node")+" below it")
		}
	}
}

// report prints the result. It is an error if something differs.
func (c *comparing) report() error {
	if c.m.AsJSON {
		if c.Differences == nil {
			c.Differences = []differenceJSON{}
		}
		if err := c.m.App.JSON(c.comparison); err != nil {
			return err
		}
	} else {
		for _, d := range c.Differences {
			if err := c.m.App.Printf("%s: %s\n", d.Path, d.What); err != nil {
				return err
			}
		}
	}
	c.m.App.Say("%s created, %s as in the input", command.Plural(c.Created, "node"), command.Plural(c.Same, "node"))
	if c.Differ > 0 {
		return &command.Error{
			Code: command.ExitMissing,
			Err:  fmt.Errorf("%s: %s from the input", c.Path, command.Plural(c.Differ, "difference")),
		}
	}
	return nil
}
