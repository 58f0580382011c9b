package command

// Completion in shells.

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionTime is how long a shell waits for the server.
const completionTime = 2 * time.Second

// Complete makes shells complete the PATH of every command below root that begins with one, and the values of flags
// that are paths or have a choice of words.
func Complete(app *App, root *cobra.Command) {
	for _, cmd := range root.Commands() {
		Complete(app, cmd)
		_, args, _ := strings.Cut(cmd.Use, " ")
		if strings.HasPrefix(strings.TrimPrefix(args, "[flags] "), "PATH") && cmd.Flags().Lookup("connect") != nil {
			cmd.ValidArgsFunction = app.completePath
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if c, ok := f.Value.(*Choice); ok {
				words := cobra.FixedCompletions(c.Words, cobra.ShellCompDirectiveNoFileComp)
				_ = cmd.RegisterFlagCompletionFunc(f.Name, words) // fails only if there is no such flag
			}
			if value, _ := pflag.UnquoteUsage(f); strings.HasPrefix(value, "path") {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, // fails only if there is no such flag
					func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
						return app.completePath(cmd, nil, typed)
					})
			}
		})
	}
}

// completePath completes a PATH by the children that the server lists. It is silent if no server answers: a shell has
// no place for errors. Without --connect it asks this user's own server only if that runs.
func (app *App) completePath(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 && !strings.Contains(cmd.Use, "PATH...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	connection, err := app.sameConnection(cmd.Flags())
	if err != nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	dir := typed[:strings.LastIndexByte(typed, '/')+1]
	if dir == "" {
		return []string{"/"}, directive
	}
	if connection.Servers == "" && !connection.OwnServerRuns(ctx, app) {
		return nil, directive
	}
	client, _, err := connection.Open(ctx, app)
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
		if path := dir + name; strings.HasPrefix(path, typed) && !strings.ContainsFunc(path, special) {
			paths = append(paths, path)
		}
	}
	return paths, directive
}

// special reports whether a character may mean something to a shell. Cobra's script has bash expand what we offer:
// names that others choose could run commands.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._:@%+=,~-", r)
}

// sameConnection returns a connection to what the flags of a command name, and its environment.
func (app *App) sameConnection(flags *pflag.FlagSet) (*Connection, error) {
	var c Connection
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags(own)
	var err error
	own.VisitAll(func(f *pflag.Flag) {
		typed := flags.Lookup(f.Name)
		if err != nil || typed == nil || !typed.Changed {
			return
		}
		f.Changed, f.Annotations = true, typed.Annotations
		list, ok := f.Value.(pflag.SliceValue)
		values, ok2 := typed.Value.(pflag.SliceValue)
		if ok && ok2 {
			err = list.Replace(values.GetSlice())
		} else {
			err = f.Value.Set(typed.Value.String())
		}
	})
	if err != nil {
		return nil, err
	}
	return &c, app.Env.Bind(own)
}
