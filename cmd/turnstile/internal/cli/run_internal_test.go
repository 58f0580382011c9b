package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command that is called is made alone, by the names in parts.
func TestCalledCommandIsMadeAlone(t *testing.T) {
	t.Parallel()
	names := func(cmds []*cobra.Command) (list []string) {
		for _, cmd := range cmds {
			list = append(list, cmd.Name())
		}
		return list
	}
	all := names(allCommands().Commands())
	for _, p := range parts() {
		if got := names(p.new(silent())); !slices.Equal(got, p.names) {
			t.Errorf("parts has %q, and makes %q", p.names, got)
		}
		for _, name := range p.names {
			if !slices.Contains(all, name) {
				t.Errorf("%s is missing in %q", name, all)
			}
			got := newRoot(silent(), name, "--help")
			if cmd, _, err := got.Find([]string{name}); err != nil || cmd.Name() != name {
				t.Errorf("%s finds %v, %v", name, cmd, err)
			}
			if n := len(got.Commands()); n != len(p.names)+1 { // help besides
				t.Errorf("%s makes %d commands", name, n)
			}
		}
	}
	for _, args := range [][]string{{"help", "lock"}, {"__complete", "lock"}, {"--help"}, {"lck"}} {
		if got := names(newRoot(silent(), args...).Commands()); !slices.Equal(got, all) {
			t.Errorf("%q has %q, want all", args, got)
		}
	}
}

// Each line of a page is text or one of the few requests that it is made of, and each flag is there.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writePages(dir, allCommands()); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(dir + "/*.1")
	if err != nil || len(pages) < 70 {
		t.Fatal(len(pages), err)
	}
	request := regexp.MustCompile(`^\.(TH [A-Z-]+ 1 "" Turnstile Turnstile|SH [A-Z ]+|TP|PP|EX|EE)$`)
	escape := regexp.MustCompile(`\\(f[BIR]|-|e|&)`)
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			asks := strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")
			odd := strings.Contains(escape.ReplaceAllString(line, ""), `\`)
			if asks != request.MatchString(line) || odd || line == "" {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "turnstile-lock.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".SH NAME\nturnstile\\-lock \\- ", ".SH SYNOPSIS\n\\fBturnstile lock\\fR [flags] PATH",
		".TP\n\\fB\\-n\\fR, \\fB\\-\\-no\\-wait\\fR\n", " \\fIduration\\fR\n", "(default 10s)\n", ".SH EXAMPLES\n.EX\n",
		".SH SEE ALSO\n\\fBturnstile\\fR(1)\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("lock's page lacks %q:\n%s", want, text)
		}
	}
	if got := roff("a -b\n\n.c\n'd\\e"); got != "a \\-b\n.PP\n\\&.c\n\\&'d\\ee" {
		t.Errorf("got %q", got)
	}
}
