//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// ownHome returns a home with no server, and a change for commands that live in it.
func ownHome(t *testing.T) (log string, change func(*exec.Cmd)) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { stopServers(dir) })
	home := filepath.Join(dir, "home")
	return filepath.Join(home, ".local/state/turnstile/server.log"), func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR=", "XDG_STATE_HOME=", "TURNSTILE_CONNECT=")
	}
}

// ownServers returns the process ids of the servers that have served.
func ownServers(t *testing.T, log string) []int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, m := range servingLine.FindAllSubmatch(text, -1) {
		pid, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestStartersThatRaceShareOneServer(t *testing.T) {
	t.Parallel()
	log, home := ownHome(t)
	const starters = 6
	var wg sync.WaitGroup
	for range starters {
		r := startWith(t, home, "lock", "/x", "--", "sh", "-c", "echo $TURNSTILE_TOKEN")
		wg.Go(func() {
			r.wantCode(0)
			if rest := r.rest(); rest == "" {
				t.Error("the command did not run")
			}
		})
	}
	wg.Wait()
	if pids := ownServers(t, log); len(pids) != 1 {
		t.Errorf("servers %v have served, want one", pids)
	}
}

func TestHoldOutlivesItsOwnServer(t *testing.T) {
	t.Parallel()
	log, home := ownHome(t)
	r := startWith(t, home, "lock", "/x", "--", "puppet")
	r.ready()
	first := ownServers(t, log)
	if len(first) != 1 {
		t.Fatalf("servers %v, want one", first)
	}
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	startWith(t, home, "lock", "-n", "/x", "--", "true").wantCode(1)
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(3)
	startWith(t, home, "lock", "-n", "/x", "--", "true").wantCode(0)
}

func TestServerThatIsJustEndingIsStartedAgain(t *testing.T) {
	t.Parallel()
	log, home := ownHome(t)
	for turn := range 5 {
		r := startWith(t, home, "lock", "/x", "--", "echo", "in")
		r.wantLine("in")
		r.wantCode(0)
		pids := ownServers(t, log)
		if len(pids) <= turn {
			t.Fatalf("servers %v in turn %d, want another one each time", pids, turn)
		}
		if err := syscall.Kill(pids[len(pids)-1], syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOwnServerKeepsNothingOfItsStarter(t *testing.T) {
	t.Parallel()
	_, home := ownHome(t)
	r := startWith(t, func(cmd *exec.Cmd) {
		home(cmd)
		cmd.ExtraFiles = []*os.File{cmd.Stdout.(*os.File)}
	}, "lock", "/x", "--", "true")
	r.wantCode(0)
	r.rest() // would not end if the server had the other end of the pipe
}
