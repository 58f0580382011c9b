//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A process that the lock is held for learns of its loss as a command does.
func TestProcessEndsWhenTheLockThatIsHeldForItIsLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		line   string // of the shell that is the process
		args   []string
		signal syscall.Signal
	}{
		{"term", "echo; exec cat", nil, syscall.SIGTERM},
		{"stubborn", "trap '' TERM; echo; cat", []string{"--grace", "100ms"}, syscall.SIGKILL},
		{"kill", "echo; exec cat", []string{"--on-lost", "kill"}, syscall.SIGKILL},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			sess := srv.Session(t, time.Minute)
			process := exec.CommandContext(t.Context(), "sh", "-c", test.line)
			if _, err := process.StdinPipe(); err != nil { // it runs until that is closed
				t.Fatal(err)
			}
			out, err := process.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := firstLine(out); err != nil {
				t.Fatal(err)
			}
			pid := strconv.Itoa(process.Process.Pid)
			args := append([]string{"lock", "--connect", srv.Addr(), "--pid", pid}, test.args...)
			start(t, append(args, "/x")...).wantCode(0)
			expire(t, srv, sess, "/x")
			_ = process.Wait() // its end is in its state
			if status := process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != test.signal {
				t.Errorf("it ended with %v, want signal %v", process.ProcessState, test.signal)
			}
		})
	}
}

func TestProcessEndsWhenTheLockThatIsHeldForItIsRevoked(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	process := startCat(t)
	start(t, "lock", "--connect", srv.Addr(), "--pid", strconv.Itoa(process.Process.Pid), "/x").wantCode(0)
	start(t, "revoke", "--connect", srv.Addr(), "--reason", "test", "/x").wantCode(0)
	_ = process.Wait() // its end is in its state
	if status := process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, want SIGTERM", process.ProcessState)
	}
}

func TestUnlockReturnsAlsoAfterARevocation(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	pid := strconv.Itoa(startCat(t).Process.Pid)
	start(t, "lock", "--connect", srv.Addr(), "--pid", pid, "--on-lost", "ignore", "/x").wantCode(0)
	start(t, "revoke", "--connect", srv.Addr(), "--within", "1s", "--reason", "test", "/x").wantCode(1)
	unlock := start(t, "unlock", "--pid", pid, "/x")
	unlock.rest()
	unlock.wantCode(0)
	wantContenders(t, sess, "/x", 0)
}

func TestProcessThatUnlocksAfterARevocationEndsByItself(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	process := exec.CommandContext(t.Context(), "sh", "-c", `trap 'turnstile unlock --pid $$ /x; kill $!; exit 3' TERM
		turnstile lock --connect "$0" --session-timeout 5m --grace 30s --pid $$ /x
		sleep 1000 & wait`, srv.Addr())
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := firstLine(out); err != nil {
		t.Fatal(err)
	}
	start(t, "revoke", "--connect", srv.Addr(), "--reason", "test", "/x").wantCode(0)
	_ = process.Wait() // its end is in its state
	if got := process.ProcessState.ExitCode(); got != 3 {
		t.Errorf("it ended with %v, want code 3", process.ProcessState)
	}
}

func TestSignalToTheHolderReleasesTheLockAndSparesTheProcess(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		srv := newServer(t)
		sess := srv.Session(t, time.Minute)
		process := startCat(t)
		start(t, "lock", "--connect", srv.Addr(), "--pid", strconv.Itoa(process.Process.Pid), "/x").wantCode(0)
		if err := syscall.Kill(holderAt(t, srv, "/x"), sig); err != nil {
			t.Fatal(err)
		}
		wantContenders(t, sess, "/x", 0)
		if err := process.Process.Kill(); err != nil {
			t.Errorf("%v: the process has ended: %v", sig, err)
		}
		_ = process.Wait() // its end is in its state
		if status := process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("%v: it ended with %v, want that of the test", sig, process.ProcessState)
		}
	}
}

func TestLockCanBeHeldAgainAfterItsHolderWasKilled(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	pid := strconv.Itoa(startCat(t).Process.Pid)
	start(t, "lock", "--connect", srv.Addr(), "--pid", pid, "/x").wantCode(0)
	id := holderAt(t, srv, "/x")
	holder, err := supervise.Watch(id)
	if err == nil {
		err = syscall.Kill(id, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-holder.Ended()
	expire(t, srv, sess, "/x")
	start(t, "lock", "--connect", srv.Addr(), "--pid", pid, "/x").wantCode(0)
	start(t, "unlock", "--pid", pid, "/x").wantCode(0)
}

// startCat starts a process that ends with the test.
func startCat(t *testing.T) *exec.Cmd {
	t.Helper()
	process := exec.CommandContext(t.Context(), "cat")
	if _, err := process.StdinPipe(); err != nil { // it runs until that is closed
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

// holderAt returns the process that holds a lock.
func holderAt(t *testing.T, srv *zktest.Server, path string) int {
	t.Helper()
	line, err := lock.Inspect(t.Context(), srv.Client(t, time.Minute), path)
	if err != nil || len(line) != 1 {
		t.Fatalf("contenders %v, %v, want one", line, err)
	}
	return line[0].Owner.PID
}

// A script may change its environment between turnstile lock and turnstile unlock, or have none that names a home.
func TestHolderIsFoundInWhateverHome(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	pid := strconv.Itoa(startCat(t).Process.Pid)
	with := func(home, state string, args ...string) *running {
		return startWith(t, func(cmd *exec.Cmd) {
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+state, "TMPDIR="+t.TempDir())
		}, append(args, "--pid", pid, "/x")...)
	}
	with("relative", "", "lock", "--connect", srv.Addr()).wantCode(0)
	twice := with(t.TempDir(), "", "lock", "--connect", srv.Addr())
	twice.wantCode(64)
	twice.wantStderr("it is held for that process already")
	with(t.TempDir(), t.TempDir(), "unlock").wantCode(0)
	wantContenders(t, srv.Session(t, time.Minute), "/x", 0)
}
