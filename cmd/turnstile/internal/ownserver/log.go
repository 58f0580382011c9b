package ownserver

// Its log.

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

const (
	logName = "server.log"
	maxLog  = 1 << 20 // bytes; a log that is larger is moved aside
)

// log is the server's log while it runs: standard error is that file, opened for appending. When it is full it is
// copied aside and truncated. One goroutine at a time may write.
type log struct {
	io.Writer
	path string
	room int64 // until its size is checked again
}

// NewLog returns the log of the server whose data is in dir. It is written to w.
func NewLog(w io.Writer, dir string) io.Writer {
	return &log{Writer: w, path: filepath.Join(filepath.Dir(dir), logName)}
}

// Write writes a line of the log.
func (l *log) Write(b []byte) (int, error) {
	if l.room -= int64(len(b)); l.room < 0 {
		if err := l.makeRoom(); err != nil {
			return 0, err
		}
	}
	return l.Writer.Write(b)
}

func (l *log) makeRoom() error {
	info, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		l.room = maxLog
		return nil // standard error is something else, or the log was removed
	}
	if err != nil {
		return err
	}
	if l.room = maxLog - info.Size(); l.room > 0 {
		return nil
	}
	l.room = maxLog
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(l.path+".1", text, 0o600), os.Truncate(l.path, 0))
}
