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
		return f, nil
	}
	_ = f.Close() // nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, errBusy
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}

// syncDir makes a rename or a new file in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
