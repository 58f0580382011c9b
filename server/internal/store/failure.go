package store

// Making failures of Pebble failures of the store.

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger drops Pebble's routine messages and turns its fatal errors into a failure of the store.
type pebbleLogger struct{ s *Store }

// Infof drops routine messages.
func (l pebbleLogger) Infof(string, ...any) {}

// Errorf logs errors after which Pebble tries again.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.logger.Warn("store: database error, will retry", "err", fmt.Sprintf(format, args...))
}

// Fatalf makes the store fail and returns, which Pebble's code allows. Nothing acknowledged is lost: because of the
// failure the server acknowledges nothing more, and the log on disk has everything that it acknowledged before.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			l.s.fail(err)
			return
		}
	}
	l.s.fail(fmt.Errorf(format, args...))
}

// events makes every failure of Pebble's background work a failure of the store. If Pebble could not write its tables,
// writers would sooner or later block forever.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			s.fail(err)
			if s.opening.Load() {
				// Pebble would try again at once, without end, as long as Open waits for it. It holds the lock of the
				// database here, so that nothing else is written either.
				select {}
			}
		},
		WALCreated:     func(pebble.WALCreateInfo) { s.rotated.Store(true) },
		FlushEnd:       func(pebble.FlushInfo) { s.tablesWritten() },
		CompactionEnd:  func(pebble.CompactionInfo) { s.tablesWritten() },
		DataCorruption: func(info pebble.DataCorruptionInfo) { s.fail(fmt.Errorf("data corruption: %s", info)) },
		DiskSlow: func(info pebble.DiskSlowInfo) {
			s.logger.Warn("store: slow disk", "dir", s.dir, "info", info.String())
		},
	}
}

// maxLevels is how many tables may lie upon each other before they are merged.
const maxLevels = 12

// awaitRoom waits while the disk has more tables to write than it should, or the store has failed. Pebble would wait by
// itself, but without end if the disk then fails: it tries again to write the table.
func (s *Store) awaitRoom() {
	if !s.rotated.Swap(false) {
		return // the table in memory is the same as at the last look
	}
	for {
		m := s.db.Metrics()
		if m.MemTable.Size < s.room && m.Levels[0].Sublevels < maxLevels {
			return
		}
		select {
		case <-s.written:
		case <-s.failed:
			return
		}
	}
}

// tablesWritten wakes awaitRoom.
func (s *Store) tablesWritten() {
	select {
	case s.written <- struct{}{}:
	default:
	}
}
