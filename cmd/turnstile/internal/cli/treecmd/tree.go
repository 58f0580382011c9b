// Package treecmd is the commands that read and write single nodes and trees of nodes.
package treecmd

// What the commands share: their list, sessions, and nodes as they are shown.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// New returns the commands.
func New(app *command.App) []*cobra.Command {
	return []*cobra.Command{
		newList(app), newTree(app), newGet(app), newStat(app), newSet(app), newCreate(app), newRemove(app),
		newWatch(app), newACL(app), newExport(app), newImport(app),
	}
}

// atOnce is how many nodes are read at a time.
const atOnce = 256

const exitCodes = "\n\nExit codes: 0; 1 %s; 64 usage; 69 no server; 77 access denied."

// access is how a command reaches its node.
type access struct{ command.Access }

func newAccess(app *command.App) *access { return &access{command.Access{App: app}} }

// run makes cmd a command with a PATH.
func (a *access) run(
	cmd *cobra.Command, example, object string, f func(context.Context, *zk.Client) error,
) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef(cmd, "unexpected argument %q", strings.Join(args[1:], " "))
			}
			return a.ParsePath(cmd, args, example)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.With(cmd.Context(), f) }
	a.Flags(cmd, object)
	return cmd
}

// misuse is the error of flags that contradict each other or the path.
func misuse(text string) error { return &command.Error{Code: command.ExitUsage, Err: errors.New(text)} }

// synced returns the live session once its server has seen everything that was committed before the call.
func (a *access) synced(ctx context.Context, client *zk.Client) (*zk.Session, error) {
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, err
	}
	return sess, sess.Sync(ctx, a.Path)
}

// writable refuses paths that belong to the servers.
func (a *access) writable(cmd *cobra.Command) error {
	if a.Path == "/" || a.Path == "/zookeeper" || strings.HasPrefix(a.Path, "/zookeeper/") {
		return command.Usagef(cmd, "%s belongs to the server: choose another path, such as /app", a.Path)
	}
	return nil
}

// checkVersion refuses versions that no node can have. -1 is any.
func checkVersion(cmd *cobra.Command, version int32) error {
	if version < -1 {
		return command.Usagef(cmd, "--version must not be negative")
	}
	return nil
}

func join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// nodeJSON is a node's metadata in JSON.
type nodeJSON struct {
	Path  string  `json:"path"`
	Mode  string  `json:"mode"`
	Owner *string `json:"session,omitempty"`

	Size     int32  `json:"bytes"`
	Children int32  `json:"children"`
	Version  int32  `json:"version"`
	Cversion int32  `json:"cversion"`
	Aversion int32  `json:"aversion"`
	Czxid    string `json:"czxid"`
	Mzxid    string `json:"mzxid"`
	Pzxid    string `json:"pzxid"`
	Created  string `json:"created"`
	Modified string `json:"modified"`
}

func newNodeJSON(path string, s zk.Stat) nodeJSON {
	j := nodeJSON{
		Path: path, Mode: modeOf(s), Size: s.DataLength, Children: s.NumChildren,
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		Czxid: zxid(s.Czxid), Mzxid: zxid(s.Mzxid), Pzxid: zxid(s.Pzxid),
		Created: command.Timestamp(time.UnixMilli(s.Ctime)), Modified: command.Timestamp(time.UnixMilli(s.Mtime)),
	}
	if j.Mode == ephemeral {
		owner := command.SessionID(s.EphemeralOwner)
		j.Owner = &owner
	}
	return j
}

func zxid(z int64) string { return fmt.Sprintf("0x%x", z) }

// The modes that a node's metadata shows. Servers show containers and nodes with a TTL as persistent ones.
const (
	persistent = "persistent"
	ephemeral  = "ephemeral"
)

func modeOf(s zk.Stat) string {
	if s.EphemeralOwner != 0 {
		return ephemeral
	}
	return persistent
}

// dataJSON is a node's data in JSON: text if it is UTF-8. Both are absent if the data is null.
type dataJSON struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"`
}

func newDataJSON(data []byte) dataJSON {
	switch {
	case data == nil:
		return dataJSON{}
	case !utf8.Valid(data):
		return dataJSON{Base64: data}
	}
	text := string(data)
	return dataJSON{Data: &text}
}

func (d dataJSON) bytes() []byte {
	switch {
	case d.Base64 != nil:
		return d.Base64
	case d.Data != nil:
		return []byte(*d.Data)
	}
	return nil
}

// children returns the names of a node's children, sorted.
func children(ctx context.Context, client *zk.Client, path string) ([]string, error) {
	names, _, err := client.Children(ctx, path)
	slices.Sort(names)
	return names, err
}

// sorted returns the paths of a node's children, in the order of their names.
func sorted(path string, names []string) []string {
	slices.Sort(names)
	for i, name := range names {
		names[i] = join(path, name)
	}
	return names
}
