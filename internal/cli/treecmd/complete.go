package treecmd

// Completion of paths in shells.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
)

// completionTime is how long a shell waits for the server.
const completionTime = 2 * time.Second

// completePath completes a PATH by the children that the server lists. It is silent if no server answers: a shell has
// no place for errors. Without --connect it asks this user's own server only if that runs.
func completePath(a *command.Access) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if err := a.App.Env.Bind(cmd.Flags()); err != nil {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		dir := typed[:strings.LastIndexByte(typed, '/')+1]
		if dir == "" {
			return []string{"/"}, directive
		}
		if a.Connection.Servers == "" && !a.Connection.OwnServerRuns(ctx, a.App) {
			return nil, directive
		}
		client, _, err := a.Connection.Open(ctx, a.App)
		if err != nil {
			return nil, directive
		}
		defer client.Close()
		names, _, err := client.Children(ctx, "/"+strings.Trim(dir, "/"))
		if err != nil {
			return nil, directive
		}
		slices.Sort(names)
		var paths []string
		for _, name := range names {
			if path := dir + name; strings.HasPrefix(path, typed) {
				paths = append(paths, path)
			}
		}
		return paths, directive
	}
}
