package fence_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

func TestFileRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	f := fence.NewFile(path)
	if got, err := f.Newest(t.Context()); got != 0 || err != nil {
		t.Errorf("before any token: got %d, %v", got, err)
	}
	for _, token := range []fence.Token{3, 3, 9, 1 << 62} {
		if err := f.Write(t.Context(), token, []byte(fence.FormatToken(token))); err != nil {
			t.Fatal(err)
		}
		again := fence.NewFile(path) // after a restart
		wantStale(t, again.Write(t.Context(), token-1, []byte("late")), token-1, token)
		if data, _ := os.ReadFile(path); string(data) != fence.FormatToken(token) {
			t.Errorf("after token %d the file has %s", token, data)
		}
		if got, err := again.Newest(t.Context()); got != token || err != nil {
			t.Errorf("got newest %d, %v, want %d", got, err, token)
		}
	}
	if err := f.Raise(t.Context(), 0); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("token 0: got %v", err)
	}
}

func TestFileKeepsItsPermissionsAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.NewFile(path).Write(t.Context(), 1, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() {
		t.Errorf("got mode %v, %v, want %v", after.Mode(), err, before.Mode())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("got %v in the directory, want the file and its fence", entries)
	}
	if err := fence.NewFile(filepath.Join(dir, "missing", "report")).Write(t.Context(), 1, nil); err == nil {
		t.Error("a write into a directory that is not there succeeded")
	}
}

// A crash while a token is being written leaves the one before; whatever is left of a first one is none.
func TestFileSurvivesATokenThatIsNotWrittenWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	record := path + ".fence"
	f := fence.NewFile(path)
	var whole [][]byte
	for token := fence.Token(1); token <= 4; token++ {
		if err := f.Raise(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, b)
	}
	var before []byte
	for i, after := range whole {
		for cut := range len(after) + 1 {
			torn := append([]byte(nil), after[:cut]...)
			if cut < len(before) {
				torn = append(torn, before[cut:]...)
			}
			if err := os.WriteFile(record, torn, 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := f.Newest(t.Context())
			if err != nil || got != fence.Token(i) && got != fence.Token(i+1) {
				t.Fatalf("token %d cut after %d bytes: got %d, %v", i+1, cut, got, err)
			}
		}
		before = after
	}
}

func TestFileThatIsNoFenceIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "garden")
	for _, content := range []string{"a white one, two metres high", strings.Repeat("x", 200), strings.Repeat("\x00", 128)} {
		if err := os.WriteFile(path+".fence", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := fence.NewFile(path).Write(t.Context(), 1, nil); err == nil {
			t.Errorf("took %.20q for a fence", content)
		}
		if b, _ := os.ReadFile(path + ".fence"); string(b) != content {
			t.Errorf("%.20q is now %.20q", content, b)
		}
	}
}

// Goroutines, each with a File of its own or with one of a few shared ones, show tokens at once: they are let in one at a time, and no
// token after a larger one.
func TestFileAdmitsTokensInOrderFromManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	shared := fence.NewFile(path)
	var writers sync.WaitGroup
	var newest atomic.Int64 // atomic because the race detector does not know that the system's lock orders us
	for i := range 8 {
		writers.Go(func() {
			f := shared
			if i%2 == 0 {
				f = fence.NewFile(path)
			}
			for token := fence.Token(1 + i); token <= 80; token += 8 {
				err := f.Do(t.Context(), token, func() error {
					if last := fence.Token(newest.Load()); token < last {
						t.Errorf("token %d was let in after %d", token, last)
					}
					newest.Store(int64(token))
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if newest.Load() == 0 {
		t.Error("nobody was let in")
	}
}

// What cannot be seen to be on the disk is written once more: the process that showed the token first may have been killed before its sync.
func TestFileWritesAnEqualTokenOfAnotherProcessAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	first, second := fence.NewFile(path), fence.NewFile(path)
	copies := func() int {
		b, err := os.ReadFile(path + ".fence")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "token 5 ")
	}
	for _, c := range []struct {
		f    *fence.File
		want int
	}{{first, 1}, {first, 1}, {second, 2}} {
		if err := c.f.Raise(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		if got := copies(); got != c.want {
			t.Errorf("got %d copies of the token, want %d", got, c.want)
		}
	}
}

// A crash between a write's beginning and its end leaves the file beside it, which nobody reads.
func TestFileGoesOnAfterAWriteThatACrashCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	f := fence.NewFile(path)
	if err := f.Write(t.Context(), 1, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".fence.tmp", []byte("ha"), 0o400); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("readers see %q", b)
	}
	if err := f.Write(t.Context(), 1, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("got %q, want what was written last", b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("got %v in the directory, want the file and its fence", entries)
	}
}

func TestFileWithTwoNamesIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "latest")
	if err := os.Symlink(filepath.Join(dir, "report"), other); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := fence.NewFile(other).Write(t.Context(), 1, nil); err == nil {
		t.Error("a symbolic link has a fence of its own")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("got %v in the directory, want the link alone", entries)
	}
}

func TestContextThatHasEndedWritesNothing(t *testing.T) {
	t.Parallel()
	lost := errors.New("the lock is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	path := filepath.Join(t.TempDir(), "report")
	for range 20 { // not now and then
		if err := fence.NewFile(path).Write(ctx, 5, nil); !errors.Is(err, lost) {
			t.Fatalf("got %v, want the context's cause", err)
		}
		if err := fence.NewGate(nil).Do(ctx, "stock", 5, func(context.Context) error {
			t.Error("work was let in")
			return nil
		}); !errors.Is(err, lost) {
			t.Fatalf("got %v, want the context's cause", err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
