package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is a fence for a file, among the processes of one machine. Beside the file at path lies path.fence with the largest
// token; it is locked while a write is under way, by the operating system, which gives the lock back whenever a process dies. It must
// not be deleted: that would forget the token. Write puts new content into path.fence.tmp before it renames it. On a network file system it is as good as that system's locks are.
//
// Two Files with one path are one fence. The path must be the file's own: a symbolic link is refused with an error, because a file with
// two names would have two fences.
type File struct {
	path string
	turn chan struct{} // one slot: goroutines of this File wait here, and not by asking the system again and again

	// Whoever has the turn and the system's lock owns these.
	durable Token // the token that this File itself has put on the disk
	rooted  bool  // the directory knows the record, on the disk
}

// NewFile returns the fence of the file at path. Nothing is read or written yet.
func NewFile(path string) *File {
	return &File{path: path, turn: make(chan struct{}, 1)}
}

// Write replaces the file's content by data. Readers see the old content or the new, also after a crash: the new is written beside it,
// synced, and renamed, and the directory is synced (which Windows cannot). It returns a *StaleError, and writes nothing, if a larger token has been seen;
// ctx's cause if that has ended or ends while another write is under way. After any other error the file has the old content or the new, and the
// write may be repeated. A file that exists keeps its permissions, a new one gets 0o644.
func (f *File) Write(ctx context.Context, token Token, data []byte) error {
	return f.Do(ctx, token, func() error {
		if err := replace(f.path, f.path+".fence.tmp", data); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		return nil
	})
}

// Do runs write after it has admitted the token, durably, and lets nobody else write until that returns. It is for what Write
// cannot do: append, change in place, several files. It returns write's error as it is; the token counts as seen then, too. It does not
// run write, and returns a *StaleError, if a larger token has been seen; ctx's cause if that has ended or ends while another write is under way.
func (f *File) Do(ctx context.Context, token Token, write func() error) error {
	if err := checkToken(token); err != nil {
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
			return fmt.Errorf("fence: remember the token: %w", err)
		}
		return write()
	})
}

// remember puts the token on the disk before anything is written under it. That another process's token can be read does not mean that it is on
// the disk: its writer may have been killed, or its sync may have failed, between the two. Then a crash of the machine would keep the
// data and forget the token. So every File writes and syncs a token once itself, and before it writes over the slot of the token
// before the last, it sees to it that the last is on the disk.
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
	if r.token == 0 || !f.rooted {
		if err := syncDir(filepath.Dir(record.Name())); err != nil {
			return err
		}
	}
	f.durable, f.rooted = token, true
	return nil
}

// Raise shows the token and writes nothing else: what later tries a smaller one is refused. Call it before reading what a write
// depends on.
func (f *File) Raise(ctx context.Context, token Token) error {
	return f.Do(ctx, token, func() error { return nil })
}

// Newest returns the largest token that has been seen, zero if none has.
func (f *File) Newest(ctx context.Context) (Token, error) {
	var newest Token
	err := f.locked(ctx, func(record *os.File) error {
		r, err := readRecord(record)
		newest = r.token
		return err
	})
	return newest, err
}

// locked runs do with the record open and locked.
func (f *File) locked(ctx context.Context, do func(record *os.File) error) error {
	if ctx.Err() != nil { // select would choose at random
		return fmt.Errorf("fence: %s: %w", f.path, context.Cause(ctx))
	}
	if info, err := os.Lstat(f.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("fence: %s is a symbolic link: name the file that it leads to", f.path)
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
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
		// The system could wait for us, but not for ctx.
		select {
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		case <-ctx.Done():
			return fmt.Errorf("fence: %s: %w", f.path, context.Cause(ctx))
		}
	}
}

// errBusy is openLocked's answer while somebody else has the file.
var errBusy = errors.New("locked by somebody else")

// replace puts data into the file at path, all or nothing, by way of tmp. The caller has the fence's lock, so nobody else uses tmp; what
// lies there is left from a crash.
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
			if gone := os.Remove(tmp); !errors.Is(gone, fs.ErrNotExist) { // renamed before the directory's sync failed
				err = errors.Join(err, gone)
			}
		}
	}()
	_, err = f.Write(data)
	// In this order: the name must never lead to what is not on the disk yet.
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
