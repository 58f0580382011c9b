//go:build unix

package lockfile

// Asking the kernel for the holder of a POSIX lock.

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Holder reports whether another process has locked the file with fcntl, and that process's id: 0 if it is out of our
// sight, in a container. The kernel answers, so the id is that of a process that lives and has the file open. A file
// that does not exist is not locked.
//
// The process must not have locked the file itself: its locks of a file end when it closes the file, however opened.
func Holder(path string) (pid int, held bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK} // the whole file: what would be in the way?
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, false, &fs.PathError{Op: "fcntl", Path: path, Err: err}
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, false, nil
	}
	return int(lock.Pid), true, nil
}
