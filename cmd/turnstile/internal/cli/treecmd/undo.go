package treecmd

// Undoing an import that has failed.

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// undo deletes what was created, children first, and returns why. It has a time of its own: a signal has ended ctx.
// Nodes that another client has set since they were created stay, as do those that have got other children.
func (m *importer) undo(ctx context.Context, why error) error {
	if len(m.batches) == 0 {
		return why
	}
	why = m.Explain(ctx, m.client, why)
	u := undoing{client: m.client}
	for _, last := range slices.Backward(m.batches) {
		nodes, err := m.made(last)
		if err == nil {
			err = u.remove(ctx, nodes)
		}
		if err != nil {
			return besides(why, fmt.Errorf("not all of what was created could be deleted again: %w; "+
				"turnstile rm -r %s deletes it", err, m.Path))
		}
	}
	m.App.Say("deleted %s again", command.Plural(u.deleted, "node"))
	if u.left > 0 {
		return besides(why, fmt.Errorf("%s stay, such as %s, because another client has changed them or added to them",
			command.Plural(u.left, "node"), u.first))
	}
	return why
}

// besides adds to the error of a command what else the user must know, and keeps its exit code.
func besides(why, more error) error {
	exit, _ := errors.AsType[*command.Error](command.Failed(why))
	all := *exit
	if all.Err == nil { // a signal, which needs no message of its own
		all.Err = more
		return &all
	}
	all.Err = fmt.Errorf("%w; %w", all.Err, more)
	return &all
}

// made is a node as it was created.
type made struct {
	path    string
	version int32
}

// made returns the nodes of a batch.
func (m *importer) made(b batch) ([]made, error) {
	if _, err := m.spool.Seek(b.begin, io.SeekStart); err != nil {
		return nil, err
	}
	lines := reader{lines: bufio.NewReader(m.spool)}
	nodes := make([]made, b.count)
	for i := range nodes {
		var e exportedJSON
		line, err := lines.line()
		if err == nil {
			err = lines.decode(line, &e)
		}
		if err != nil {
			return nil, err
		}
		nodes[i] = made{m.Path + *e.Path, e.version()} // they have been checked
		if m.unset[nodes[i].path] {
			nodes[i].version = 0
		}
	}
	return nodes, nil
}

// undoTime is how long a failed import tries to delete what it has created with one transaction.
const undoTime = time.Minute

// undoing is the deletion of what was created.
type undoing struct {
	client  *zk.Client
	deleted int
	left    int    // nodes that another client has changed
	first   string // of them
}

// remove deletes the nodes of a batch, of which some may be gone. It takes one transaction, unless that is refused.
func (u *undoing) remove(ctx context.Context, nodes []made) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	ops := make([]zk.Op, 0, len(nodes))
	for _, node := range slices.Backward(nodes) {
		ops = append(ops, zk.DeleteOp(node.path, node.version))
	}
	switch _, err := u.client.Multi(ctx, ops...); {
	case err == nil:
		u.deleted += len(nodes)
		return nil
	case ctx.Err() != nil:
		return err
	}
	for _, node := range slices.Backward(nodes) { // refused, or its answer was lost
		switch err := u.removeOne(ctx, node); {
		case err == nil:
			u.deleted++
		case errors.Is(err, zk.NoNode): // it was never created, or an answer was lost
		case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NotEmpty):
			u.left++
			u.first = cmp.Or(u.first, node.path)
		default:
			return err
		}
	}
	return nil
}

// removeOne deletes a node unless another client has changed it.
func (u *undoing) removeOne(ctx context.Context, node made) error {
	for {
		err := u.client.Delete(ctx, node.path, node.version)
		if err == nil || ctx.Err() != nil || zk.OutcomeOf(err) == zk.Refused {
			return err
		}
	}
}
