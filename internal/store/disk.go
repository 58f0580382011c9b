package store

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logSize is what a log is extended to when it is made: more than a table in memory fills.
const logSize = tableSize + tableSize/8

// diskFS is the file system as Pebble should use it: safer in one place, faster in another.
//
// A manifest's name is made durable before the marker that points to it. Pebble syncs the directory once after both, and a
// file system that keeps only the marker over a crash would leave a database that does not open again.
//
// A log has its full size from the start. A file that grows with every write has its new size written with every sync,
// which takes half as long again as the write itself. The zeros behind the last record end the log when it is read.
type diskFS struct{ vfs.FS }

// Create creates a file.
func (fs diskFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	switch base := fs.PathBase(name); {
	case strings.HasSuffix(base, ".log"):
		if fd := f.Fd(); fd != vfs.InvalidFd {
			extend(fd, logSize)
		}
	case strings.HasPrefix(base, "MANIFEST-"):
		if err := syncDir(fs.FS, fs.PathDir(name)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Unwrap returns the file system below.
func (fs diskFS) Unwrap() vfs.FS { return fs.FS }

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, name string) error {
	dir, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
