//go:build unix

package ownserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramIsFoundWithoutProc(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "exe")
	if got, err := executable(missing, os.Args[0]); err != nil || !filepath.IsAbs(got) {
		t.Errorf("got %q %v, want the path of this program", got, err)
	}
	if got, err := executable(missing, "sh"); err != nil || filepath.Base(got) == "exe" {
		t.Errorf("got %q %v, want that of a program in PATH", got, err)
	}
	if _, err := executable(missing, "/nonexistent/turnstile"); err == nil ||
		!strings.Contains(err.Error(), "mount /proc, or call it by its path") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}

func TestInheritedFilesAreFoundWithoutProc(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fds, err := descriptors(filepath.Join(t.TempDir(), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(fds, int(f.Fd())) {
		t.Errorf("descriptor %d is not among the %d that are tried", f.Fd(), len(fds))
	}
}

func TestRootLeavesNothingInAHomeOfAnotherUser(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if os.Geteuid() == 0 {
		if err := os.Chown(home, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(home, ".local", "state", "turnstile")
	if err := checkHome(dir, 0); err == nil || !strings.Contains(err.Error(), home+" belongs to another user") {
		t.Errorf("got %v, want an error that names %s", err, home)
	}
	if err := checkHome(dir, 12345); err != nil {
		t.Errorf("got %v for a user who is not root", err)
	}
	if err := checkHome("/nonexistent/turnstile", 0); err != nil {
		t.Errorf("got %v for a directory that root can make below /", err)
	}
}
