package treecmd

// turnstile import.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

func newImport(app *command.App) *cobra.Command {
	a := newAccess(app)
	var parents bool
	cmd := a.run(&cobra.Command{
		Use:   "import PATH",
		Short: "Create a node and everything below it from standard input",
		Long: `Creates at PATH what turnstile export has written. PATH must not exist. The whole input is checked before
anything is created. If an error comes later, or a signal, the command deletes what it has created, except
for nodes that another client has changed or added to, which it names. What SIGKILL or a crash of this
machine leaves behind stays; turnstile rm -r deletes it.` +
			fmt.Sprintf(exitCodes, "PATH exists, or its parent does not"),
		Example: `  turnstile import /app < app.jsonl
  turnstile import -p /copies/app < app.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef(cmd, "unexpected argument %q: the input comes from standard input", args[1])
			}
			if err := a.ParsePath(cmd, args, "/app"); err != nil {
				return err
			}
			return a.writable(cmd)
		},
	}, "/app", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		return (&importer{access: a, client: client, parents: parents}).run(ctx)
	})
	cmd.Flags().BoolVarP(&parents, "parents", "p", false, "create parents that are missing; they stay if the "+
		"import fails")
	return cmd
}

// importer creates a tree.
type importer struct {
	*access
	client  *zk.Client
	parents bool
	spool   *os.File
	batches []batch // that were or may have been created, in this order
	created int
}

// batch is a part of the input that is created in one transaction.
type batch struct {
	begin int // number of its first node in the input
	count int
}

// The bounds of a transaction. Servers accept requests of 1 MiB, unless jute.maxbuffer says otherwise.
const (
	batchNodes = 100
	batchBytes = 256 << 10
)

func (m *importer) run(ctx context.Context) (err error) {
	if m.spool, err = os.CreateTemp("", "turnstile-import-"); err != nil {
		return fmt.Errorf("the input must be kept in a file until it is checked: %w", err)
	}
	defer func() {
		_ = m.spool.Close()
		_ = os.Remove(m.spool.Name())
	}()
	if err := m.check(); err != nil {
		return &command.Error{
			Code: command.ExitData, Err: fmt.Errorf("standard input: %w", err),
			Hint: "nothing was created",
		}
	}
	if m.parents {
		if err := m.makeParents(ctx); err != nil {
			return err
		}
	}
	if err = m.create(ctx); err != nil {
		return m.undo(ctx, err)
	}
	return m.App.Report(m.AsJSON, map[string]any{"path": m.Path, "created": m.created}, "")
}

// check reads the whole input, keeps it in the file and checks it.
func (m *importer) check() error {
	in, err := newReader(io.TeeReader(m.App.Stdin, m.spool))
	if err != nil {
		return err
	}
	for {
		node, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case zk.ValidatePath(m.Path+node.Path) != nil:
			return fmt.Errorf("line %d: %s%s is not a path", in.n, m.Path, node.Path)
		}
	}
}

// nodes calls f with the nodes from the given one on, until it returns false.
func (m *importer) nodes(from int, f func(zk.Node) bool) error {
	if _, err := m.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in, err := newReader(m.spool)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		node, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		node.Path = m.Path + node.Path
		if n >= from && !f(node) {
			return nil
		}
	}
}

func (m *importer) makeParents(ctx context.Context) error {
	parent := m.Path[:max(1, lastSlash(m.Path))]
	_, err := m.client.CreateAll(ctx, zk.Node{Path: parent, ACL: m.Connection.ACL()},
		zk.Parents{ACL: m.Connection.ACL()})
	if errors.Is(err, zk.NodeExists) {
		return nil
	}
	return err
}

// create creates all nodes, parents first, a transaction for every batch.
func (m *importer) create(ctx context.Context) error {
	var ops []zk.Op
	size, number := 0, 0
	var failure error
	flush := func() bool {
		if len(ops) == 0 {
			return true
		}
		m.batches = append(m.batches, batch{begin: number - len(ops), count: len(ops)})
		failure = m.send(ctx, ops)
		ops, size = ops[:0], 0
		return failure == nil
	}
	err := m.nodes(0, func(node zk.Node) bool {
		if len(ops) == batchNodes || len(ops) > 0 && size+len(node.Data)+len(node.Path) > batchBytes {
			if !flush() {
				return false
			}
		}
		ops = append(ops, zk.CreateNodeOp(node))
		size += len(node.Data) + len(node.Path)
		number++
		return true
	})
	if err == nil && failure == nil {
		flush()
	}
	if failure != nil {
		return failure
	}
	return err
}

// send creates the nodes of one batch. A transaction whose answer is lost is not repeated before it is known what
// became of it: its first node shows that, because it was created with the others or not at all. Only this command
// creates nodes there, as far as it can know.
func (m *importer) send(ctx context.Context, ops []zk.Op) error {
	for unsure := false; ; {
		sess, err := m.client.Session(ctx)
		if err != nil {
			return err
		}
		_, err = sess.Multi(ctx, ops...)
		switch {
		case err == nil:
			m.created += len(ops)
			return nil
		case unsure && errors.Is(err, zk.NodeExists):
			// A partition has delivered the first attempt late (docs/decisions/029).
			m.created += len(ops)
			return nil
		case zk.OutcomeOf(err) == zk.NotSent && ctx.Err() == nil && sess.Context().Err() == nil:
			continue
		case zk.OutcomeOf(err) != zk.Unknown || ctx.Err() != nil:
			return m.refused(err)
		}
		unsure = true
		there, err := m.applied(ctx, ops[0].Path())
		switch {
		case err != nil:
			return err
		case there:
			m.created += len(ops)
			return nil
		}
	}
}

// applied reports whether a transaction with a lost answer has created its first node. It looks behind a write of the
// live session, which is applied after everything that was on its way before.
func (m *importer) applied(ctx context.Context, path string) (bool, error) {
	sess, err := m.client.Session(ctx)
	if err != nil {
		return false, err
	}
	err = sess.Delete(ctx, path+"-none", -1)
	if err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.NoAuth) {
		return false, err
	}
	_, there, err := sess.Exists(ctx, path)
	return there, err
}

// refused says why a transaction was refused.
func (m *importer) refused(err error) error {
	if zk.OutcomeOf(err) == zk.Unknown {
		return err
	}
	m.batches = m.batches[:len(m.batches)-1] // it has created nothing
	if len(m.batches) == 0 && errors.Is(err, zk.NodeExists) {
		return &command.Error{
			Code: command.ExitMissing, Err: fmt.Errorf("%s exists: import creates it", m.Path),
			Hint: "choose another PATH, or delete it with turnstile rm -r",
		}
	}
	if len(m.batches) == 0 && errors.Is(err, zk.NoNode) {
		return &command.Error{
			Code: command.ExitMissing, Err: fmt.Errorf("the parent of %s does not exist", m.Path),
			Hint: "see --parents",
		}
	}
	return err
}

// undo deletes what was created, children first, and returns why. It has a time of its own: a signal has ended ctx.
// Nodes that another client has set since they were created stay, as do those that have got other children.
func (m *importer) undo(ctx context.Context, why error) error {
	if len(m.batches) == 0 {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	deleted, left := 0, 0
	var first string
	for len(m.batches) > 0 {
		last := m.batches[len(m.batches)-1]
		m.batches = m.batches[:len(m.batches)-1]
		var paths []string
		err := m.nodes(last.begin, func(node zk.Node) bool {
			paths = append(paths, node.Path)
			return len(paths) < last.count
		})
		for i := len(paths) - 1; i >= 0 && err == nil; i-- {
			switch err = m.removeCreated(ctx, paths[i]); {
			case err == nil:
				deleted++
			case errors.Is(err, zk.NoNode): // it was never created, or an answer was lost
				err = nil
			case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NotEmpty):
				left++
				first, err = cmp.Or(first, paths[i]), nil
			}
		}
		if err != nil {
			return fmt.Errorf("%w; not all of what was created could be deleted again: %w; turnstile rm -r %s "+
				"deletes it",
				m.Explain(ctx, m.client, why), err, m.Path)
		}
	}
	m.App.Say("deleted %s again", command.Plural(deleted, "node"))
	if left > 0 {
		return fmt.Errorf("%w; %s stay, such as %s, because another client has changed them or added to them", why,
			command.Plural(left, "node"), first)
	}
	return why
}

// undoTime is how long a failed import tries to delete what it has created.
const undoTime = time.Minute

// removeCreated deletes a node unless another client has changed it.
func (m *importer) removeCreated(ctx context.Context, path string) error {
	for {
		err := m.client.Delete(ctx, path, 0)
		if err == nil || ctx.Err() != nil || zk.OutcomeOf(err) == zk.Refused {
			return err
		}
	}
}

func lastSlash(path string) int {
	i := len(path) - 1
	for i > 0 && path[i] != '/' {
		i--
	}
	return i
}
