package store

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifestFS syncs the directory when a manifest has been created. Pebble creates the manifest and then the marker that points to it,
// and syncs the directory once after both: a file system that keeps only the second entry over a crash would leave a
// marker that points to nothing, and a database that does not open again.
type manifestFS struct{ vfs.FS }

// Create creates a file, and if it is a manifest makes its name durable.
func (fs manifestFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil || !strings.HasPrefix(fs.PathBase(name), "MANIFEST-") {
		return f, err
	}
	dir, err := fs.OpenDir(fs.PathDir(name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Unwrap returns the file system below.
func (fs manifestFS) Unwrap() vfs.FS { return fs.FS }
