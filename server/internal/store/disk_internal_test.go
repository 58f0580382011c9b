package store

import (
	"io"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The write that begins a log may wait for the last one of the log before. If that fails, it may not be there alone.
func TestNoLogIsWrittenOnceTheStoreHasFailed(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	s := &Store{failed: make(chan struct{})}
	f, err := diskFS{mem, s}.Create("000002.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("got %d, %v, want that Pebble is told nothing", n, err)
		}
	}
	write("before")
	s.fail(syscall.ENOSPC) // another log has failed
	write("after")
	r, err := mem.Open("000002.log")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); string(got) != "before" || err != nil {
		t.Errorf("got %q, %v, want what was written before the failure", got, err)
	}
}
