//go:build unix

package ownserver

// Who owns its files.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ours reports whether a file or directory is this user's.
func Ours(path string) bool {
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
func Executable() (string, error) { return executable("/proc/self/exe", os.Args[0]) }

// executable returns link if there is such a file, which Linux has in /proc: it also works if the file was replaced or
// deleted meanwhile, as "go run" deletes it. Elsewhere, and in a container without /proc, it asks the system, and then
// looks for the name that we were called by.
func executable(link, name string) (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(link); err == nil {
			return link, nil
		}
	}
	if runtime.GOOS != "linux" { // which would ask /proc again
		if path, err := os.Executable(); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell which file this program is: mount /proc, or call it by its path: %w", err)
	}
	return path, nil
}

// checkHome returns an error if this user is the superuser and a directory, or the first one above it that exists, is
// another user's: what we made there, that user could not use.
func checkHome(dir string, uid int) error {
	if uid != 0 {
		return nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil && at != filepath.Dir(at) {
			continue
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return fmt.Errorf("%s belongs to another user, and root's own server would leave its directories there: "+
				"set HOME or XDG_STATE_HOME to a directory of root, as sudo -H does, or name a server with --connect",
				at)
		}
		return nil
	}
}

// detached makes a process independent of our terminal, our process group and our end.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// CloseInherited closes the files, other than the standard ones, that the process was started with. A server that lives
// on must not keep a pipe or a lock of the shell that happened to start it.
func CloseInherited() error { return closeInherited("/dev/fd") }

func closeInherited(list string) error {
	fds, err := descriptors(list)
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if fd <= 2 {
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

// maxDescriptors is how many descriptors are tried where there is no list of them.
const maxDescriptors = 1 << 16

// descriptors returns the descriptors that may be open: those in a directory that lists them, or else, in a container
// without /proc, all that there can be.
func descriptors(list string) (fds []int, err error) {
	dir, err := os.Open(list)
	if errors.Is(err, fs.ErrNotExist) {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			return nil, err
		}
		for fd := range int(min(limit.Cur, maxDescriptors)) {
			fds = append(fds, fd)
		}
		return fds, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds, err
}

// tryLock locks a file, until it is closed. It reports false if another process has locked it.
func tryLock(f *os.File) (locked bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
