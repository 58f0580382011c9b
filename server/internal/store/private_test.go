//go:build unix

package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

func TestOtherUsersCannotReadTheStore(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string) error{
		"new directory": os.Remove,
		"directory open to other users": func(dir string) error {
			return os.Chmod(dir, 0o755) //nolint:gosec // that is the point
		},
		"old data readable by other users": func(dir string) error {
			s, err := store.Open(store.Config{Dir: dir})
			if err != nil {
				return err
			}
			return errors.Join(s.Close(0), os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "db"), 0o755),
				os.Chmod(filepath.Join(dir, "side.log"), 0o644), os.Chmod(filepath.Join(dir, "lock"), 0o644),
				os.Chmod(filepath.Join(dir, "pid"), 0o644)) //nolint:gosec // that is the point
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := errors.Join(os.Mkdir(dir, 0o700), prepare(dir)); err != nil {
				t.Fatal(err)
			}
			s := open(t, store.Config{Dir: dir})
			tr := load(t, s)
			commit(t, s, tr, tr.CreateSession(1, 7, 4000))
			commitInline(t, s, tr, create(tr, "/a", []byte("secret")))
			var readable []string
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				switch closed := info.Mode()&0o077 == 0; {
				case err != nil:
					return err
				case d.IsDir() && closed:
					if path != dir {
						return fs.SkipDir
					}
				case !d.IsDir() && !closed:
					readable = append(readable, d.Name())
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(readable) > 0 {
				t.Errorf("other users may read %q", readable)
			}
			if err := s.Close(tr.Zxid()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
