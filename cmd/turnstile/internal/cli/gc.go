package cli

// turnstile gc.

import (
	"context"
	"errors"
	stdpath "path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// gcJSON is what "turnstile gc --json" prints for a node.
type gcJSON struct {
	Path    string `json:"path"`
	Made    string `json:"made"`
	Deleted bool   `json:"deleted"`
}

// gc is a call of turnstile gc.
type gc struct {
	command.Access

	readFor   command.Period
	olderThan command.Duration
	remove    bool
}

func newGC(app *command.App) *cobra.Command {
	g := &gc{
		Access:  command.Access{App: app, Path: "/"},
		readFor: command.Period(30 * time.Second), olderThan: command.Duration(time.Hour),
	}
	cmd := &cobra.Command{
		Use:   "gc [flags] [PATH]",
		Short: "List, or delete, empty directories that other programs' locks have left",
		Long: `Lists nodes at PATH and below it that look like directories of locks that nobody uses: kazoo and
go-zookeeper make one for each lock and never delete it. Turnstile and Curator make containers, which servers
delete by themselves within some minutes. No client can tell a container, or a node with a TTL, from another
node: one that is empty now is listed too.

A node is listed if it has had children and has none now, has no data and never had any, has the same ACL as
its parent, and was made longer ago than --older-than, by this machine's clock. When its last child went is not
known. Only with --delete it deletes them. PATH must then be given: other programs, such as Kafka, have empty
directories that look the same and that they need. Nothing below /zookeeper is listed.

A lock that is used meanwhile is not harmed: its node keeps the directory. Turnstile and Curator make a
directory again when it is gone, go-zookeeper tries three times. A kazoo Lock makes it once: one that has been
used already, in a program that still runs, gets NoNodeError at its next acquire, and a first acquire gets it
if the directory goes while it starts. So run gc when these programs have ended. A directory that another
client deletes and makes again just before it would be deleted is deleted, if it is empty.

Exit codes: 0, also if there is none; 64 usage; 69 no server; 77 access to PATH denied.`,
		Example: `  turnstile gc /locks
  turnstile gc --delete --connect zk1:2181,zk2:2181/app /locks`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is looked at")
			case len(args) == 1:
				if err := g.ParsePath(cmd, args, "/locks"); err != nil {
					return err
				}
			}
			if g.Path == "/zookeeper" || strings.HasPrefix(g.Path, "/zookeeper/") {
				return command.Usagef(cmd, "what is below /zookeeper belongs to the servers; name the PATH of locks")
			}
			if g.remove && g.Path == "/" {
				return command.Usagef(cmd, "name the PATH below which --delete may delete, such as /locks")
			}
			return g.With(cmd.Context(), g.collect)
		},
	}
	flags := cmd.Flags()
	g.Flags(cmd, "one JSON object per node")
	flags.BoolVar(&g.remove, "delete", false, "delete the nodes, and print those that were")
	flags.Var(&g.olderThan, "older-than", "leave nodes alone that were made later than this time ago")
	flags.Var(&g.readFor, "read-for", "stop looking after this time, and go on with what was found")
	return cmd
}

func (g *gc) collect(ctx context.Context, client *zk.Client) error {
	s, err := survey.Read(ctx, client, survey.Config{Root: g.Path, Time: time.Duration(g.readFor)})
	if err != nil {
		return err
	}
	if err := closed(s, g.Path); err != nil {
		return err
	}
	found := 0
	for batch := range slices.Chunk(s.Entries, 64) {
		nodes, err := g.unused(ctx, client, batch)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if g.remove {
				// The version has not changed since it was read. A server refuses to delete a node that has children.
				switch err := client.Delete(ctx, n.path, n.stat.Version); {
				case errors.Is(err, zk.NotEmpty), errors.Is(err, zk.NoNode), errors.Is(err, zk.BadVersion):
					continue // somebody uses it, or has deleted it
				case errors.Is(err, zk.NoAuth):
					g.App.Complain("%s: these credentials may not delete it", n.path)
					continue
				case err != nil:
					return err
				}
				g.App.Did.Store(true)
			}
			found++
			j := gcJSON{Path: n.path, Made: command.Timestamp(time.UnixMilli(n.stat.Ctime)), Deleted: g.remove}
			if err := g.App.ReportLine(g.AsJSON, j, "%s", n.path); err != nil {
				return err
			}
		}
	}
	for _, lack := range lacks(s) {
		g.App.Complain("%s", lack)
	}
	if s.Listed == 0 {
		g.App.Say("there is no path %s (asked %s)", g.Path, g.Connection.Where())
		return nil
	}
	did := "would be deleted with --delete"
	if g.remove {
		did = "deleted"
	}
	g.App.Say("%s %s (%s listed)", command.Plural(found, "empty node"), did, command.Plural(s.Listed, "node"))
	return nil
}

// unusedNode is a node that may be deleted.
type unusedNode struct {
	path string
	stat zk.Stat
}

// unused returns those of the entries that look like directories of locks that nobody uses.
func (g *gc) unused(ctx context.Context, client *zk.Client, entries []survey.Entry) ([]unusedNode, error) {
	nodes := make([]*unusedNode, len(entries))
	errs := make([]error, len(entries))
	var group sync.WaitGroup
	for i, e := range entries {
		if e.Kind == survey.Free && e.Path != "/" {
			group.Go(func() { nodes[i], errs[i] = g.read(ctx, client, e.Path) })
		}
	}
	group.Wait()
	var list []unusedNode
	for _, n := range nodes {
		if n != nil {
			list = append(list, *n)
		}
	}
	return list, errors.Join(errs...)
}

// read returns the node at a path, or nil if it is not to be deleted.
func (g *gc) read(ctx context.Context, client *zk.Client, path string) (*unusedNode, error) {
	acl, stat, err := client.GetACL(ctx, path)
	var parent []zk.ACL
	if err == nil {
		parent, _, err = client.GetACL(ctx, stdpath.Dir(path))
	}
	made := time.UnixMilli(stat.Ctime)
	switch {
	case errors.Is(err, zk.NoNode), errors.Is(err, zk.NoAuth):
		return nil, nil //nolint:nilnil // it has gone, or nothing is known of it
	case err != nil:
		return nil, err
	case !slices.Equal(acl, parent), time.Since(made) < time.Duration(g.olderThan),
		stat.EphemeralOwner != 0, stat.NumChildren > 0, stat.DataLength > 0, stat.Version > 0, stat.Cversion == 0:
		return nil, nil //nolint:nilnil // as above
	}
	return &unusedNode{path, stat}, nil
}
