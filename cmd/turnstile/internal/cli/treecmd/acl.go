package treecmd

// turnstile acl.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

func newACL(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "acl",
		Short: "Show and set who may use a node",
		Long: `Shows and sets the access control list of a node. It holds for the node alone, not for its children. An
entry is scheme:id:rights, such as sasl:ann:cdrwa. The rights are c, d, r, w and a for create, delete, read,
write and admin, or # and a number. A comma separates entries, except behind a backslash or before NAME=, so
that the names of certificates stand as they are: x509:CN=bob,O=Acme:r. An id with another comma, a semicolon
or (except in a certificate's name) a blank is in double quotes.`,
		Example: `  turnstile acl get /app
  turnstile acl set /app sasl:ann:cdrwa,world:anyone:r
  turnstile acl set /copy "$(turnstile acl get /app | paste -sd, -)"`,
	}, newACLGet(app), newACLSet(app))
}

func newACLGet(app *command.App) *cobra.Command {
	a := newAccess(app)
	return a.run(&cobra.Command{
		Use:   "get PATH",
		Short: "Show who may use a node",
		Long: "Prints one entry a line, in the form that turnstile acl set and --acl take, joined by commas." +
			fmt.Sprintf(exitCodes, "no such node"),
	}, "/app", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		if _, err := a.synced(ctx, client); err != nil {
			return err
		}
		list, s, err := client.GetACL(ctx, a.Path)
		if err != nil {
			return err
		}
		if a.AsJSON {
			return app.JSON(struct {
				Path     string    `json:"path"`
				Aversion int32     `json:"aversion"`
				ACL      []aclJSON `json:"acl"`
			}{a.Path, s.Aversion, newACLJSON(list)})
		}
		if slices.ContainsFunc(list, func(entry zk.ACL) bool { return command.HidesHash(entry.ID) }) {
			app.Say("%s: the server hides passwords' hashes: it shows them to clients with the right to administrate "+
				"the node (--auth)", a.Path)
		}
		for _, entry := range list {
			if err := app.Printf("%s\n", command.FormatACL([]zk.ACL{entry})); err != nil {
				return err
			}
		}
		return nil
	})
}

func newACLSet(app *command.App) *cobra.Command {
	a, version := newAccess(app), int32(-1)
	var list []zk.ACL
	cmd := a.run(&cobra.Command{
		Use:   "set PATH LIST",
		Short: "Set who may use a node",
		Long: `Replaces the access control list of a node. LIST is open, creator (clients with our credentials), or
entries separated by commas. Take care to leave a client with the right to administrate the node.` +
			fmt.Sprintf(exitCodes, "no such node, or another version"),
		Args: func(cmd *cobra.Command, args []string) error {
			if err := a.ParsePath(cmd, args, "/app"); err != nil {
				return err
			}
			if len(args) != 2 {
				return command.Usagef(cmd, "LIST is missing: open, creator, or scheme:id:rights such as sasl:ann:cdrwa")
			}
			var err error
			if list, err = command.ParseACL(args[1]); err != nil {
				return command.Usage(cmd, err)
			}
			if list == nil {
				list = zk.OpenACL()
			}
			return checkVersion(cmd, version)
		},
	}, "/app", "a JSON object", func(ctx context.Context, client *zk.Client) error {
		if slices.Equal(list, zk.CreatorACL()) {
			if err := a.Connection.CheckCreator(); err != nil {
				return &command.Error{Code: command.ExitUsage, Err: err}
			}
		}
		s, err := client.SetACL(ctx, a.Path, list, version)
		switch {
		case errors.Is(err, zk.BadVersion):
			return &command.Error{
				Code: command.ExitMissing, Err: fmt.Errorf("the list of %s does not have version %d", a.Path, version),
				Hint: "another client has set it; nothing was changed",
			}
		case err != nil:
			return notWritten(err, a.Path, 0)
		}
		if app.Did.Store(true); a.AsJSON {
			return app.JSON(newNodeJSON(a.Path, s))
		}
		return nil
	})
	cmd.Flags().Int32Var(&version, "version", -1, "set it only if the list has this `version`; -1 is any")
	return cmd
}

// aclJSON is an entry of an access control list in JSON.
type aclJSON struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Rights string `json:"rights"`
}

func newACLJSON(list []zk.ACL) []aclJSON {
	all := make([]aclJSON, len(list))
	for i, entry := range list {
		all[i] = aclJSON{entry.ID.Scheme, entry.ID.ID, command.FormatPerms(entry.Perms)}
	}
	return all
}
