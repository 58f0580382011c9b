package cli

// Manual pages.

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

func newMan(*command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a directory",
		Example: "  turnstile man /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := command.OneFile(cmd, args, "DIR")
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return command.Usage(cmd, err)
			}
			root := allCommands()
			root.InitDefaultCompletionCmd()
			if err := writePages(dir, root); err != nil {
				return command.OutputError(err)
			}
			return nil
		},
	}
}

// writePages writes the page of a command and those of its subcommands.
func writePages(dir string, cmd *cobra.Command) error {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writePages(dir, sub); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(page(cmd)), 0o644)
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page returns a command's page, in the language of man(7). What cobra/doc writes takes the texts for Markdown, and its
// parser would cost each call of this program more to initialise than any other package.
func page(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag() // which UseLine and the options name
	name := pageName(cmd)
	var p manPage
	p.put(".TH ", strings.ToUpper(name), ` 1 "" Turnstile Turnstile`)
	p.put(".SH NAME\n", roff(name), ` \- `, roff(cmd.Short))
	p.put(".SH SYNOPSIS\n", bold(cmd.CommandPath()), roff(strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())))
	p.put(".SH DESCRIPTION\n", roff(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short))))
	if cmd.HasAvailableSubCommands() {
		p.put(".SH COMMANDS")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			p.put(".TP\n", bold(pageName(sub)), "(1)\n", roff(sub.Short))
		}
	}
	p.options("OPTIONS", cmd.NonInheritedFlags())
	p.options("GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.HasExample() {
		p.put(".SH EXAMPLES\n.EX\n", roff(cmd.Example), "\n.EE")
	}
	if cmd.HasParent() {
		p.put(".SH SEE ALSO\n", bold(pageName(cmd.Parent())), "(1)")
	}
	return p.String()
}

// manPage is a page as it is written.
type manPage struct{ strings.Builder }

// put writes a line, or several.
func (p *manPage) put(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
	p.WriteByte('\n')
}

// options writes a section about flags, unless there are none.
func (p *manPage) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.put(".SH ", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		names := bold("--" + f.Name)
		if f.Shorthand != "" {
			names = bold("-"+f.Shorthand) + ", " + names
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			names += ` \fI` + roff(value) + `\fR`
		}
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		p.put(".TP\n", names, "\n", roff(usage))
	})
}

func bold(text string) string { return `\fB` + roff(text) + `\fR` }

// roff escapes text, and makes an empty line begin a paragraph.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case line[0] == '.' || line[0] == '\'':
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
