package store

// Keeping out other users of the machine.

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The names of files in a store's directory.
const (
	dbName   = "db"
	sideName = "side.log"
)

// makePrivate creates the database's directory and the side log, if missing, and gives them modes that keep out other
// users of the machine, whatever the mode of dir is. It must be called before anything is stored. fs is nil for the
// operating system's file system.
func makePrivate(fs vfs.FS, dir string) error {
	if fs != nil {
		return nil // file systems of tests have no users
	}
	db := filepath.Join(dir, dbName)
	if _, err := makeDir(vfs.Default, db); err != nil {
		return err
	}
	if err := os.Chmod(db, 0o700); err != nil { //nolint:gosec // a directory
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, sideName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// makeFilePrivate gives a file a mode that keeps out other users, and creates it if it is missing. An error will show
// when the file is used. It must not open an existing file: closing that would give up the process's lock on it.
func makeFilePrivate(name string) {
	if f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close()
		return
	}
	_ = os.Chmod(name, 0o600)
}
