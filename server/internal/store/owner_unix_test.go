//go:build unix

package store_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// The superuser restores the data of a server that runs as another user, which must be able to open it.
func TestRestoredFilesAreTheDirectorysOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can give files away")
	}
	const other = 65534
	dir := t.TempDir()
	saved := made(t, store.Config{Dir: dir}, "/a", 5)
	if err := os.Chown(dir, other, other); err != nil {
		t.Fatal(err)
	}
	cfg := store.RestoreConfig{Dir: dir, Replace: true, Now: ticks()}
	if _, err := store.Restore(t.Context(), cfg, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != other {
			t.Errorf("%s is user %d's, want %d", path, owner, other)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
