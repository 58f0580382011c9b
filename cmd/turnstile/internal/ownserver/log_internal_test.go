package ownserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogOfTheOwnServerStaysWithinBoundsWhileItRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, logName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // as its starter does
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := NewLog(f, filepath.Join(dir, "data"))
	line := strings.Repeat("x", 1<<12-1) + "\n"
	for range 5 * maxLog >> 12 {
		if n, err := l.Write([]byte(line)); err != nil || n != len(line) {
			t.Fatalf("got %d %v", n, err)
		}
	}
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil || info.Size() == 0 || info.Size() > maxLog+1<<12 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %+v %v, want at most %d bytes, for the user alone", name, info, err, maxLog)
		}
	}
}
