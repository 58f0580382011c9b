package cli

// turnstile doctor.

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/doctor"
	"github.com/seed-a3166700/turnstile/zk"
)

// findingJSON is what "turnstile doctor --json" prints for a finding.
type findingJSON struct {
	Check    string          `json:"check"`
	Severity doctor.Severity `json:"severity"`
	Unknown  bool            `json:"unknown"`
	Finding  string          `json:"finding"`
	Evidence []string        `json:"evidence"`
	Remedy   string          `json:"remedy"`
	Page     string          `json:"page"`
}

// diagnosis is a call of turnstile doctor.
type diagnosis struct {
	command.Access

	readFor   command.Period
	adminPort int
	write     bool
}

func newDoctor(app *command.App) *cobra.Command {
	d := &diagnosis{
		Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second), adminPort: 8080,
	}
	cmd := &cobra.Command{
		Use:   "doctor [flags] [PATH]",
		Short: "Examine an ensemble: settings, times, servers, locks; say what is wrong and what to do",
		Long: `Examines the servers that --connect names, and the tree at PATH and below it, and prints what it finds:
an error if locks or the ensemble may fail, a warning if that may come or if other programs are harmed, a note
for the rest, and for what could not be found out. Each has what was seen, what to do, and a page of docs/.

It asks each server four-letter words (srvr, mntr, conf, ruok; cons and dump if there is much), and HTTP
commands at --admin-port, which tell the same and more. What neither tells is unknown, and the reason is given.

It only reads, unless --write is given: then it creates a node /turnstile-doctor-..., writes to it 20 times to
see how long that takes, reads the leader's clock from it, and deletes it.

If no server gives out a session, it examines the servers alone.

Exit codes: 0 no error was found; 1 one was; 64 usage; 69 no server gives out a session; 77 access to PATH
denied.`,
		Example: `  turnstile doctor
  turnstile doctor --write --connect zk1:2181,zk2:2181,zk3:2181 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is looked at")
			case d.adminPort < 0 || d.adminPort > 65535:
				return command.Usagef(cmd, "--admin-port must be a port, or 0 to ask no HTTP commands")
			case len(args) == 1:
				if err := d.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			return command.UntilSignal(cmd.Context(), d.run)
		},
	}
	flags := cmd.Flags()
	d.Flags(cmd, "one JSON object per finding")
	flags.BoolVar(&d.write, "write", false, "make a node of its own, measure writes with it, and delete it")
	flags.IntVar(&d.adminPort, "admin-port", d.adminPort, "the `port` of the servers' HTTP commands; 0 asks none")
	flags.Var(&d.readFor, "read-for", "stop reading the tree after this time, and go on with what was found")
	return cmd
}

// run examines the ensemble, or if no server gives out a session, what can be seen without one.
func (d *diagnosis) run(ctx context.Context) error {
	err := d.Open(ctx, true, d.examine)
	e, failed := errors.AsType[*command.Error](err)
	if !failed || e.Code != command.ExitNoServer || d.Connection.Servers == "" {
		return err
	}
	r, ended := doctor.ExamineServers(ctx, d.Connection.Names(), d.config())
	if ended != nil {
		return ended
	}
	return cmp.Or(d.printAll(r), err)
}

func (d *diagnosis) config() doctor.Config {
	return doctor.Config{
		Root: d.Path, Time: time.Duration(d.readFor), Asked: d.Connection.SessionTimeout(),
		Credentials: d.Connection.HasCredentials(), Write: d.write, AdminPort: d.adminPort, Word: d.Connection.Word,
	}
}

// examine makes the examination, and prints what was found.
func (d *diagnosis) examine(ctx context.Context, client *zk.Client) error {
	r, err := doctor.Examine(ctx, client, d.config())
	if err != nil {
		return err
	}
	if err := closed(r.Tree, d.Path); err != nil {
		return err
	}
	if err := d.printAll(r); err != nil {
		return err
	}
	if r.Tree.Listed == 0 {
		d.App.Complain("there is no path %s: only the servers were examined", d.Path)
	}
	if r.Count(doctor.Error) > 0 {
		return &command.Error{Code: exitFound}
	}
	return nil
}

// printAll prints what was found.
func (d *diagnosis) printAll(r *doctor.Report) error {
	for _, f := range r.Findings {
		if err := d.print(f); err != nil {
			return err
		}
	}
	d.App.Say("%s, %s, %s; looked at %s and %s; asked %s", command.Plural(r.Count(doctor.Error), "error"),
		command.Plural(r.Count(doctor.Warning), "warning"), command.Plural(r.Count(doctor.Note), "note"),
		command.Plural(r.Servers, "server"), command.Plural(r.Tree.Listed, "node"), d.Connection.Where())
	return nil
}

// exitFound is the exit code if an error was found.
const exitFound = 1

// print prints a finding.
func (d *diagnosis) print(f doctor.Finding) error {
	if d.AsJSON {
		j := findingJSON{
			Check: f.Check, Severity: f.Severity, Unknown: f.Unknown, Finding: f.Text,
			Evidence: append([]string{}, f.Evidence...), Remedy: f.Remedy, Page: f.Page,
		}
		return d.App.JSON(j)
	}
	if err := d.App.Printf("%s: %s (%s)\n", string(f.Severity), f.Text, f.Check); err != nil {
		return err
	}
	for _, seen := range f.Evidence {
		if err := d.App.Printf("  seen: %s\n", seen); err != nil {
			return err
		}
	}
	return d.App.Printf("  to do: %s\n  more: %s\n", f.Remedy, f.Page)
}
