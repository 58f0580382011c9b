package treecmd

// turnstile ls, tree, get and stat.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

func newList(app *command.App) *cobra.Command {
	a := newAccess(app)
	var long bool
	cmd := a.run(&cobra.Command{
		Use:   "ls PATH",
		Short: "List the children of a node",
		Long: `Lists the names of a node's children, sorted. With -l or --json it leaves out what the client may not
read; at the end it names such nodes and exits with 77.` + fmt.Sprintf(exitCodes, "no such node"),
		Example: `  turnstile ls /
  turnstile ls --connect zk1:2181 -l /app`,
	}, "/app", "one JSON object per child", func(ctx context.Context, client *zk.Client) error {
		if _, err := a.synced(ctx, client); err != nil {
			return err
		}
		names, err := children(ctx, client, a.Path)
		if err != nil {
			return err
		}
		if !long && !a.AsJSON {
			for _, name := range names {
				if err := app.Line("%s", name); err != nil {
					return err
				}
			}
			return nil
		}
		table := app.Table()
		if !a.AsJSON && len(names) > 0 {
			_ = command.Fprintf(table, "NAME\tMODE\tCHILDREN\tBYTES\tVERSION\tMODIFIED\n")
		}
		var closed closedNodes
		hidden := func(name string) error {
			closed.add(join(a.Path, name))
			if a.AsJSON {
				return nil
			}
			return command.Fprintf(table, "%s\t?\t?\t?\t?\t?\n", name)
		}
		err = EachChild(ctx, client, a.Path, names, hidden, func(name string, s zk.Stat) error {
			if a.AsJSON {
				return app.JSON(newNodeJSON(join(a.Path, name), s))
			}
			return command.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\n", name, modeOf(s), s.NumChildren, s.DataLength,
				s.Version, command.Since(time.UnixMilli(s.Mtime)))
		})
		if err := errors.Join(err, command.OutputError(table.Flush())); err != nil {
			return err
		}
		return closed.err()
	})
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show each child's mode, size, version and time, too")
	return cmd
}

// EachChild calls f with the metadata of a node's children of these names, or hidden if the server does not tell it:
// newer ones do so only to those who may read the node. Those that go meanwhile are left out.
func EachChild(
	ctx context.Context, client *zk.Client, dir string, names []string, hidden func(name string) error,
	f func(name string, s zk.Stat) error,
) error {
	for chunk := range slices.Chunk(names, atOnce) {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		b := sess.Batch()
		seen := make([]*zk.Future[zk.Existence], len(chunk))
		for i, name := range chunk {
			seen[i] = b.Exists(join(dir, name))
		}
		b.Send()
		for i, name := range chunk {
			e, err := seen[i].Get(ctx)
			if errors.Is(err, zk.NoAuth) {
				if err = hidden(name); err == nil {
					continue
				}
			}
			if err != nil {
				for _, rest := range seen[i+1:] {
					rest.Abandon()
				}
				return err
			}
			if !e.Exists {
				continue
			}
			if err := f(name, e.Stat); err != nil {
				return err
			}
		}
	}
	return nil
}

func newTree(app *command.App) *cobra.Command {
	a := newAccess(app)
	var depth int
	cmd := a.run(&cobra.Command{
		Use:   "tree PATH",
		Short: "Show a node and everything below it",
		Long: `Shows the nodes from PATH down, each below its parent. It reads while it prints, so a large tree needs
little memory, and nodes that change meanwhile may be shown in their old or in their new state. What the
client may not read is left out; at the end the command names such nodes and exits with 77.` +
			fmt.Sprintf(exitCodes, "no such node"),
		Example: `  turnstile tree /app
  turnstile tree --depth 1 /`,
	}, "/app", "one JSON object per node", func(ctx context.Context, client *zk.Client) error {
		if depth < 0 {
			return misuse("--depth must not be negative; 0 means all levels")
		}
		sess, err := a.synced(ctx, client)
		if err != nil {
			return err
		}
		s, there, err := sess.Exists(ctx, a.Path)
		if err != nil {
			return err
		}
		if !there {
			return &zk.Error{Op: "tree", Path: a.Path, Err: zk.NoNode}
		}
		if err := a.showNode(a.Path, "", a.Path, s); err != nil {
			return err
		}
		var closed closedNodes
		if err := a.showBelow(ctx, client, &closed, a.Path, "", depth, s); err != nil {
			return err
		}
		return closed.err()
	})
	cmd.Flags().IntVar(&depth, "depth", 0, "how many levels below PATH to show; 0 means all")
	return cmd
}

// showNode prints a node in its place.
func (a *access) showNode(path, indent, name string, s zk.Stat) error {
	if a.AsJSON {
		return a.App.JSON(newNodeJSON(path, s))
	}
	note := ""
	if modeOf(s) == ephemeral {
		note = "  (" + ephemeral + ")"
	}
	return a.App.Printf("%s%s%s\n", indent, name, note)
}

