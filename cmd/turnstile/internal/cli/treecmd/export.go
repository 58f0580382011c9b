package treecmd

// turnstile export.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

func newExport(app *command.App) *cobra.Command {
	a := newAccess(app)
	return a.run(&cobra.Command{
		Use:   "export PATH",
		Short: "Write a node and everything below it to standard output",
		Long: `Writes a node and everything below it, with data and access control lists, as one line of JSON each, for
turnstile import. Servers do not tell which nodes are containers or have a TTL, so those are written like
others. Sequence numbers continue in the copy. Ephemeral nodes are left out, and what is in them is lost with
their sessions anyway. The nodes are not read all at once: if one changed meanwhile, the command says so and
the last line has it; run it again, or stop what writes. The connection needs the right to read every
node.` + fmt.Sprintf(exitCodes, "no such node"),
		Example: `  turnstile export /app > app.jsonl
  turnstile export --connect old:2181 /app | turnstile import --connect new:2181 /app`,
	}, "/app", "nothing else: the output is JSON", func(ctx context.Context, client *zk.Client) error {
		return (&exporter{access: a, client: client, out: bufio.NewWriter(app.Stdout)}).run(ctx)
	})
}

// exporter writes a tree.
type exporter struct {
	*access
	client  *zk.Client
	sess    *zk.Session
	out     *bufio.Writer
	trailer trailerJSON
}

func (x *exporter) run(ctx context.Context) error {
	var err error
	if x.sess, err = x.synced(ctx, x.client); err != nil {
		return err
	}
	if x.Path == "/" { // with a chroot it is a node like others
		_, servers, err := x.sess.Exists(ctx, "/zookeeper")
		switch {
		case err != nil:
			return err
		case servers:
			return misuse("/ holds the servers' own nodes: export the nodes below it, one by one")
		}
	}
	// The watch tells of changes. An older server has none that lasts; then each list and each node is read only once,
	// and the trailer says that the tree may have changed.
	changes, err := x.sess.WatchRecursive(ctx, x.Path)
	switch {
	case errors.Is(err, zk.Unimplemented):
		x.trailer.Changed = true
	case err != nil:
		return err
	default:
		defer changes.Close()
	}
	if err := x.line(headerJSON{format, x.Path, command.Timestamp(time.Now())}); err != nil {
		return err
	}
	if err := x.nodes(ctx, []string{""}); err != nil {
		return err
	}
	if x.trailer.Nodes == 0 {
		return &zk.Error{Op: "export", Path: x.Path, Err: zk.NoNode}
	}
	// A read behind the last one: the server sends the events of everything that it has shown before its answer.
	if err := x.sess.Sync(ctx, x.Path); err != nil {
		return err
	}
	if _, _, err := x.sess.Exists(ctx, x.Path); err != nil {
		return err
	}
	if changes != nil {
		_, some := changes.Poll() // also if the connection was lost, and perhaps events with it
		x.trailer.Changed = some
	}
	x.trailer.End = true
	if err := x.line(x.trailer); err != nil {
		return err
	}
	if x.trailer.Ephemerals > 0 {
		x.App.Say("left out %s", command.Plural(x.trailer.Ephemerals, "ephemeral node"))
	}
	if x.trailer.Changed {
		x.App.Complain("%s changed meanwhile, or it is not known that it did not: the copy may mix states of "+
			"different times", x.Path)
	}
	return command.OutputError(x.out.Flush())
}

func (x *exporter) line(v any) error {
	b, err := command.JSON(v)
	if err != nil {
		return err
	}
	if _, err = x.out.Write(append(b, '\n')); err != nil {
		return command.OutputError(err)
	}
	return nil
}

// exported is a node as it was read.
type exported struct {
	data     []byte
	acl      []zk.ACL
	children []string
	stat     zk.Stat
	gone     bool
	err      error
}

// at returns the path of a node from its path below the root.
func (x *exporter) at(path string) string {
	if path == "" {
		return x.Path
	}
	return strings.TrimSuffix(x.Path, "/") + path
}

// nodes writes some siblings, each with everything below it. It has a few siblings' data in memory at each level.
func (x *exporter) nodes(ctx context.Context, paths []string) error {
	const together = 16
	for len(paths) > 0 {
		chunk := paths[:min(together, len(paths))]
		paths = paths[len(chunk):]
		read := make([]exported, len(chunk))
		var wg sync.WaitGroup
		for i, path := range chunk {
			wg.Go(func() { read[i] = x.read(ctx, x.at(path)) })
		}
		wg.Wait()
		for i := range read { // the others' errors are that it has broken the connection
			if errors.Is(read[i].err, zk.ErrReplyTooLarge) {
				return read[i].err
			}
		}
		for i, path := range chunk {
			if err := x.write(ctx, path, &read[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a node. What it asks for leaves together; the watch tells if the node changes in between.
func (x *exporter) read(ctx context.Context, path string) (e exported) {
	var wg sync.WaitGroup
	var aclErr, listErr error
	wg.Go(func() { e.acl, _, aclErr = x.sess.GetACL(ctx, path) })
	wg.Go(func() { e.children, _, listErr = x.sess.Children(ctx, path) })
	e.data, e.stat, e.err = x.sess.Get(ctx, path)
	wg.Wait()
	for _, err := range []error{e.err, aclErr, listErr} {
		if errors.Is(err, zk.NoNode) {
			e.gone, e.err = true, nil
			return e
		}
		if e.err == nil || errors.Is(err, zk.ErrReplyTooLarge) {
			e.err = err
		}
	}
	return e
}

// write writes a node and what is below it.
func (x *exporter) write(ctx context.Context, path string, e *exported) error {
	switch {
	case e.err != nil:
		return e.err
	case e.gone: // the watch tells of it
		return nil
	}
	if modeOf(e.stat) == ephemeral {
		if path == "" {
			return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("%s is ephemeral: it cannot be exported",
				x.Path)}
		}
		x.trailer.Ephemerals++
		return nil
	}
	for _, entry := range e.acl {
		if command.HidesHash(entry.ID) {
			return &command.Error{
				Code: command.ExitNoAccess, Err: fmt.Errorf("the server hides a password's hash in the list of %s",
					x.at(path)),
				Hint: "it shows them to clients with the right to administrate the node: see --auth",
			}
		}
	}
	line := exportedJSON{
		Path: &path, ACL: newACLJSON(e.acl), Next: creations(e.stat), Set: e.stat.Version != 0,
		dataJSON: newDataJSON(e.data),
	}
	if err := x.line(line); err != nil {
		return err
	}
	x.trailer.Nodes++
	below := sorted(path, e.children)
	e.data, e.acl, e.children = nil, nil, nil
	return x.nodes(ctx, below)
}
