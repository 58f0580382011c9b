package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
)

// A holder that is just starting has bound its socket and does not listen yet. To others it looks as if it had been
// killed.
func TestHolderLeavesTheSocketOfAnotherThatIsStarting(t *testing.T) {
	t.Parallel()
	dir := ownserver.TempDir()
	if err := ownserver.PrivateDir(dir); err != nil {
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
	id := strconv.Itoa(os.Getpid())
	starting := filepath.Join(dir, id+"-0123.sock")
	defer os.Remove(starting)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: starting})
	}
	if err != nil {
		t.Fatal(err)
	}
	path := "/starting-" + id // no other test has a holder for it
	r := start(t, "lock", "--connect", newServer(t).Addr(), "--pid", strconv.Itoa(startCat(t).Process.Pid), path)
	for !openedFor(t, lockFile, path) {
		if _, err := os.Stat(starting); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // real: until another process has come so far
	}
	if err := unix.Listen(fd, 128); err != nil {
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

// openedFor reports whether a process that has a path among its arguments has a file open.
func openedFor(t *testing.T, file, path string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(links, func(link string) bool {
		if target, _ := os.Readlink(link); target != file { // it may have been closed meanwhile
			return false
		}
		args, _ := os.ReadFile(filepath.Join(link, "../../cmdline")) // it may have ended
		return slices.Contains(strings.Split(string(args), "\x00"), path)
	})
}

func TestThreadIsNoProcessToHoldALockFor(t *testing.T) {
	t.Parallel()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(os.Getpid())
	i := slices.IndexFunc(threads, func(thread os.DirEntry) bool { return thread.Name() != own })
	r := start(t, "lock", "--connect", newServer(t).Addr(), "--pid", threads[i].Name(), "/x")
	r.wantCode(64)
	r.wantStderr("it is a thread of process " + own)
}
