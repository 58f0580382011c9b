package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger keeps Pebble's chatter out of the log, and turns what Pebble holds to be fatal for the process into the
// store's failure.
type pebbleLogger struct{ s *Store }

// Infof drops Pebble's reports of its daily work.
func (l pebbleLogger) Infof(string, ...any) {}

// Errorf logs what Pebble could not do and will try again.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.logger.Warn("store: the database will try again", "what", fmt.Sprintf(format, args...))
}

// Fatalf makes the store fail. It returns, which Pebble's callers allow for: the server stops acknowledging because of the
// failure, and the log on disk holds all that was acknowledged.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			l.s.fail(err)
			return
		}
	}
	l.s.fail(fmt.Errorf(format, args...))
}

// events makes every failure of Pebble's background work the store's failure: if tables cannot be written, writers would
// sooner or later block for ever.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.fail,
		DataCorruption:  func(info pebble.DataCorruptionInfo) { s.fail(fmt.Errorf("data corruption: %s", info)) },
		DiskSlow: func(info pebble.DiskSlowInfo) {
			s.logger.Warn("store: the disk is slow", "dir", s.dir, "info", info.String())
		},
	}
}
