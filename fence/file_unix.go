//go:build unix && !solaris && !illumos && !aix

package fence

// The file lock of a File.

import (
	"errors"
	"os"
	"syscall"
)

// openLocked opens the file, creates it if it does not exist, and takes an exclusive lock that ends when the file is
// closed. It does not wait: it returns errBusy while the file is locked elsewhere.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		// The lock belongs to the open file, so it also excludes goroutines.
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		err = sameFile(f, path)
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close() // nothing was written
	if errors.Is(err, errBusy) {
		return nil, err
	}
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, errBusy
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}

// sameFile returns errBusy if path no longer leads to f. That is so if another process has deleted it between our
// opening and our locking it, and processes that open path now lock another file.
func sameFile(f *os.File, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return errBusy // the retry opens what is there now, or returns why it cannot
	}
	return nil
}

// syncDir makes a rename or a new file in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
