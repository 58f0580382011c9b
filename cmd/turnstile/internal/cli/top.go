package cli

// turnstile top.

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/top"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// topCall is a call of turnstile top.
type topCall struct {
	command.Access

	interval command.Duration
	changes  bool
}

func newTop(app *command.App) *cobra.Command {
	t := &topCall{Access: command.Access{App: app, Path: "/"}, interval: command.Duration(time.Second)}
	cmd := &cobra.Command{
		Use:   "top [flags] [PATH]",
		Short: "Show locks, waits, leaders, queues, sessions and servers on one screen",
		Long: `Shows what is held or waited for at PATH and below it, or in the whole tree without PATH, and keeps it up
to date. The keys 1 to 6 choose what it shows: locks, who waits for whom, leaders, queues, sessions, servers.
Enter shows the line of a lock, / filters, s sorts, p pauses, ? lists the keys, q quits.

The servers tell of changes, as with "turnstile locks --watch". Besides that it reads only what the view shows:
the lines of locks that are looked at and have changed, the counts of queues, and what servers answer to the
four-letter words srvr, mntr, cons and dump.

It changes nothing without --allow-changes. With it, r asks the holder of the chosen lock to release it, for a
reason that must be given, and F takes the lock from it after 10 s, once the last part of its path is typed.

Colours are those of the terminal; NO_COLOR turns them off. If standard input or output is not a terminal it
prints what "turnstile locks" prints, and ends.

Exit codes: 0; 64 usage; 69 no server; 77 access to PATH denied.`,
		Example: `  turnstile top
  turnstile top --connect zk1:2181,zk2:2181,zk3:2181/app --interval 2s /jobs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is shown")
			case time.Duration(t.interval) < 100*time.Millisecond:
				return command.Usagef(cmd, "--interval must be at least 100ms")
			case len(args) == 1:
				if err := t.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			in, out := terminal(app.Stdin), terminal(app.Stdout)
			if in == nil || out == nil {
				return t.once(cmd.Context())
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return t.Open(ctx, false, func(ctx context.Context, client *zk.Client) error {
					return t.run(ctx, client, in, out)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&app.Quiet, "quiet", "q", false, "print only results and errors")
	t.Connection.Flags(flags)
	t.Connection.ACLFlag(flags)
	flags.Var(&t.interval, "interval", "how often the screen is drawn")
	flags.BoolVar(&t.changes, "allow-changes", false, "allow to revoke locks and to take them by force")
	return cmd
}

// terminal returns a stream that is a terminal, or nil.
func terminal(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// once prints the list of the locks.
func (t *topCall) once(ctx context.Context) error {
	l := &locks{
		Access: t.Access, readFor: command.Period(30 * time.Second),
		sort: command.NewChoice(sortWait), kind: command.NewChoice(anyKind),
	}
	return l.With(ctx, l.list)
}

// run shows the screen.
func (t *topCall) run(ctx context.Context, client *zk.Client, in, out *os.File) error {
	s, err := survey.Follow(ctx, client, survey.FollowConfig{Config: survey.Config{Root: t.Path}})
	if err != nil {
		return err
	}
	defer s.Close()
	first, err := s.Next(ctx, nil, nil)
	if err != nil {
		return err
	}
	if err := closed(first, t.Path); err != nil {
		return err
	}
	plain := t.App.Env.Vars["NO_COLOR"] != ""
	opts := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(t.App.Env.List)}
	if plain {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	return top.Run(ctx, newSource(t.Access, client, s), top.Config{
		Ensemble: t.Connection.Where(), Root: t.Path, Interval: time.Duration(t.interval), Changes: t.changes,
		Plain: plain,
	}, opts...)
}
