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

// diskFS changes how Pebble uses the file system, in four ways.
//
// It makes a manifest's name durable before the marker that points to it. Pebble syncs the directory only after both,
// so a crash could keep the marker alone and leave a database that does not open.
//
// It makes a marker's name durable when the marker is closed. Pebble does that afterwards, and panics if it fails,
// often in a goroutine of its own: that would end the process without a word about the disk.
//
// It gives a log its full size from the start. A sync of a file that has grown also writes the new size, which takes
// half as long again as the data. The zeros after the last record end the log when Pebble reads it.
//
// It hides from Pebble that a log has failed: see logFile.
type diskFS struct {
	vfs.FS
	s *Store
}

// Create creates a file.
func (fs diskFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	base := fs.PathBase(name)
	f, err := fs.FS.Create(name, category)
	if strings.HasSuffix(base, ".log") {
		if err == nil && f.Fd() != vfs.InvalidFd {
			extend(f.Fd(), logSize)
		}
		return fs.log(f, err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(base, "MANIFEST-"):
		if err := syncDir(fs.FS, fs.PathDir(name)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	case strings.HasPrefix(base, "marker."):
		return markerFile{f, fs.FS, fs.PathDir(name)}, nil
	}
	return f, nil
}

// ReuseForWrite renames a log that is needed no more, and opens it to write it again.
func (fs diskFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.log(fs.FS.ReuseForWrite(oldname, newname, category))
}

// log returns f as a log. If it could not be opened, the store fails, and the log is a file that is forgotten.
func (fs diskFS) log(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		fs.s.fail(err)
		f, err = vfs.NewMem().Create("log", vfs.WriteCategoryUnspecified)
	}
	return &logFile{f, fs.s}, err
}

// logFile is a log of Pebble's. If it fails, so does the store, and Pebble is told nothing: it would panic when it
// begins the next log, without the lock that it then releases, which ends the process. Because the store has failed,
// nothing that was written to the log since is acknowledged. What follows is not written, to the next log neither: no
// transaction may be there without the one before it.
type logFile struct {
	vfs.File
	s *Store
}

// hide makes the store fail if err is not nil.
func (f *logFile) hide(err error) {
	if err != nil {
		f.s.fail(err)
	}
}

// Write writes the next bytes.
func (f *logFile) Write(p []byte) (int, error) {
	if f.s.Err() == nil {
		_, err := f.File.Write(p)
		f.hide(err)
	}
	return len(p), nil
}

// Sync makes the log durable.
func (f *logFile) Sync() error {
	f.hide(f.File.Sync())
	return nil
}

// SyncData makes what was written durable.
func (f *logFile) SyncData() error {
	f.hide(f.File.SyncData())
	return nil
}

// SyncTo makes the first bytes durable.
func (f *logFile) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	f.hide(err)
	return fullSync, nil
}

// Close closes the log.
func (f *logFile) Close() error {
	f.hide(f.File.Close())
	return nil
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
	return directory{dir, fs.s}, nil
}

// directory is a directory that Pebble syncs.
type directory struct {
	vfs.File
	s *Store
}

// Sync makes the names in the directory durable. When a marker moves, what it still makes durable is that the old
// marker is gone, which does not matter; and for a new log see logFile. So the store fails, and Pebble, which would
// panic, is told nothing.
func (d directory) Sync() error {
	err := d.File.Sync()
	if err != nil && panics() {
		d.s.fail(err)
		return nil
	}
	return err
}

// panics reports whether our caller is a function of Pebble's that panics when the directory cannot be synced.
func panics() bool {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/atomicfs.(*Marker).Move") ||
			strings.HasSuffix(frame.Function, "/wal.(*StandaloneManager).Create") {
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
