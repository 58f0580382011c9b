package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is a fence for a file, among the processes of one machine. Beside the file at path lies path.fence with the largest
// token; it is locked while a write is under way, by the operating system, which gives the lock back whenever a process dies. It must
// not be deleted: that would forget the token. On a network file system it is as good as that system's locks are.
//
// Two Files with one path are one fence.
type File struct {
	path string
	turn chan struct{} // one slot: goroutines of this File wait here, and not by asking the system again and again
}

// NewFile returns the fence of the file at path. Nothing is read or written yet.
func NewFile(path string) *File {
	return &File{path: path, turn: make(chan struct{}, 1)}
}

// Write replaces the file's content by data. Readers see the old content or the new, also after a crash: the new is written beside it,
// synced, and renamed. It returns a *StaleError, and writes nothing, if a larger token has been seen; ctx's cause if that ends while another
// write is under way. A file that exists keeps its permissions, a new one gets 0o644.
func (f *File) Write(ctx context.Context, token int64, data []byte) error {
	return f.Do(ctx, token, func() error {
		if err := replace(f.path, data); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		return nil
	})
}

// Do runs write after it has admitted the token, durably, and lets nobody else write until that returns. It is for what Write
// cannot do: append, change in place, several files. It returns write's error as it is; the token counts as seen then, too. It does not
// run write, and returns a *StaleError, if a larger token has been seen; ctx's cause if that ends while another write is under way.
func (f *File) Do(ctx context.Context, token int64, write func() error) error {
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
		if token > r.token {
			if err := r.write(record, token); err != nil {
				return fmt.Errorf("fence: remember the token: %w", err)
			}
		}
		return write()
	})
}

// Raise shows the token and writes nothing else: what later tries a smaller one is refused. Call it before reading what a write
// depends on.
func (f *File) Raise(ctx context.Context, token int64) error {
	return f.Do(ctx, token, func() error { return nil })
}

// Newest returns the largest token that has been seen, zero if none has.
func (f *File) Newest(ctx context.Context) (int64, error) {
	var newest int64
	err := f.locked(ctx, func(record *os.File) error {
		r, err := readRecord(record)
		newest = r.token
		return err
	})
	return newest, err
}

// locked runs do with the record open and locked.
func (f *File) locked(ctx context.Context, do func(record *os.File) error) error {
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

// replace puts data into the file at path, all or nothing.
func replace(path string, data []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// record is what the file with the token holds: two slots, of which each new token takes the other one, so that a crash in
// the middle of a write leaves the older.
type record struct {
	token int64 // the larger of the two
	slot  int   // where it is
}

const slotSize = 64

func readRecord(f *os.File) (record, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 2*slotSize+1))
	if err != nil {
		return record{}, err
	}
	if len(b) > 2*slotSize {
		return record{}, errors.New("not a fence's file: it is too long")
	}
	r := record{slot: 1}
	valid := 0
	for i := range 2 {
		from, to := min(i*slotSize, len(b)), min((i+1)*slotSize, len(b))
		token, ok := parseSlot(b[from:to])
		if ok {
			valid++
		}
		if ok && token > r.token {
			r = record{token: token, slot: i}
		}
	}
	if valid == 0 && !neverWhole(b) {
		return record{}, errors.New("not a fence's file, or damaged: no token can be read from it; if it is damaged, delete it and call Raise with the newest token")
	}
	return r, nil
}

// neverWhole reports whether b is what a crash can leave of the first token, which nobody was told had been admitted. A later
// one that a crash tears leaves the other slot as it was.
func neverWhole(b []byte) bool {
	return len(b) <= slotSize && (len(bytes.Trim(b, "\x00")) == 0 || strings.HasPrefix(string(b), slotPrefix[:min(len(b), len(slotPrefix))]))
}

func (r record) write(f *os.File, token int64) error {
	if _, err := f.WriteAt(formatSlot(token), int64(1-r.slot)*slotSize); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if r.token == 0 { // the file may be new
		return syncDir(filepath.Dir(f.Name()))
	}
	return nil
}
