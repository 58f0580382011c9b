//go:build unix

package cli_test

// Commands for other recipes, as processes that signals end.

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// shareItems starts "turnstile share" for the items a to d, in dir, with a line for the shell.
func shareItems(t *testing.T, dir, server, id, line string, flags ...string) *running {
	t.Helper()
	file := filepath.Join(dir, "items")
	if err := os.WriteFile(file, []byte("a\nb\n\nc\nd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"share", "-v", "--connect", server, "--settle", "0.05", "--id", id, "--items-file", file, "-c", line,
	}, flags...)
	return startWith(t, func(c *exec.Cmd) { c.Dir = dir }, append(args, "/items")...)
}

// shortly are flags for a session that ends soon. On a busy machine it may be uncertain for a moment at any time, and
// commands run again.
var shortly = []string{"--session-timeout", "2s"} //nolint:gochecknoglobals // a constant

// itemLines returns the next n lines, sorted.
func (r *running) itemLines(n int) []string {
	r.t.Helper()
	var lines []string
	for range n {
		lines = append(lines, r.line())
	}
	slices.Sort(lines)
	return lines
}

func TestItemsOfAKilledProcessPassOn(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
	dir := t.TempDir()
	const line = `echo $TURNSTILE_ITEM; exec sleep 1000`
	a := shareItems(t, dir, srv.Addr(), "one", line, shortly...)
	has := make(map[string]bool)
	for len(has) < 4 {
		has[a.line()] = true
	}
	b := shareItems(t, dir, srv.Addr(), "two", line)
	clear(has)
	for len(has) < 2 {
		has[b.line()] = true
	}
	a.signal(syscall.SIGKILL)
	for len(has) < 4 {
		has[b.line()] = true
	}
	for _, item := range []string{"a", "b", "c", "d"} {
		if !has[item] {
			t.Errorf("it has %v, not %s", has, item)
		}
	}
	b.signal(syscall.SIGTERM)
	b.wantCode(0)
	a.wantCode(128 + int(syscall.SIGKILL))
}

func TestACommandThatIgnoresSIGTERMIsKilledBeforeItsItemPassesOn(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := os.WriteFile(run, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := shareItems(t, dir, srv.Addr(), "one",
		`trap '' TERM; echo $$ >pid-$TURNSTILE_ITEM; echo up; while test -e run; do sleep 0.01; done`,
		"--grace", "0.1")
	t.Cleanup(func() { _ = os.Remove(run) }) // so that commands that stay can end
	a.itemLines(4)
	b := shareItems(t, dir, srv.Addr(), "two",
		`kill -0 $(cat pid-$TURNSTILE_ITEM) 2>/dev/null && echo both || echo alone; exec sleep 1000`)
	for range 2 {
		b.wantLine("alone")
	}
}

func TestACommandOfAnItemThatFailsIsRunAgain(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	dir := t.TempDir()
	a := startWith(t, func(c *exec.Cmd) { c.Dir, c.Stdin = dir, strings.NewReader("x\r\n\r\n") }, "share",
		"--connect", srv.Addr(), "--settle", "0.05", "--retry-delay", "0.05", "/items", "--items-file", "-",
		"-c", `echo $TURNSTILE_ITEM $TURNSTILE_ID; test -e once && exec sleep 1000; touch once; exit 3`, "--id", "me")
	a.wantLine("x me")
	a.wantLine("x me")
	a.stderr.await(t, "/items: item x: exit code 3, again in 50ms")
	a.signal(syscall.SIGINT)
	a.wantCode(0)
}

func TestACommandOfAnItemThatSucceedsIsNotRunAgain(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	r := startWith(t, func(c *exec.Cmd) { c.Stdin = strings.NewReader("a\nb\n") }, "share", "-q", "--connect",
		srv.Addr(), "--settle", "0.05", "--retry-delay", "0.01", "/items", "--items-file", "-",
		"-c", `echo $TURNSTILE_ITEM; test $TURNSTILE_ITEM = a`)
	for a, b := 0, 0; a == 0 || b < 10; {
		if r.line() == "b" {
			b++
			continue
		}
		if a++; a > 1 {
			t.Fatalf("it ran again, after %d runs of the one that fails", b)
		}
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}

func TestSecondSignalKillsTheCommandsOfItems(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	r := startWith(t, func(c *exec.Cmd) { c.Stdin = strings.NewReader("x\n") }, "share", "-v", "--connect", srv.Addr(),
		"--settle", "0.05", "/items", "--items-file", "-", "--", "puppet", "stubborn")
	r.ready()
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.signal(syscall.SIGTERM)
	r.wantCode(128 + int(syscall.SIGTERM))
	if rest := r.rest(); rest != "" {
		t.Errorf("it went on: %q", rest)
	}
	if said := r.stderr.String(); strings.Contains(said, "item lost") {
		t.Errorf("the first signal took the item away: %s", said)
	}
}

func TestGroupWatchPrintsEveryChange(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	join := func(id string) *running {
		return startWith(t, nil, "group", "join", "--connect", srv.Addr(), "/g", "--id", id, "--", "puppet")
	}
	watch := start(t, "group", "watch", "--connect", srv.Addr(), "/g")
	watch.wantLine("")
	objects := start(t, "group", "watch", "--connect", srv.Addr(), "--json", "/g")
	if line := objects.line(); !strings.Contains(line, `"members":[]`) {
		t.Errorf("a group without members is %s", line)
	}
	one := join("one")
	watch.wantLine("one")
	one.ready()
	two := join("two")
	watch.wantLine("one two")
	two.ready()
	one.signal(syscall.SIGTERM)
	one.wantLine("got 15")
	one.wantCode(3)
	watch.wantLine("two")
	watch.signal(syscall.SIGINT)
	watch.wantCode(130)
}
