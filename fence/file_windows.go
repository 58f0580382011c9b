package fence

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is the system's answer when a file is open elsewhere in a way that does not let us in.
const errSharingViolation syscall.Errno = 32

// openLocked opens the file, and makes it if it is not there, so that nobody else can open it until it is closed. It does not wait:
// while somebody else has it open it returns errBusy.
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

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
