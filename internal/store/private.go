package store

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The names below a store's directory.
const (
	dbName   = "db"
	sideName = "side.log"
)

// makePrivate sees to it that other users of the machine cannot read what is stored, in whatever directory, before anything is: nobody else
// may enter the database's directory or open the side log. It makes both if they are not there. fs is nil if it is the operating system's.
func makePrivate(fs vfs.FS, dir string) error {
	if fs != nil {
		return nil // it has no users
	}
	db := filepath.Join(dir, dbName)
	if err := makeDir(vfs.Default, db); err != nil {
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
