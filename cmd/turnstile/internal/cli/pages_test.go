//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/zktest"
)

// TestCommandsOfThePagesRun runs the shell lines of the pages one after the other, in a folder with the programs that
// they name. A line ends with 0, or with what its comment says. The servers that pages name are a server of the test;
// what builds a program or needs one that was built is left out.
func TestCommandsOfThePagesRun(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"README.md", "docs/command-line.md", "docs/queues.md", "docs/fencing.md", "docs/across-machines.md",
		"docs/tree.md", "docs/recipes.md", "docs/scripts.md", "docs/tracing.md",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../../../" + page)
			if err != nil {
				t.Fatal(err)
			}
			lines := shellLines(string(text))
			if len(lines) == 0 {
				t.Fatal("no shell lines")
			}
			script := pageScript(lines, zktest.Run(t).Addr())
			dir := t.TempDir()
			t.Cleanup(func() { stopServers(dir) })
			programs := []string{"nightly.sh", "read.sh", "transfer.sh", "encode.sh", "serve", "send-mail"}
			for _, program := range programs {
				script := []byte("#!/bin/sh\ncat >/dev/null\n")
				if err := os.WriteFile(filepath.Join(dir, program), script, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Dir = dir
			for _, v := range os.Environ() {
				if !strings.HasPrefix(v, "TURNSTILE_") && !strings.HasPrefix(v, "XDG_") {
					cmd.Env = append(cmd.Env, v)
				}
			}
			cmd.Env = append(cmd.Env, "HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// shellLines returns the lines of a page's shell blocks that need nothing but turnstile and a POSIX system.
func shellLines(page string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if !regexp.MustCompile(`^make |^go |\bgo run |\bcurl |turnstile serve `).MatchString(line) {
				lines = append(lines, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return lines
}

// pageScript returns a script that ends at the first line that does not end as it says.
func pageScript(lines []string, server string) string {
	var b strings.Builder
	// More than once: a job that has not come to run its program yet loses the signal, as bash handles that itself.
	b.WriteString("trap 'while kill $(jobs -pr) 2>/dev/null; do sleep 0.1; done; wait' EXIT\n")
	for _, line := range lines {
		want := "0"
		if says := regexp.MustCompile(`#.*exits with ([0-9]+)`).FindStringSubmatch(line); says != nil {
			want = says[1]
		}
		run := strings.NewReplacer("127.0.0.1:2181", server, "zk1:2181,zk2:2181,zk3:2181", server).Replace(line)
		quoted := strings.ReplaceAll(line, "'", `'\''`)
		fmt.Fprintf(&b, "%s\ncode=$?; [ $code = %s ] || { echo \"exit code $code, want %s:\" '%s'; exit 1; }\n",
			run, want, want, quoted)
	}
	return b.String()
}
