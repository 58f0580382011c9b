//go:build !windows && (!unix || solaris || illumos || aix)

package fence

import (
	"errors"
	"fmt"
	"os"
)

// openLocked fails: this system has no lock of files that ends with its process and keeps goroutines apart, too.
func openLocked(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %s: %w here: use another fence", path, errors.ErrUnsupported)
}

// syncDir is not reached.
func syncDir(string) error { return errors.ErrUnsupported }
