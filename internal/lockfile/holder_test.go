//go:build unix

package lockfile_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lockfile"
)

// The test binary is also the process that locks the file.
func TestMain(m *testing.M) {
	path := os.Getenv("LOCK_FILE")
	if path == "" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it
}

func TestHolderIsTheProcessThatHasTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	wantHolder(t, path, 0, false) // no such file
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "LOCK_FILE="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	wantHolder(t, path, cmd.Process.Pid, true)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	wantHolder(t, path, 0, false)
}

func wantHolder(t *testing.T, path string, pid int, held bool) {
	t.Helper()
	gotPID, gotHeld, err := lockfile.Holder(path)
	if gotPID != pid || gotHeld != held || err != nil {
		t.Errorf("got pid %d, held %v, %v, want pid %d, held %v", gotPID, gotHeld, err, pid, held)
	}
}