// showBelow prints what is below a node. Only the names along the way from the root, and their siblings', are in
// memory.
func (a *access) showBelow(
	ctx context.Context, client *zk.Client, closed *closedNodes, path, indent string, depth int, s zk.Stat,
) error {
	if s.NumChildren == 0 {
		return nil
	}
	names, err := children(ctx, client, path)
	if errors.Is(err, zk.NoNode) {
		return nil // it went meanwhile
	}
	if errors.Is(err, zk.NoAuth) {
		closed.add(path)
		return nil
	}
	if err != nil {
		return err
	}
	indent += "  "
	hidden := func(name string) error {
		closed.add(join(path, name))
		if a.AsJSON {
			return nil
		}
		return a.App.Printf("%s%s\n", indent, name)
	}
	return EachChild(ctx, client, path, names, hidden, func(name string, s zk.Stat) error {
		if err := a.showNode(join(path, name), indent, name, s); err != nil || depth == 1 {
			return err
		}
		return a.showBelow(ctx, client, closed, join(path, name), indent, max(depth-1, 0), s)
	})
}

// closedNodes are those of which the server does not tell the client everything.
type closedNodes struct {
	first []string
	more  int
}

func (c *closedNodes) add(path string) {
	if len(c.first) < 3 {
		c.first = append(c.first, path)
	} else {
		c.more++
	}
}

// err is nil if there are none.
func (c *closedNodes) err() error {
	if len(c.first) == 0 {
		return nil
	}
	names := strings.Join(c.first, ", ")
	if c.more > 0 {
		names += fmt.Sprintf(" and %d more", c.more)
	}
	err := fmt.Errorf("%w to see all of %s", zk.NoAuth, names)
	return &command.Error{Code: command.ExitNoAccess, Err: err, Hint: "other credentials may show more: see --auth"}
}

func newGet(app *command.App) *cobra.Command {
	a := newAccess(app)
	return a.run(&cobra.Command{
		Use:   "get PATH",
		Short: "Print the data of a node",
		Long: `Prints the data of a node as it is, without a line end of its own. If standard output is a terminal, it
escapes control characters, and adds a line end where the data has none.` + fmt.Sprintf(exitCodes, "no such node"),
		Example: `  turnstile get /app/config > config.json`,
	}, "/app/config", "data and metadata as JSON", func(ctx context.Context, client *zk.Client) error {
		if _, err := a.synced(ctx, client); err != nil {
			return err
		}
		data, s, err := client.Get(ctx, a.Path)
		if err != nil {
			return err
		}
		if a.AsJSON {
			return app.JSON(struct {
				nodeJSON
				dataJSON
			}{newNodeJSON(a.Path, s), newDataJSON(data)})
		}
		data = app.Bytes(data)
		if len(data) > 0 && data[len(data)-1] != '\n' && command.IsTerminal(app.Stdout) {
			data = append(data, '\n')
		}
		_, err = app.Stdout.Write(data)
		return command.OutputError(err)
	})
}

func newStat(app *command.App) *cobra.Command {
	a := newAccess(app)
	return a.run(&cobra.Command{
		Use:   "stat PATH",
		Short: "Show the metadata of a node",
		Long: `Shows a node's mode, size, versions, times and the transactions that changed it. Use it in scripts to ask
whether a node exists.` + fmt.Sprintf(exitCodes, "no such node"),
		Example: `  turnstile stat /app/config
  if turnstile stat -q /app/paused >/dev/null; then exit; fi`,
	}, "/app/config", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		sess, err := a.synced(ctx, client)
		if err != nil {
			return err
		}
		s, there, err := sess.Exists(ctx, a.Path)
		if err != nil {
			return err
		}
		if !there {
			return &zk.Error{Op: "stat", Path: a.Path, Err: zk.NoNode}
		}
		j := newNodeJSON(a.Path, s)
		if a.AsJSON {
			return app.JSON(j)
		}
		b := command.Sprintf("%s\n  mode      %s", a.Path, modeOf(s))
		if j.Owner != nil {
			b += command.Sprintf(" of session %s", *j.Owner)
		}
		size := command.Plural(int(s.DataLength), "byte")
		b += command.Sprintf("\n  data      %s, version %d, set %s in transaction %s", size, s.Version,
			command.Since(time.UnixMilli(s.Mtime)), j.Mzxid)
		b += command.Sprintf("\n  children  %d, version %d, last one created or deleted in transaction %s",
			s.NumChildren, s.Cversion, j.Pzxid)
		b += command.Sprintf("\n  access    version %d", s.Aversion)
		b += command.Sprintf("\n  created   %s in transaction %s\n", command.Since(time.UnixMilli(s.Ctime)), j.Czxid)
		return app.Printf("%s", b)
	})
}
