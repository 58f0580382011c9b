//go:build unix && !solaris && !illumos && !aix

package fence

import (
	"errors"
	"os"
	"syscall"
)

// openLocked opens the file, and makes it if it is not there, with an exclusive lock that ends when it is closed. It does not wait:
// while somebody else has the lock it returns errBusy.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // the lock is the open file's, so it keeps goroutines apart, too
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

// sameFile returns errBusy if path no longer leads to f: somebody has deleted it between our opening and locking it, to begin anew, and who opens it
// now locks another file.
func sameFile(f *os.File, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return errBusy // try again: that opens what is there now, or says why not
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
