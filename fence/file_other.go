//go:build !windows && (!unix || solaris || illumos || aix)

package fence

// Systems without the file locks that File needs.

import (
	"errors"
	"fmt"
	"os"
)

// openLocked fails: this system has no file locks that end with their process and also exclude goroutines.
func openLocked(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %s: %w on this system; use another fence", path, errors.ErrUnsupported)
}

// syncDir is never called.
func syncDir(string) error { return errors.ErrUnsupported }
