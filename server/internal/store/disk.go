package store

// How Pebble uses the file system.

import (
	"errors"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logSize is the size to which a new log is extended: more than one table in memory can fill.
const logSize = tableSize + tableSize/8

// diskFS changes how Pebble uses the file system, in three ways.
//
// It makes a manifest's name durable before the marker that points to it. Pebble syncs the directory only after both,
// so a crash could keep the marker alone and leave a database that does not open.
//
// It makes a marker's name durable when the marker is closed. Pebble does that afterwards, and panics if it fails,
// often in a goroutine of its own: that would end the process without a word about the disk.
//
// It gives a log its full size from the start. A sync of a file that has grown also writes the new size, which takes
// half as long again as the data. The zeros after the last record end the log when Pebble reads it.
type diskFS struct {
	vfs.FS
	fail func(error) // makes the store fail
}

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
	case strings.HasPrefix(base, "marker."):
		return markerFile{f, fs.FS, fs.PathDir(name)}, nil
	}
	return f, nil
}

// markerFile is a file whose name is durable once it is closed.
type markerFile struct {
	vfs.File
	fs  vfs.FS
	dir string
}

// Close closes the file.
func (f markerFile) Close() error { return errors.Join(f.File.Close(), syncDir(f.fs, f.dir)) }

// OpenDir opens a directory to sync it.
func (fs diskFS) OpenDir(name string) (vfs.File, error) {
	dir, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return directory{dir, fs.fail}, nil
}

// directory is a directory that Pebble syncs.
type directory struct {
	vfs.File
	fail func(error)
}

// Sync makes the names in the directory durable. When a marker moves, what it still makes durable is that the old
// marker is gone, which does not matter: so the store fails, and Pebble, which would panic, is told nothing.
func (d directory) Sync() error {
	err := d.File.Sync()
	if err != nil && movesMarker() {
		d.fail(err)
		return nil
	}
	return err
}

// movesMarker reports whether our caller is Pebble's function for that.
func movesMarker() bool {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/atomicfs.(*Marker).Move") {
			return true
		}
		if !more {
			return false
		}
	}
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
