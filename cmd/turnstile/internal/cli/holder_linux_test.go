package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A holder that is just starting has bound its socket and does not listen yet. To others it looks as if it had been
// killed.
func TestHolderLeavesTheSocketOfAnotherThatIsStarting(t *testing.T) {
	t.Parallel()
	state := shortDir(t)
	dir := filepath.Join(state, "turnstile", "holders")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lockFile := filepath.Join(dir, "holders.lock")
	f, err := os.Create(lockFile)
	if err == nil {
		defer f.Close()
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	starting := filepath.Join(dir, "1-0123.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: starting})
	}
	if err != nil {
		t.Fatal(err)
	}
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state) },
		"lock", "--connect", newServer(t).Addr(), "--pid", strconv.Itoa(startCat(t).Process.Pid), "/x")
	for !openedByAnother(t, lockFile) {
		if _, err := os.Stat(starting); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // real: until another process has come so far
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r.line()
	r.wantCode(0)
	conn, err := net.Dial("unix", starting)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// openedByAnother reports whether another process of ours has a file open.
func openedByAnother(t *testing.T, path string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	own := "/proc/" + strconv.Itoa(syscall.Getpid()) + "/"
	return slices.ContainsFunc(links, func(link string) bool {
		target, _ := os.Readlink(link) // it may have been closed meanwhile
		return target == path && link[:len(own)] != own
	})
}
