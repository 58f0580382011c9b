//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zktest"
)

// tmux is a terminal of 80 x 24, as tmux draws it.
type tmux struct {
	t      *testing.T
	socket string
}

// inTmux runs turnstile with arguments in a terminal of its own.
func inTmux(t *testing.T, env string, args ...string) *tmux {
	t.Helper()
	peer.Need(t, "tmux")
	dir, err := os.MkdirTemp("", "tmux") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &tmux{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() // it has ended if the test has failed
		_ = os.RemoveAll(dir)
	})
	line := env + " turnstile " + strings.Join(args, " ") + "; echo ended with $?; exec sleep 1000"
	s.do("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "exec sh -c '"+line+"'")
	return s
}

func (s *tmux) do(args ...string) string {
	s.t.Helper()
	args = append([]string{"-u", "-S", s.socket}, args...)
	out, err := exec.CommandContext(s.t.Context(), "tmux", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (s *tmux) press(keys ...string) { s.do(append([]string{"send-keys"}, keys...)...) }

func (s *tmux) capture(flags ...string) string {
	return s.do(append([]string{"capture-pane", "-p"}, flags...)...)
}

// until waits until the screen is as wanted, and returns it. All its lines fit.
func (s *tmux) until(what string, ok func(screen string) bool) string {
	s.t.Helper()
	end := time.Now().Add(patience)
	for {
		screen := s.capture()
		if ok(screen) {
			return screen
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s is not to be seen:\n%s", what, screen)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// see waits until the screen shows all of these.
func (s *tmux) see(texts ...string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// miss waits until the screen does not show a text, but another one.
func (s *tmux) miss(text, but string) string {
	s.t.Helper()
	return s.until("a screen without "+text, func(screen string) bool {
		return !strings.Contains(screen, text) && strings.Contains(screen, but)
	})
}

func TestTopAtATerminal(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Durable())
	topShowsAll(t, srv.Addr(), srv.Stop, srv.Start)
}

func TestTopOfApacheZooKeeper(t *testing.T) {
	t.Parallel()
	peer.Need(t, "tmux")
	server := peer.ZooKeeper(t, longSessions)
	topShowsAll(t, server.ConnectString(), func() { server.Kill(0) }, func() { server.Restart(0) })
}

// topShowsAll looks at each view, and does what keys can do.
func topShowsAll(t *testing.T, connect string, down, up func()) {
	t.Helper()
	s := inTmux(t, "", "top", "--allow-changes", "--interval", "200ms", "--session-timeout", "30s",
		"--connect", connect)
	s.see("Nothing is held", connect, "live")
	hold := func(args ...string) *running {
		r := start(t, append([]string{"lock", "--connect", connect, "--session-timeout", "30s"}, args...)...)
		t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // it may have ended
		return r
	}
	first := hold("--label", "b\x1b[31m\u202ec", "/jobs/report", "--", "puppet")
	first.ready()
	second := hold("--label", "next", "/jobs/report", "--", "puppet")
	s.see("/jobs/report", "HOLDER", `(b\x1b`, "1 wait")
	hold("--label", "narrow", "/nar\u4e16\u754ce\u0301", "--", "puppet").ready()
	hold("--label", "other", "/other", "--", "puppet").ready()
	start(t, "queue", "put", "--connect", connect, "/queues/mail", "body").wantCode(0)
	start(t, "elect", "--connect", connect, "/leader", "--", "puppet").ready()

	s.press("2")
	s.see("HOLDS, AND WHO WAITS", "└─", "(next)")
	s.press("3")
	s.see("LEADER", "/leader")
	s.press("4")
	s.see("READY", "/queues/mail           ", "  1 ")
	s.press("5")
	s.see("SESSION", "127.0.0.1:", "→ /jobs/report", "0x")
	s.press("6")
	s.see("LATENCY", "standalone", " ms")
	s.press("Tab")
	s.see("LONGEST", "/other", "nar世界e\\u0301")

	s.press("/", "o", "t", "h", "Enter")
	s.miss("/jobs/report", `only "oth": 1`)
	s.press("Escape")
	s.see("/jobs/report")
	s.press("s", "s", "s") // by path
	s.until("an order by path", func(screen string) bool {
		at := func(path string) int { return strings.Index(screen, path) }
		return at("/jobs") > 0 && at("/jobs") < at("/leader ") && at("/leader ") < at("/other")
	})
	s.press("?")
	s.see("change the view")
	s.press("Escape", "s") // by the longest wait again

	s.do("resize-window", "-x", "50", "-y", "12")
	s.until("a narrow screen", fits(50, 12))
	s.do("resize-window", "-x", "120", "-y", "30")
	s.until("a wide screen", fits(120, 30))
	s.do("resize-window", "-x", "80", "-y", "24")
	s.until("the first size", fits(80, 24))

	s.press("g", "Enter")
	s.see("holder", "waiter 1", "(next)", "TOKEN", "layout curator")
	s.press("r", "w", "h", "y")
	s.see("REVOKE /jobs/report", "Reason: why")
	s.press("Enter")
	first.wantCode(75)
	second.ready()
	s.see("has released it", "2 changes of the holder", "→")
	s.press("F", "x", "Enter")
	s.see("nothing was done")
	stubborn := second.cmd.Process
	if err := stubborn.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.press("F")
	s.see("FORCE /jobs/report", "token", "Type report to force")
	s.press("Escape")
	s.miss("FORCE", "holder")
	if err := stubborn.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.press("F", "r", "e", "p", "o", "r", "t", "Enter")
	second.wantCode(75)
	s.see("Nobody holds it")
	s.press("Escape")
	s.miss("/jobs/report ", "/other")

	s.press("p")
	s.see("paused")
	third := hold("--label", "third", "/third", "--", "puppet")
	third.ready()
	s.see("paused")
	if strings.Contains(s.capture(), "/third") {
		t.Error("a paused screen shows what is new")
	}
	s.press("p")
	s.see("/third")
	down()
	s.see("not connected since", "/third")
	up()
	s.see("● live", "/third")
	s.press("q")
	s.see("ended with 0")
}

// fits reports whether a screen shows what it should at a size: nothing is wider, and the last line has the keys.
func fits(columns, lines int) func(string) bool {
	return func(screen string) bool {
		list := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
		for _, line := range list {
			if ansi.StringWidth(line) > columns {
				return false
			}
		}
		return len(list) == lines && strings.HasPrefix(list[lines-1], " r revoke") &&
			strings.Contains(list[0], "live") && (columns < 64) != strings.Contains(screen, "KIND")
	}
}

func TestTopWithoutColours(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for env, coloured := range map[string]bool{"NO_COLOR=1": false, "NO_COLOR=": true} {
		s := inTmux(t, env, "top", "--connect", srv.Addr())
		s.see("Nothing is held", "live")
		if got := strings.Contains(s.capture("-e"), "\x1b[32m"); got != coloured {
			t.Errorf("%s: in colour is %t, want %t", env, got, coloured)
		}
		s.press("r")
		s.see("--allow-changes")
		s.press("C-c")
		s.see("ended with 0")
	}
}
