package store

// Putting a restored state in the place of another.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	buildName = "restoring"    // the directory in which a new state is made
	swapName  = "restore.swap" // the file that says that it is whole, and where the former one goes
)

// isMissing reports whether err says that there is no such file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// hasDB reports whether a directory has a state.
func hasDB(fs vfs.FS, dir string) (bool, error) {
	names, err := fs.List(fs.PathJoin(dir, dbName))
	if isMissing(err) {
		return false, nil
	}
	return len(names) > 0, err
}

// beginSwap makes it durable that the new state takes the place of the former one, which goes to the directory aside:
// from here on every opening of the store does the rest. The side log stays where it is. It has nothing that the former
// state needs, and the new one takes nothing of it, because it does not have the key.
func beginSwap(fs vfs.FS, dir, aside string) error {
	name := fs.PathJoin(dir, swapName)
	f, err := fs.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(aside + "\n"))
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(fs, fs.PathJoin(dir, buildName))); err != nil {
		return err
	}
	if err := fs.Rename(name+".new", name); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// finishSwap does what beginSwap has decided, if it has. It may have been interrupted anywhere before. The caller has
// locked the directory.
func finishSwap(fs vfs.FS, dir string) error {
	aside, err := swapAside(fs, dir)
	if isMissing(err) {
		return nil
	}
	if err == nil {
		err = swap(fs, dir, aside)
	}
	if err == nil {
		err = errors.Join(fs.RemoveAll(fs.PathJoin(dir, buildName)), syncDir(fs, dir))
	}
	if err == nil {
		err = errors.Join(fs.Remove(fs.PathJoin(dir, swapName)), syncDir(fs, dir))
	}
	if err != nil {
		return fmt.Errorf("store: cannot finish the restore of %s: %w", dir, err)
	}
	return nil
}

// swapAside returns what beginSwap has written.
func swapAside(fs vfs.FS, dir string) (string, error) {
	f, err := fs.Open(fs.PathJoin(dir, swapName))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	aside, whole := strings.CutSuffix(string(b), "\n")
	if err == nil && (!whole || strings.ContainsAny(aside, `/\`)) {
		err = fmt.Errorf("%s is damaged", swapName)
	}
	return aside, errors.Join(err, f.Close())
}

// swap moves the two databases. Each move is durable before the next one, so the former state is always somewhere.
func swap(fs vfs.FS, dir, aside string) error {
	made, db := fs.PathJoin(dir, buildName, dbName), fs.PathJoin(dir, dbName)
	if _, err := fs.Stat(made); isMissing(err) {
		return nil // it is there already
	} else if err != nil {
		return err
	}
	former := fs.PathJoin(dir, aside)
	moved, err := aside == "", error(nil) // without a former state db is empty: see Restore
	if !moved {
		moved, err = hasDB(fs, former)
	}
	switch _, there := fs.Stat(db); {
	case err != nil:
		return err
	case isMissing(there):
	case there != nil:
		return there
	case moved: // a crash may show a directory where it was, and where it is
		if err := errors.Join(fs.RemoveAll(db), syncDir(fs, dir)); err != nil {
			return err
		}
	default:
		if err := move(fs, db, dir, former); err != nil {
			return err
		}
	}
	if err := fs.Rename(made, db); err != nil {
		return err
	}
	return errors.Join(syncDir(fs, dir), syncDir(fs, fs.PathJoin(dir, buildName)))
}

// move moves the database db of dir into the directory to.
func move(fs vfs.FS, db, dir, to string) error {
	if _, err := makeDir(fs, to); err != nil {
		return err
	}
	if err := fs.Rename(db, fs.PathJoin(to, dbName)); err != nil {
		return err
	}
	return errors.Join(syncDir(fs, to), syncDir(fs, dir))
}
