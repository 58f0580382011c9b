package peer_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

func TestHostTurnsAFailedTestIntoAnError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	host, err := peer.NewHost(t.TempDir(), &log)
	if err != nil {
		t.Fatal(err)
	}
	fail := func(f func(peer.T)) (err error) {
		defer host.Recover(&err)
		f(host)
		return nil
	}
	if err := fail(func(p peer.T) { p.Fatalf("no %s", "server") }); err == nil || err.Error() != "no server" {
		t.Errorf("got %v, want no server", err)
	}
	if err := fail(func(p peer.T) { p.Logf("one line\n") }); err != nil || log.String() != "one line\n" {
		t.Errorf("got %v and %q", err, &log)
	}
	func() {
		defer func() {
			if p := recover(); p != "a bug" {
				t.Errorf("got %v, want other panics to continue", p)
			}
		}()
		_ = fail(func(peer.T) { panic("a bug") })
	}()
	host.Close()
}

func TestHostCleansUpBackwards(t *testing.T) {
	t.Parallel()
	host, err := peer.NewHost(t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := host.TempDir()
	var order []int
	for i := range 3 {
		host.Cleanup(func() {
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
			order = append(order, i)
		})
	}
	host.Close()
	if want := []int{2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	if _, err := os.Stat(host.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for the directory after Close, want ErrNotExist", err)
	}
}
