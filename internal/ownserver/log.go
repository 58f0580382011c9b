package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ownLog is the log of a user's own server while it runs: standard error is that file, opened for appending, and when it is full it is copied
// aside and begins anew. One goroutine at a time may write.
type ownLog struct {
	io.Writer
	path string
	room int64 // until the next look at its size
}

// newOwnLog returns the log of the own server whose data is in dir.
func newOwnLog(w io.Writer, dir string) *ownLog {
	return &ownLog{Writer: w, path: filepath.Join(filepath.Dir(dir), ownLogName)}
}

// Write writes a line of the log.
func (l *ownLog) Write(b []byte) (int, error) {
	if l.room -= int64(len(b)); l.room < 0 {
		if err := l.makeRoom(); err != nil {
			return 0, err
		}
	}
	return l.Writer.Write(b)
}

func (l *ownLog) makeRoom() error {
	info, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		l.room = maxOwnLog
		return nil // standard error is something else, or somebody has removed the log
	}
	if err != nil {
		return err
	}
	if l.room = maxOwnLog - info.Size(); l.room > 0 {
		return nil
	}
	l.room = maxOwnLog
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(l.path+".1", text, 0o600), os.Truncate(l.path, 0))
}
