package store

// Descriptors that are kept aside.

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spareFiles is how many descriptors a store keeps aside: more than Pebble opens at a time to merge tables and begin a
// new log.
const spareFiles = 24

// spareFS keeps descriptors open that have no other purpose, and closes one whenever the process has none left to open
// a file. Without a new log or table the store would fail, and with it the server, though all that has happened is that
// the rest of the process has opened too much.
type spareFS struct {
	vfs.FS
	mu   sync.Mutex // guards held
	held []*os.File
	done bool // held stays empty; guarded by mu, too
}

func newSpareFS(fs vfs.FS) *spareFS {
	s := &spareFS{FS: fs}
	s.refill()
	return s
}

// refill opens what is missing, as far as that is possible now.
func (s *spareFS) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.held) < spareFiles && !s.done {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		s.held = append(s.held, f)
	}
}

// release closes one and reports whether there was one.
func (s *spareFS) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.held) - 1
	if last < 0 {
		return false
	}
	_ = s.held[last].Close()
	s.held = s.held[:last]
	return true
}

// close closes all of them.
func (s *spareFS) close() {
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
	for s.release() {
	}
}

// spareFile is a file whose descriptor is kept when the file is closed, if one is missing.
type spareFile struct {
	vfs.File
	s *spareFS
}

// Close closes the file.
func (f spareFile) Close() error {
	err := f.File.Close()
	f.s.refill()
	return err
}

func (s *spareFS) file(open func() (vfs.File, error)) (vfs.File, error) {
	f, err := again(s, open)
	if err != nil {
		return nil, err
	}
	return spareFile{f, s}, nil
}

// again calls open until it does not fail for want of a descriptor. Another goroutine may take the one that was
// released, so one attempt may not be enough.
func again[T any](s *spareFS, open func() (T, error)) (T, error) {
	for {
		f, err := open()
		switch {
		case err == nil:
			s.refill()
			return f, nil
		case !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE), !s.release():
			return f, err
		}
	}
}

// Create creates a file.
func (s *spareFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.file(func() (vfs.File, error) { return s.FS.Create(name, category) })
}

// Open opens a file to read it.
func (s *spareFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return s.file(func() (vfs.File, error) { return s.FS.Open(name, opts...) })
}

// OpenReadWrite opens a file, and creates it if it is missing.
func (s *spareFS) OpenReadWrite(
	name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption,
) (vfs.File, error) {
	return s.file(func() (vfs.File, error) { return s.FS.OpenReadWrite(name, category, opts...) })
}

// OpenDir opens a directory to sync it.
func (s *spareFS) OpenDir(name string) (vfs.File, error) {
	return s.file(func() (vfs.File, error) { return s.FS.OpenDir(name) })
}

// ReuseForWrite renames a file and opens it to write it again.
func (s *spareFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.Rename(oldname, newname); err != nil { // apart, because it must not be done twice
		return nil, err
	}
	return s.OpenReadWrite(newname, category)
}

// List lists a directory.
func (s *spareFS) List(dir string) ([]string, error) {
	return again(s, func() ([]string, error) { return s.FS.List(dir) })
}

// Unwrap returns the file system below.
func (s *spareFS) Unwrap() vfs.FS { return s.FS }
