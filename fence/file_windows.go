package fence

// The file lock of a File.

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is the system's error for a file that another handle has open without sharing.
const errSharingViolation syscall.Errno = 32

// openLocked opens the file without sharing, and creates it if it does not exist, so that it cannot be opened again
// until it is closed. It does not wait: it returns errBusy while another handle has the file open.
func openLocked(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	const shareNothing = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shareNothing, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharingViolation) {
		return nil, errBusy
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// syncDir does nothing, because Windows cannot sync directories.
func syncDir(string) error { return nil }
