package server

// Restoring a backup.

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// RestoreConfig configures Restore.
type RestoreConfig struct {
	Data    string // the data directory, which no server may use
	Replace bool   // put the state aside that the directory has; otherwise Restore refuses
	// Above is a fencing token. The tokens of the restored state are larger. It is needed if some token may be larger
	// than the backup, the replaced state and the clock tell, or if the replaced state cannot be read.
	Above  int64
	Logger *slog.Logger // silent if nil
	_      struct{}
}

// Restored says what Restore has done.
type Restored struct {
	Backup   *BackupInfo
	Zxid     int64  // at which the new state begins
	Nodes    int64  // in it
	Dropped  int64  // nodes of sessions, which it does not have
	Replaced string // the directory to which the former state was moved, "" if there was none
	_        struct{}
}

// ErrNotEmpty is wrapped by the error of Restore if the directory has a state and RestoreConfig.Replace is not set.
var ErrNotEmpty = store.ErrNotEmpty

// ErrInUse is wrapped by the error of Restore and of Start if another server, or a restore, uses the data directory.
var ErrInUse = store.ErrInUse

// tokenShift is how many bits of a fencing token are not of its zxid.
const tokenShift = 12

// MaxAbove is the largest RestoreConfig.Above. Larger tokens would leave the restored state too few of its own.
const MaxAbove = store.LastZxid<<tokenShift - 1

// Restore makes the state of a data directory from a backup. Sessions and their nodes are not restored. The state
// begins at a zxid above that of the backup, that of the state that it replaces, and all those that were restored
// earlier, as far as clocks tell: so fencing tokens grow, also if one backup is restored twice.
//
// The new state is complete and was read back before it takes the place of the former one, which is moved into a
// directory of its own. If Restore fails, or the machine does, the directory has the one or the other. If a backup is
// damaged the error wraps ErrDamagedBackup, and nothing has changed.
func Restore(ctx context.Context, r io.Reader, cfg RestoreConfig) (*Restored, error) {
	if cfg.Above < 0 || cfg.Above > MaxAbove {
		return nil, fmt.Errorf("server: RestoreConfig.Above must be a token from 0 to %d: %d",
			int64(MaxAbove), cfg.Above)
	}
	done, err := store.Restore(ctx, store.RestoreConfig{
		Dir: cfg.Data, Replace: cfg.Replace, Above: cfg.Above >> tokenShift, Logger: cfg.Logger,
	}, r)
	if done == nil {
		return nil, err
	}
	return &Restored{
		Backup: newBackupInfo(done.Manifest), Zxid: done.Zxid, Nodes: done.Nodes, Dropped: done.Dropped,
		Replaced: done.Replaced,
	}, err
}
