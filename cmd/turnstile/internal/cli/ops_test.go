//go:build unix

package cli_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// opsCommands returns the command lines of turnstile in the units and in the examples for Kubernetes, by their files.
func opsCommands(t *testing.T) map[string][]string {
	t.Helper()
	units := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/turnstile (.*)$`)
	pods := regexp.MustCompile(`(?ms)^ +args: \[(.*?)\]$`)
	lines := make(map[string][]string)
	for _, file := range files(t, "systemd/*", "kubernetes/*.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		for _, m := range units.FindAllStringSubmatch(string(text), -1) {
			lines[name] = strings.Fields(m[1])
		}
		for _, m := range pods.FindAllStringSubmatch(string(text), -1) {
			for arg := range strings.SplitSeq(m[1], ",") {
				lines[name] = append(lines[name], strings.Trim(strings.TrimSpace(arg), `"`))
			}
		}
	}
	return lines
}

func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob("../../../../ops/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

func TestCommandsOfUnitsAndPodsAreOurs(t *testing.T) {
	t.Parallel()
	lines := opsCommands(t)
	if len(lines) != 5 {
		t.Errorf("got %d commands, want those of three units and two pods: %q", len(lines), lines)
	}
	for file, line := range lines {
		root := cli.NewRoot(&command.App{Env: command.NewEnviron(nil), Stdout: io.Discard, Stderr: io.Discard})
		cmd, args, err := root.Find(line)
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %q: %v", file, line, err)
		}
	}
}

// A page says what each alert means.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, page := range files(t, "../docs/operating.md", "../docs/metrics.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, text...)
	}
	for _, file := range files(t, "*-alerts.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(text, -1)
		if len(alerts) == 0 {
			t.Errorf("%s has no alerts", file)
		}
		for _, alert := range alerts {
			if !bytes.Contains(pages, append([]byte("| `"), append(alert[1], '`')...)) {
				t.Errorf("%s: no row for %s in docs/operating.md or docs/metrics.md", file, alert[1])
			}
		}
	}
}

// Each setting that the package's file suggests is one that turnstile accepts.
func TestSettingsOfThePackageAreKnown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(files(t, "package/turnstile.env")[0])
	if err != nil {
		t.Fatal(err)
	}
	if out, err := withSettings(t, text); err != nil {
		t.Errorf("as it is installed: %v\n%s", err, out)
	}
	suggested := bytes.ReplaceAll(text, []byte("\n#TURNSTILE_"), []byte("\nTURNSTILE_"))
	if n := bytes.Count(suggested, []byte("\nTURNSTILE_")); n != 3 {
		t.Errorf("got %d settings, want 3", n)
	}
	if out, err := withSettings(t, suggested); err != nil {
		t.Errorf("with what it suggests: %v\n%s", err, out)
	}
}

// withSettings runs a command that only reads the settings of the machine.
func withSettings(t *testing.T, text []byte) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "turnstile.env")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := turnstile("version")
	cmd.Env = append(cmd.Environ(), "SETTINGS="+file)
	return cmd.CombinedOutput()
}
