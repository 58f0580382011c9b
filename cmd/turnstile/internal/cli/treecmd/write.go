package treecmd

// turnstile set, create and rm.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxInput is how much data a command reads. Servers accept less, unless jute.maxbuffer says otherwise.
const maxInput = 64 << 20

// input is the data that a command is to write.
type input struct {
	data []byte
	read bool // from standard input
}

// args takes PATH and DATA from the command line.
func (a *access) args(in *input, example string, required bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.ParsePath(cmd, args, example); err != nil {
			return err
		}
		switch {
		case len(args) > 2:
			return command.Usagef(cmd, "unexpected argument %q: put DATA in quotes", strings.Join(args[2:], " "))
		case len(args) < 2 && required:
			return command.Usagef(cmd, "DATA is missing: a text, or - for standard input")
		case len(args) < 2:
			in.data = nil
		case args[1] == "-":
			in.read = true
		default:
			in.data = []byte(args[1])
		}
		return a.writable(cmd)
	}
}

// bytes returns the data.
func (in *input) bytes(ctx context.Context, app *command.App) ([]byte, error) {
	if !in.read {
		return in.data, nil
	}
	data, err := command.Reading(ctx, func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(app.Stdin, maxInput+1))
	})
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	if len(data) > maxInput {
		return nil, &command.Error{Code: command.ExitData, Err: errors.New("standard input has more than 64 MiB")}
	}
	return data, nil
}

// reads are the requests that change nothing, as errors call them.
var reads = []string{"exists", "getData", "getACL", "getChildren", "multiRead", "sync"}

// usualLimit is how much data servers accept at most, unless their jute.maxbuffer says otherwise.
const usualLimit = 1 << 20

// notWritten explains the error of a write. An error that does not come from a request that was sent says nothing about
// the write, nor does that of a read.
func notWritten(err error, path string, size int) error {
	failed, ok := errors.AsType[*zk.Error](err)
	if !ok || failed.Outcome != zk.Unknown || slices.Contains(reads, failed.Op) {
		return err
	}
	if size > usualLimit-1024 && errors.Is(err, zk.ErrConnectionLost) {
		return &command.Error{
			Code: command.ExitData, Err: fmt.Errorf("%s: the server closed the connection: %w", path, err),
			Hint: "it may not accept so much data: see jute.maxbuffer",
		}
	}
	return fmt.Errorf("%s: it is not known whether this was done: the connection broke before the answer; "+
		"look with turnstile stat: %w", path, err)
}

