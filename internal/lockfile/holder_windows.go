package lockfile

// Asking the system whether a file is open exclusively.

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// sharingViolation is the error of a file that a process has opened for itself alone.
const sharingViolation = syscall.Errno(32)

// Holder reports whether a process has opened the file for itself alone, which is how it is locked here. The id is
// Unknown. A file that does not exist is not locked.
func Holder(path string) (pid int, held bool, err error) {
	f, err := os.Open(path)
	switch {
	case err == nil:
		return 0, false, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case errors.Is(err, sharingViolation):
		return Unknown, true, nil
	}
	return 0, false, err
}
