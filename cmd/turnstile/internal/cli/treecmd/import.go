package treecmd

// turnstile import.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

func newImport(app *command.App) *cobra.Command {
	a := newAccess(app)
	m := &importer{access: a}
	cmd := a.run(&cobra.Command{
		Use:   "import PATH",
		Short: "Create a node and everything below it from standard input",
		Long: `Creates at PATH what turnstile export has written. PATH must not exist. The whole input is checked before
anything is created. If an error comes later, or a signal, the command deletes what it has created, except
for nodes that another client has changed or added to, which it names. What SIGKILL or a crash of this
machine leaves behind stays; turnstile rm -r deletes it.

Sequence numbers continue where the original was: a queue or any other node with numbered children works as the
original. Only the creation of children moves a node's next number, so the command creates and deletes as many
as the original had; --sequence-limit says how many are too many.

For large trees --resume creates what is missing and passes over what is there, so that an import that was
interrupted goes on. It deletes and overwrites nothing. A node that the server does not take for its size is left
out. At the end everything is read back, and nodes that differ from the input are listed, with exit code 1.
--compare does only that.` +
			fmt.Sprintf(exitCodes, "PATH exists, or its parent does not; 65 the input is wrong"),
		Example: `  turnstile import /app < app.jsonl
  turnstile import -p /copies/app < app.jsonl
  turnstile import --compare /copies/app < app.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef(cmd, "unexpected argument %q: the input comes from standard input", args[1])
			}
			if err := a.ParsePath(cmd, args, "/app"); err != nil {
				return err
			}
			if m.limit < 0 {
				return command.Usagef(cmd, "--sequence-limit must not be negative: %d", m.limit)
			}
			return a.writable(cmd)
		},
	}, "/app", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		m.client = client
		return m.run(ctx)
	})
	flags := cmd.Flags()
	flags.IntVar(&m.limit, "sequence-limit", 1_000_000, "refuse input whose sequence numbers need more than `N` "+
		"creations to continue; 0 lets them begin again")
	flags.BoolVarP(&m.parents, "parents", "p", false, "create parents that are missing; they stay if the "+
		"import fails")
	flags.BoolVar(&m.resume, "resume", false, "create what is missing, and compare everything at the end")
	flags.BoolVar(&m.compare, "compare", false, "create nothing, and list the nodes that differ from the input")
	command.Rivals(cmd, "resume", "compare")
	return cmd
}

// importer creates a tree.
type importer struct {
	*access
	client  *zk.Client
	parents bool
	resume  bool
	compare bool
	limit   int // of the creations that continue sequence numbers
	spool   *os.File
	numbers []number        // what sequence numbers are to continue
	unset   map[string]bool // nodes that may not be set, and have version 0
	batches []batch         // that were or may have been created, in this order
	created int
	large   []string // that the server does not take, with --resume
}

// batch is a part of the input that is created in one transaction.
type batch struct {
	begin int64 // where its first node is in the file
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
	// Nothing is left of it, however this process ends. Windows does not remove open files.
	removed := os.Remove(m.spool.Name())
	defer func() {
		_ = m.spool.Close()
		if removed != nil {
			_ = os.Remove(m.spool.Name())
		}
	}()
	switch _, err := command.Reading(ctx, func() ([]byte, error) { return nil, m.check() }); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &command.Error{
			Code: command.ExitData, Err: fmt.Errorf("standard input: %w", err),
			Hint: "nothing was created",
		}
	}
	if m.compare {
		return m.compareAll(ctx)
	}
	if m.parents || lastSlash(m.Path) == 0 { // at least the chroot
		if err := m.makeParents(ctx); err != nil {
			return err
		}
	}
	if err = m.create(ctx); err == nil {
		err = m.continueNumbers(ctx)
	}
	switch {
	case err != nil && m.resume:
		return besides(m.Explain(ctx, m.client, err), errors.New("what was created stays, and --resume goes on"))
	case err != nil:
		return m.undo(ctx, err)
	}
	m.App.Did.Store(true)
	if m.resume {
		return m.compareAll(ctx)
	}
	return m.App.Report(m.AsJSON, map[string]any{"path": m.Path, "created": m.created}, "")
}

// check reads the whole input, keeps it in the file and checks it.
func (m *importer) check() error {
	in, err := newReader(io.TeeReader(m.App.Stdin, m.spool))
	if err != nil {
		return err
	}
	c := counting{limit: m.limit}
	for {
		node, err := in.read()
		switch {
		case errors.Is(err, io.EOF):
			if in.torn {
				m.App.Complain("the tree changed while it was exported, or it is not known that it did not: the copy " +
					"may mix states of different times")
			}
			m.numbers, err = c.end(m.Path)
			return err
		case err != nil:
			return err
		case zk.ValidatePath(m.Path+node.Path) != nil:
			return fmt.Errorf("line %d: %s%s is not a path", in.n, m.Path, node.Path)
		}
		c.add(node.Path, node.next)
	}
}

// nodes calls f with each node, and with where it is in the file, until f returns false.
func (m *importer) nodes(f func(node entry, at int64) bool) error {
	if _, err := m.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in, err := newReader(m.spool)
	if err != nil {
		return err
	}
	for {
		at := in.offset
		node, err := in.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		node.Path = m.Path + node.Path
		if !f(node, at) {
			return nil
		}
	}
}

// makeParents creates what is missing above PATH, and the chroot of --connect.
func (m *importer) makeParents(ctx context.Context) error {
	parent := m.Path[:max(1, lastSlash(m.Path))]
	if parent == "/" {
		_, there, err := m.client.Exists(ctx, parent)
		switch {
		case there, errors.Is(err, zk.NoAuth): // which only a node that exists can say
			return nil
		case err != nil:
			return err
		}
		return createChroot(ctx, m.client, m.Connection.ACL())
	}
	_, err := createNode(ctx, m.client, zk.Node{Path: parent, ACL: m.Connection.ACL()}, true)
	if errors.Is(err, zk.NodeExists) {
		return nil
	}
	return err
}

// create creates all nodes, parents first, a transaction for every batch.
func (m *importer) create(ctx context.Context) error {
	if err := m.client.Sync(ctx, m.Path); err != nil {
		return err
	}
	if _, there, err := m.client.Exists(ctx, m.Path); err != nil || there && !m.resume {
		return cmp.Or(err, m.exists())
	}
	var nodes []entry
	var begin int64
	size := 0
	var failure error
	flush := func() bool { // there are nodes: no stream is without
		m.batches = append(m.batches, batch{begin, len(nodes)})
		if m.resume {
			failure = m.sendMissing(ctx, nodes)
		} else {
			failure = m.send(ctx, nodes)
		}
		nodes, size = nodes[:0], 0
		return failure == nil
	}
	err := m.nodes(func(node entry, at int64) bool {
		more := sizeOf(&node.Node)
		if len(nodes) == batchNodes || len(nodes) > 0 && size+more > batchBytes {
			if !flush() {
				return false
			}
		}
		if len(nodes) == 0 {
			begin = at
		}
		nodes = append(nodes, node)
		size += more
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

// noVersion is a version that no node has: a deletion with it is refused.
const noVersion = math.MinInt32

// sizeOf is about how much of a request the creation of a node is.
func sizeOf(node *zk.Node) int {
	size := len(node.Path) + len(node.Data) + 32
	for _, entry := range node.ACL {
		size += len(entry.ID.Scheme) + len(entry.ID.ID) + 12
	}
	return size
}

// send creates the nodes of one batch. A transaction whose answer is lost is not repeated before it is known what
// became of it: see applied.
func (m *importer) send(ctx context.Context, nodes []entry) error {
	ops, size := creationOf(nodes)
	for lost := 0; ; {
		sess, err := m.client.Session(ctx)
		if err != nil {
			return err
		}
		_, err = sess.Multi(ctx, ops...)
		switch {
		case err == nil:
			m.created += len(nodes)
			return nil
		case lost > 0 && errors.Is(err, zk.NodeExists):
			// A partition may have delivered the first attempt late (docs/decisions/029-barrier.md).
		case zk.OutcomeOf(err) == zk.NotSent && ctx.Err() == nil:
			continue
		case m.mayNotSet(err, nodes):
			ops, size = creationOf(nodes)
			continue
		case zk.OutcomeOf(err) != zk.Unknown || ctx.Err() != nil:
			return m.refused(err)
		default:
			lost++
		}
		done, uncertain := m.applied(ctx, nodes)
		switch {
		case uncertain != nil:
			return uncertain
		case done:
			m.created += len(nodes)
			return nil
		case zk.OutcomeOf(err) == zk.Refused: // another client has created one of them
			return m.refused(err)
		case lost > 1 && size > usualLimit-1024:
			m.batches = m.batches[:len(m.batches)-1] // it has created nothing
			return notWritten(err, nodes[0].Path, size)
		}
	}
}

// creationOf returns the operations that create nodes, and about how large they are.
func creationOf(nodes []entry) (ops []zk.Op, size int) {
	for _, node := range nodes {
		size += sizeOf(&node.Node)
		if node.version == 0 {
			ops = append(ops, zk.CreateNodeOp(node.Node))
			continue
		}
		data := node.Data
		node.Data = nil
		ops = append(ops, zk.CreateNodeOp(node.Node), zk.SetOp(node.Path, data, 0))
		size += sizeOf(&node.Node)
	}
	return ops, size
}

// mayNotSet reports whether err is the refusal to set one of the nodes, whose list does not let us. The node is then
// created with its data, and counts as never set.
func (m *importer) mayNotSet(err error, nodes []entry) bool {
	failed, ok := errors.AsType[*zk.MultiError](err)
	if !ok || !errors.Is(failed, zk.NoAuth) || strings.HasPrefix(failed.Op, "create") {
		return false
	}
	for i := range nodes {
		if nodes[i].Path == failed.Path && nodes[i].version != 0 {
			nodes[i].version = 0
			if m.unset == nil {
				m.unset = make(map[string]bool)
			}
			m.unset[failed.Path] = true
			return true
		}
	}
	return false
}

// fence returns nil when everything is done, or never will be, that was sent for the live session before: a write that
// every server refuses has come behind it.
func fence(ctx context.Context, sess *zk.Session, path string) error {
	if err := sess.Delete(ctx, path, noVersion); zk.OutcomeOf(err) != zk.Refused {
		return err
	}
	return nil
}

// applied reports whether a transaction with a lost answer has created its nodes. It looks behind a write of the live
// session, which is applied after everything that was on its way before. If other clients have created the nodes, the
// first and the last one differ in their transactions or their data, unless they import the same.
func (m *importer) applied(ctx context.Context, nodes []entry) (bool, error) {
	sess, err := m.client.Session(ctx)
	if err != nil {
		return false, err
	}
	if err := fence(ctx, sess, m.Path); err != nil {
		return false, err
	}
	var zxids [2]int64
	for i, node := range []*entry{&nodes[0], &nodes[len(nodes)-1]} {
		s, there, err := sess.Exists(ctx, node.Path)
		if err != nil || !there || s.Version == node.version && int(s.DataLength) != len(node.Data) {
			return false, err
		}
		zxids[i] = s.Czxid
	}
	return zxids[0] == zxids[1], nil
}

// refused says why a transaction was refused.
func (m *importer) refused(err error) error {
	if zk.OutcomeOf(err) == zk.Unknown {
		return err
	}
	m.batches = m.batches[:len(m.batches)-1] // it has created nothing
	if len(m.batches) == 0 && errors.Is(err, zk.NodeExists) {
		return m.exists()
	}
	if len(m.batches) == 0 && errors.Is(err, zk.NoNode) {
		return &command.Error{
			Code: command.ExitMissing, Err: fmt.Errorf("the parent of %s does not exist", m.Path),
			Hint: "see --parents",
		}
	}
	return err
}

// exists is the error of a PATH that exists.
func (m *importer) exists() error {
	return &command.Error{
		Code: command.ExitMissing, Err: fmt.Errorf("%s exists: import creates it", m.Path),
		Hint: "choose another PATH, or delete it with turnstile rm -r",
	}
}

func lastSlash(path string) int {
	i := len(path) - 1
	for i > 0 && path[i] != '/' {
		i--
	}
	return i
}
