//go:build linux

package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// fewFilesEnv makes TestStoreWorksWhenTheProcessHasNoDescriptorLeft the child that has few.
const fewFilesEnv = "TURNSTILE_STORE_FEW_FILES"

func TestStoreWorksWhenTheProcessHasNoDescriptorLeft(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(fewFilesEnv); dir != "" {
		useAllDescriptors(t, dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), fewFilesEnv+"="+filepath.Join(t.TempDir(), "data"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the child: %v\n%s", err, out)
	}
}

// useAllDescriptors opens files until there is no descriptor left, and makes the store write new logs and tables.
func useAllDescriptors(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 128, Max: 128}); err != nil {
		t.Fatal(err)
	}
	s := open(t, store.Config{Dir: dir, Memory: 256 << 10})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	for {
		if _, err := os.Open(os.DevNull); err != nil { // left open on purpose
			if !errors.Is(err, syscall.EMFILE) {
				t.Fatal(err)
			}
			break
		}
	}
	for i := range 60 {
		commit(t, s, tr, create(tr, "/"+string(rune('A'+i)), make([]byte, 100_000)))
	}
	if err := s.Err(); err != nil {
		t.Errorf("got %v, want a store that works", err)
	}
	if err := s.Close(tr.Zxid()); err != nil {
		t.Error(err)
	}
}
