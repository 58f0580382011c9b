package ownserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
)

func TestServerThatCannotBeExecutedIsReported(t *testing.T) {
	t.Parallel()
	s, err := ownserver.Find(map[string]string{"XDG_STATE_HOME": t.TempDir(), "TZ": "a\x00b"}) // no variable has a NUL
	if err != nil {
		t.Fatal(err)
	}
	s.Started = func() { t.Error("it is said to have started") }
	if err := s.Ensure(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cannot start this user's own server: ") {
		t.Errorf("got %v, want an error that says what failed", err)
	}
}

// No other turnstile is waited for if the file that they meet at cannot be made, as on a full disk.
func TestLockThatCannotBeOpenedIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := ownserver.Find(map[string]string{"XDG_STATE_HOME": dir})
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "turnstile", "start.lock")
	if err := os.MkdirAll(lock, 0o700); err != nil { // a directory in its place
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cannot keep this user's own server: open "+lock) {
		t.Errorf("got %v, want an error that names the file, and no other turnstile", err)
	}
}

func TestLogThatCannotBeOpenedIsReported(t *testing.T) {
	t.Parallel()
	s, err := ownserver.Find(map[string]string{"XDG_STATE_HOME": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Log(), 0o700); err != nil { // a directory in its place
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cannot keep this user's own server: open "+s.Log()) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
