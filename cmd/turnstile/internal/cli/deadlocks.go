package cli

// turnstile deadlocks.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// deadlockJSON is what "turnstile deadlocks --json" prints for a deadlock.
type deadlockJSON struct {
	Confirmed bool               `json:"confirmed"`
	Steps     []deadlockStepJSON `json:"steps"`
}

// deadlockStepJSON is one that waits in a deadlock.
type deadlockStepJSON struct {
	Path  string    `json:"path"`
	Token int64     `json:"token,omitempty"`
	Since string    `json:"since"`
	Owner ownerJSON `json:"owner"`
}

// deadlocks is a call of turnstile deadlocks.
type deadlocks struct {
	command.Access

	watch bool
	every command.Period
}

func newDeadlocks(app *command.App) *cobra.Command {
	d := &deadlocks{
		Access: command.Access{App: app, Path: lock.DefaultWaitsPath}, every: command.Period(time.Second),
	}
	cmd := &cobra.Command{
		Use:   "deadlocks [flags] [PATH]",
		Short: "List deadlocks: programs that wait for each other's locks",
		Long: `Lists the deadlocks of Turnstile's Go programs: each of some programs holds a lock and waits for one that
another of them holds. The programs tell of such waits below PATH, /turnstile/waits if it is not given, once they
have lasted for 200 ms; see OnDeadlock in the package lock, which can also have one of them give way.

A deadlock is confirmed if every one of its programs has said, after it had read what all others say, that it
still waits: it has existed, and lasts unless one of them has given up just now. Another may be about to be
confirmed, or may be what a program says that has gone on meanwhile.

Exit codes: 0 if none is confirmed; 1 if one is; 64 usage; 69 no server; 77 access to PATH denied.`,
		Example: `  turnstile deadlocks
  turnstile deadlocks --connect zk1:2181,zk2:2181/app --watch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given")
			case len(args) == 1:
				if err := d.ParsePath(cmd, args, lock.DefaultWaitsPath); err != nil {
					return err
				}
				if err := lock.ValidatePath(d.Path); err != nil {
					return command.Usage(cmd, err)
				}
			}
			return d.With(cmd.Context(), d.list)
		},
	}
	flags := cmd.Flags()
	d.Flags(cmd, "one JSON object per deadlock")
	flags.BoolVar(&d.watch, "watch", false, "go on until a signal, and print each deadlock once, when it is confirmed")
	flags.Var(&d.every, "every", "how often --watch looks")
	return cmd
}

func (d *deadlocks) list(ctx context.Context, client *zk.Client) error {
	if d.watch {
		return d.App.WhileRead(ctx, func(ctx context.Context) error { return d.follow(ctx, client) })
	}
	found, err := lock.Deadlocks(ctx, client, d.Path)
	if err != nil {
		return err
	}
	confirmed := 0
	for _, f := range found {
		if f.Confirmed {
			confirmed++
		}
		if err := d.print(f); err != nil {
			return err
		}
	}
	d.App.Say("%s, %d confirmed", command.Plural(len(found), "deadlock"), confirmed)
	if confirmed > 0 {
		return &command.Error{Code: command.ExitNotAcquired}
	}
	return nil
}

// follow prints each deadlock once, until ctx ends.
func (d *deadlocks) follow(ctx context.Context, client *zk.Client) error {
	d.App.Say("watching %s", d.Path)
	var before []string
	for {
		found, err := lock.Deadlocks(ctx, client, d.Path)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		var now []string
		for _, f := range found {
			if !f.Confirmed {
				continue
			}
			key := fmt.Sprint(f.Steps)
			if now = append(now, key); slices.Contains(before, key) {
				continue
			}
			if err := d.print(f); err != nil {
				return err
			}
		}
		before = now
		select {
		case <-time.After(time.Duration(d.every)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// print prints a deadlock: a line for each that waits.
func (d *deadlocks) print(f lock.FoundDeadlock) error {
	j := deadlockJSON{Confirmed: f.Confirmed}
	lines := []command.Text{command.Sprintf("possible:")}
	if f.Confirmed {
		lines[0] = command.Sprintf("confirmed:")
	}
	for i, s := range f.Steps {
		next := f.Steps[(i+1)%len(f.Steps)]
		who := contender{Contender: lock.Contender{Owner: s.Owner, Known: true}}
		j.Steps = append(j.Steps, deadlockStepJSON{
			Path: s.Path, Token: int64(s.Token), Since: command.Timestamp(s.Since), Owner: newContenderJSON(who).Owner,
		})
		blocker := owner(lock.Contender{Owner: next.Owner, Known: true})
		how := command.Sprintf("in line behind %s", blocker)
		switch {
		case s.Outer:
			how = command.Sprintf("token %d, under which %s runs", int64(s.Token), blocker)
		case s.Token != 0:
			how = command.Sprintf("token %d of %s", int64(s.Token), blocker)
		}
		lines = append(lines, command.Sprintf("  %s waits for %s, %s, since %s",
			owner(who.Contender), s.Path, how, command.Timestamp(s.Since)))
	}
	if d.AsJSON {
		return d.App.JSON(j)
	}
	for _, l := range lines {
		if err := d.App.Line("%s", l); err != nil {
			return err
		}
	}
	return nil
}