func newSet(app *command.App) *cobra.Command {
	a, in, version := newAccess(app), &input{}, int32(-1)
	cmd := a.run(&cobra.Command{
		Use:   "set PATH DATA|-",
		Short: "Set the data of a node",
		Long: `Sets the data of a node that exists. With --version it does so only if the data has that version, which
turnstile stat shows: nothing that another client has written meanwhile is overwritten.` +
			fmt.Sprintf(exitCodes, "no such node, or another version"),
		Example: `  turnstile set /app/config '{"limit": 5}'
  turnstile set --version 3 /app/config - < config.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := a.args(in, "/app/config", true)(cmd, args); err != nil {
				return err
			}
			return checkVersion(cmd, version)
		},
	}, "/app/config", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		data, err := in.bytes(ctx, app)
		if err != nil {
			return err
		}
		s, err := client.Set(ctx, a.Path, data, version)
		if errors.Is(err, zk.BadVersion) {
			return &command.Error{
				Code: command.ExitMissing, Err: fmt.Errorf("%s does not have version %d", a.Path, version),
				Hint: "another client has set it; nothing was changed",
			}
		}
		if err != nil {
			return notWritten(err, a.Path, len(data))
		}
		if app.Did.Store(true); a.AsJSON {
			return app.JSON(newNodeJSON(a.Path, s))
		}
		return nil
	})
	cmd.Flags().Int32Var(&version, "version", -1, "set it only if its data has this `version`; -1 is any")
	return cmd
}

func newCreate(app *command.App) *cobra.Command {
	a, in := newAccess(app), &input{}
	var parents, sequential bool
	var ttl command.Duration
	const container, withTTL = "container", "ttl"
	modes := map[string]map[bool]zk.Mode{
		persistent: {false: zk.Persistent, true: zk.PersistentSequential},
		container:  {false: zk.Container},
		withTTL:    {false: zk.PersistentTTL, true: zk.PersistentSequentialTTL},
	}
	kind := command.NewChoice(persistent, container, withTTL)
	cmd := a.run(&cobra.Command{
		Use:   "create PATH [DATA|-]",
		Short: "Create a node",
		Long: `Creates a node and prints its path. Ephemeral nodes cannot be created: they would go with the
command.` +
			fmt.Sprintf(exitCodes, "the node exists, or its parent does not"),
		Example: `  turnstile create -p /app/config '{"limit": 5}'
  turnstile create --sequence /app/job-
  turnstile create --mode ttl --ttl 1h /app/note 'until lunch'`,
		Args: a.args(in, "/app/config", false),
	}, "/app/config", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		node := zk.Node{Path: a.Path, ACL: a.Connection.ACL(), TTL: time.Duration(ttl)}
		switch {
		case kind.Value == withTTL && ttl == 0:
			return misuse("--mode ttl needs --ttl")
		case kind.Value != withTTL && ttl != 0:
			return misuse("--ttl needs --mode ttl")
		case kind.Value == container && sequential:
			return misuse("--sequence and --mode container contradict each other")
		}
		node.Mode = modes[kind.Value][sequential]
		data, err := in.bytes(ctx, app)
		if err != nil {
			return err
		}
		node.Data = data
		made, err := createNode(ctx, client, node, parents)
		switch {
		case errors.Is(err, zk.NodeExists):
			return &command.Error{Code: command.ExitMissing, Err: fmt.Errorf("%s exists", a.Path)}
		case errors.Is(err, zk.NoNode):
			return &command.Error{
				Code: command.ExitMissing, Err: fmt.Errorf("the parent of %s does not exist", a.Path),
				Hint: "see --parents",
			}
		case errors.Is(err, zk.BadArguments) && ttl != 0:
			return misuse(fmt.Sprintf("--ttl: %v", err))
		case errors.Is(err, zk.Unimplemented):
			return fmt.Errorf("the server does not support --mode %s: %w", kind.Value, err)
		case err != nil:
			return notWritten(err, a.Path, len(data))
		}
		if app.Did.Store(true); a.AsJSON {
			return app.JSON(newNodeJSON(made.Path, made.Stat))
		}
		return app.Line("%s", made.Path)
	})
	flags := cmd.Flags()
	flags.BoolVarP(&parents, "parents", "p", false, "create parents that are missing")
	flags.BoolVar(&sequential, "sequence", false, "let the server append a number, which grows, to the name")
	flags.Var(&kind, "mode", "container: the server removes it once it has had children and has none; ttl: see --ttl")
	flags.Var(&ttl, "ttl", "the server removes the node when it has no children and was not set for so long")
	a.Connection.ACLFlag(flags)
	return cmd
}

func newRemove(app *command.App) *cobra.Command {
	a, version := newAccess(app), int32(-1)
	var recursive bool
	cmd := a.run(&cobra.Command{
		Use:   "rm PATH",
		Short: "Delete a node",
		Long: `Deletes a node. With --recursive it deletes everything below it first. That is not one transaction: if it
fails, what it has deleted stays deleted, and running it again goes on.` +
			fmt.Sprintf(exitCodes, "no such node, another version, or it has children"),
		Example: `  turnstile rm /app/config
  turnstile rm -r /app`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef(cmd, "unexpected argument %q", strings.Join(args[1:], " "))
			}
			if err := a.ParsePath(cmd, args, "/app/config"); err != nil {
				return err
			}
			if recursive && version >= 0 {
				return command.Usagef(cmd, "--recursive and --version contradict each other")
			}
			if err := checkVersion(cmd, version); err != nil {
				return err
			}
			return a.writable(cmd)
		},
	}, "/app/config", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		n, err := a.remove(ctx, client, recursive, version)
		switch {
		case errors.Is(err, zk.NotEmpty):
			return &command.Error{
				Code: command.ExitMissing, Err: fmt.Errorf("%s has children", a.Path), Hint: "see --recursive",
			}
		case errors.Is(err, zk.BadVersion):
			return &command.Error{
				Code: command.ExitMissing, Err: fmt.Errorf("%s does not have version %d", a.Path, version),
				Hint: "another client has set it; nothing was deleted",
			}
		case err != nil:
			if n > 0 && recursive {
				app.Say("deleted at least %s, and not all", command.Plural(n, "node"))
			}
			return notWritten(err, a.Path, 0)
		}
		if app.Did.Store(true); a.AsJSON {
			return app.JSON(map[string]any{"path": a.Path, "deleted": n})
		}
		if recursive && version < 0 {
			app.Say("deleted %s", command.Plural(n, "node"))
		}
		return nil
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "delete everything below it, too")
	cmd.Flags().Int32Var(&version, "version", -1, "delete it only if its data has this `version`; -1 is any")
	return cmd
}

// remove deletes the node, and returns how many nodes it has deleted.
func (a *access) remove(ctx context.Context, client *zk.Client, recursive bool, version int32) (int, error) {
	if !recursive || version >= 0 { // TURNSTILE_RECURSIVE does not outweigh --version
		return 1, client.Delete(ctx, a.Path, version)
	}
	if _, err := a.synced(ctx, client); err != nil {
		return 0, err
	}
	if _, there, err := client.Exists(ctx, a.Path); err != nil || !there {
		if err == nil {
			err = &zk.Error{Op: "rm", Path: a.Path, Err: zk.NoNode}
		}
		return 0, err
	}
	return client.DeleteAll(ctx, a.Path)
}

// createNode creates a node, with what is missing above it if parents is set. The chroot of --connect, which the user
// has named, is created in any case, unless another parent would be missing then.
func createNode(ctx context.Context, client *zk.Client, node zk.Node, parents bool) (zk.Created, error) {
	create := func() (zk.Created, error) {
		if parents {
			return client.CreateAll(ctx, node, zk.Parents{ACL: node.ACL})
		}
		return client.CreateNode(ctx, node)
	}
	made, err := create()
	if !errors.Is(err, zk.NoNode) || !parents && lastSlash(node.Path) > 0 {
		return made, err
	}
	if err := createChroot(ctx, client, node.ACL); err != nil {
		return made, err
	}
	return create()
}

// createChroot creates the chroot of --connect, and what is missing above it.
func createChroot(ctx context.Context, client *zk.Client, acl []zk.ACL) error {
	for {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		err = sess.CreateChroot(ctx, acl)
		if err == nil || zk.OutcomeOf(err) == zk.Refused || ctx.Err() != nil {
			return err
		} // otherwise the connection broke: it does no harm to ask again
	}
}
