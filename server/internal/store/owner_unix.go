//go:build unix

package store

// Whose files a restore makes.

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives everything in a directory to the owner of the directory, if the superuser is about to leave files
// there: a server that runs as another user could not open them.
func keepOwner(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		// What we have not made may be a link that the owner has set to a file of ours.
		is, ok := info.Sys().(*syscall.Stat_t)
		if !ok || is.Uid != 0 || !d.IsDir() && (!info.Mode().IsRegular() || is.Nlink != 1) {
			return nil
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}
