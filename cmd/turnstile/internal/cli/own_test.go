//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// ownHome returns a home with no server, and a change for commands that live in it.
func ownHome(t *testing.T) (dir string, change func(*exec.Cmd)) {
	t.Helper()
	dir = t.TempDir()
	t.Cleanup(func() { stopServers(dir) })
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=")
	}
}

// ownServer returns the process of the only server.
func ownServer(t *testing.T, dir string) int {
	t.Helper()
	pids, err := ownServers(dir)
	if err != nil || len(pids) != 1 {
		t.Fatalf("servers %v, %v, want one", pids, err)
	}
	return pids[0]
}

func TestStartersThatRaceShareOneServer(t *testing.T) {
	t.Parallel()
	dir, home := ownHome(t)
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
	ownServer(t, dir)
	log, err := os.ReadFile(filepath.Join(dir, "home/.local/state/turnstile/server.log"))
	if err != nil || bytes.Count(log, []byte("serving")) != 1 {
		t.Errorf("the log is %q, %v, want that of one server", log, err)
	}
}

func TestHoldOutlivesItsOwnServer(t *testing.T) {
	t.Parallel()
	dir, home := ownHome(t)
	r := startWith(t, home, "lock", "/x", "--", "puppet")
	r.ready()
	if err := syscall.Kill(ownServer(t, dir), syscall.SIGKILL); err != nil {
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
	dir, home := ownHome(t)
	for range 5 {
		r := startWith(t, home, "lock", "/x", "--", "echo", "in")
		r.wantLine("in")
		r.wantCode(0)
		pids, err := ownServers(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGTERM) // the last turn's may just have gone
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
