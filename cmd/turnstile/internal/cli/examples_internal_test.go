//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every example of a help text is a line for a script. Here no server answers: each must say so and end, with an exit
// code that the script sees. A flag or an argument that is wrong would be told before.
func TestExamplesOfTheHelpEndWithoutAServer(t *testing.T) {
	t.Parallel()
	root := allCommands()
	var lines []string
	visit(root, root, func(cmd, _ *cobra.Command) {
		switch cmd.Name() {
		case "serve", "restore", "man", "version", "own-server", "status", "stop": // they ask no server
			return
		case "exporter": // it goes on without one: see TestExporterServesWhatLocksShows
			return
		}
		for line := range strings.Lines(cmd.Example) {
			if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	})
	if len(lines) < 80 {
		t.Fatalf("%d examples: are these all commands?", len(lines))
	}
	tools := t.TempDir()
	for _, name := range []string{"jq", "convert", "make"} { // of the examples
		writeProgram(t, filepath.Join(tools, name))
	}
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, program := range regexp.MustCompile(`\./[a-z0-9-]+(\.sh)?`).FindAllString(line, -1) {
				writeProgram(t, filepath.Join(dir, program))
			}
			for _, file := range []string{"app.jsonl", "config.json", "photo.jpg", "feeds.txt"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("one\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := regexp.MustCompile(`--connect \S+`).ReplaceAllString(line, "--connect 127.0.0.1:1")
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail\n"+run)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "PATH="+tools+":"+os.Getenv("PATH"),
				"TURNSTILE_CONNECT=127.0.0.1:1", "TURNSTILE_CONNECT_TIMEOUT=100ms")
			out, err := cmd.CombinedOutput() // which also waits for all that have our pipe
			want := 69
			switch {
			case strings.HasPrefix(line, "if "):
				want = 0
			case strings.Contains(line, `"$(turnstile`): // the outer command gets nothing
				want = 64
			}
			exit, _ := errors.AsType[*exec.ExitError](err)
			got := 0
			if exit != nil {
				got = exit.ExitCode()
			}
			if got != want {
				t.Errorf("it ended with %v, want exit code %d\n%s", err, want, out)
			}
			if !strings.Contains(string(out), "no server answers at 127.0.0.1:1") {
				t.Errorf("it did not say that no server answers:\n%s", out)
			}
		})
	}
}

func writeProgram(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}
