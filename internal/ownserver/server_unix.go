//go:build unix

package ownserver

// Who owns its files.

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ours reports whether a file or directory is this user's.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// terminateSignal asks a process to end.
const terminateSignal = syscall.SIGTERM

// alive reports whether a process still runs.
func alive(p *os.Process) bool { return p.Signal(syscall.Signal(0)) == nil }

// Executable returns a path of the running program.
func Executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil // also works if the file was replaced or deleted meanwhile, as "go run" deletes it
	}
	return os.Executable()
}

// detached makes a process independent of our terminal, our process group and our end.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// CloseInherited closes the files, other than the standard ones, that the process was started with. A server that lives
// on must not keep a pipe or a lock of the shell that happened to start it.
func CloseInherited() error {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // opened by Go, which sets this flag on all of its files
		}
		_ = unix.Close(fd) // if it fails, the file stays open
	}
	return nil
}

// tryLock locks a file, until it is closed. It reports false if another process has locked it.
func tryLock(f *os.File) (locked bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
