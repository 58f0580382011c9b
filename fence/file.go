package fence

// File, a fence for a file.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is a fence for a file, among the processes of one machine. It keeps the largest token in path.fence, which it
// locks during a write; the operating system releases that lock when a process dies. Deleting path.fence would forget
// the token. On a network file system a File is as good as the system's locks.
//
// Two Files with the same path are one fence. File refuses a path that is a symbolic link, because a file with two
// names would have two fences.
type File struct {
	path string
	slot chan struct{} // has one slot, so that goroutines of this File wait here and do not poll the system's lock

	// Owned by the goroutine that has the slot and the system's lock.
	durable    Token // the token that this File itself has synced
	dirDurable bool  // the directory's entry of path.fence is synced
}

// NewFile returns the fence of the file at path. It does not touch the file system yet.
func NewFile(path string) *File {
	return &File{path: path, slot: make(chan struct{}, 1)}
}

// Write replaces the file's content by data, atomically: it writes and syncs path.fence.tmp, renames it, and syncs the
// directory (except on Windows). It returns a *StaleError, and writes nothing, if the fence has seen a larger token,
// and ctx's cause if ctx ends before other writes have finished. After any other error the file has the old or the new
// content, and the caller may retry. An existing file keeps its permissions; a new one gets 0o644.
func (f *File) Write(ctx context.Context, token Token, data []byte) error {
	return f.Do(ctx, token, func() error {
		if err := replace(f.path, f.path+".fence.tmp", data); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		return nil
	})
}

// Do admits the token durably, runs write, and admits no other write until it returns. It is for what Write cannot do:
// append, change in place, change several files. Do returns write's error unchanged; the fence has seen the token
// nevertheless. Without running write it returns a *StaleError if the fence has seen a larger token, and ctx's cause if
// ctx ends before other writes have finished.
func (f *File) Do(ctx context.Context, token Token, write func() error) error {
	if err := cmp.Or(checkToken(token), checkWork(write == nil)); err != nil {
		return err
	}
	return f.locked(ctx, func(record *os.File) error {
		r, err := readRecord(record)
		if err != nil {
			return fmt.Errorf("fence: %s: %w", record.Name(), err)
		}
		if err := admit(f.path, token, r.token); err != nil {
			return err
		}
		if err := f.remember(record, r, token); err != nil {
			return fmt.Errorf("fence: store the token: %w", err)
		}
		return write()
	})
}

// remember makes the token durable before the write that it admits. A token of another process that can be read may not
// be on the disk: its writer may have been killed before the sync, or the sync may have failed. A crash of the machine
// would then keep the data and forget the token. So every File writes and syncs a token once itself. Before it
// overwrites the older slot, it syncs the newer one.
func (f *File) remember(record *os.File, r record, token Token) error {
	if r.token == f.durable {
		if token == r.token {
			return nil
		}
	} else if err := record.Sync(); err != nil {
		return err
	}
	if err := r.write(record, token); err != nil {
		return err
	}
	if r.token == 0 || !f.dirDurable {
		if err := syncDir(filepath.Dir(record.Name())); err != nil {
			return err
		}
	}
	f.durable, f.dirDurable = token, true
	return nil
}

// Raise shows the fence the token and writes nothing else, so that it refuses smaller ones from then on. Call it before
// you read what a write depends on.
func (f *File) Raise(ctx context.Context, token Token) error {
	return f.Do(ctx, token, func() error { return nil })
}

// Newest returns the largest token that the fence has seen, or zero.
func (f *File) Newest(ctx context.Context) (Token, error) {
	var newest Token
	err := f.locked(ctx, func(record *os.File) error {
		r, err := readRecord(record)
		newest = r.token
		return err
	})
	return newest, err
}

// locked calls do with the record open and locked.
func (f *File) locked(ctx context.Context, do func(record *os.File) error) error {
	if ctx.Err() != nil { // the select below would choose at random
		return fmt.Errorf("fence: %s: %w", f.path, context.Cause(ctx))
	}
	if f.path == "" || os.IsPathSeparator(f.path[len(f.path)-1]) { // path.fence would be another file's, or hidden
		return fmt.Errorf("fence: path must name a file, and %q does not", f.path)
	}
	if info, err := os.Lstat(f.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("fence: path must not be a symbolic link: %s; use the path of its target", f.path)
	}
	select {
	case f.slot <- struct{}{}:
		defer func() { <-f.slot }()
	case <-ctx.Done():
		return fmt.Errorf("fence: %s: %w", f.path, context.Cause(ctx))
	}
	pause := time.Millisecond
	for {
		record, err := openLocked(f.path + ".fence")
		if err == nil {
			defer record.Close()
			return do(record)
		}
		if !errors.Is(err, errBusy) {
			return fmt.Errorf("fence: %w", err)
		}
		// The system's own wait for the lock could not be interrupted by ctx.
		select {
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		case <-ctx.Done():
			return fmt.Errorf("fence: %s: %w", f.path, context.Cause(ctx))
		}
	}
}

// errBusy means that another process or goroutine has the file locked.
var errBusy = errors.New("locked by another process")

// replace atomically replaces the file at path by way of tmp. The caller has the fence's lock, so a tmp that exists is
// left from a crash.
func replace(path, tmp string, data []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			removeErr := os.Remove(tmp)
			if !errors.Is(removeErr, fs.ErrNotExist) { // it was renamed if only the directory's sync has failed
				err = errors.Join(err, removeErr)
			}
		}
	}()
	_, err = f.Write(data)
	// Sync before the rename: the name must never lead to content that is not on the disk yet.
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
