package store

// How Pebble uses the file system.

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logSize is the size to which a new log is extended: more than one table in memory can fill.
const logSize = tableSize + tableSize/8

// diskFS changes how Pebble uses the file system, in two ways.
//
// It makes a manifest's name durable before the marker that points to it. Pebble syncs the directory only after both,
// so a crash could keep the marker alone and leave a database that does not open.
//
// It gives a log its full size from the start. A sync of a file that has grown also writes the new size, which takes
// half as long again as the data. The zeros after the last record end the log when Pebble reads it.
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
