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

// Promise: 12
func TestFileRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	f := fence.NewFile(path)
	if got, err := f.Newest(t.Context()); got != 0 || err != nil {
		t.Errorf("got newest %d, %v before any token, want 0", got, err)
	}
	for _, token := range []fence.Token{3, 3, 9, 1 << 62} {
		if err := f.Write(t.Context(), token, []byte(fence.FormatToken(token))); err != nil {
			t.Fatal(err)
		}
		again := fence.NewFile(path) // as after a restart
		wantStale(t, again.Write(t.Context(), token-1, []byte("late")), token-1, token)
		if data, _ := os.ReadFile(path); string(data) != fence.FormatToken(token) {
			t.Errorf("after token %d: got content %s", token, data)
		}
		if got, err := again.Newest(t.Context()); got != token || err != nil {
			t.Errorf("got newest %d, %v, want %d", got, err, token)
		}
	}
	if err := f.Raise(t.Context(), 0); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("token 0: got %v, want ErrBadToken", err)
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
		t.Error("write into a missing directory: got nil, want an error")
	}
}

// A crash during the write of a token leaves the previous token; a crash during the first write leaves none.
//
// Promise: 12
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
				t.Fatalf("token %d cut after %d bytes: got %d, %v, want it or the previous one", i+1, cut, got, err)
			}
		}
		before = after
	}
}

// Promise: 12
func TestFileThatIsNoFenceIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "garden")
	for _, content := range []string{"a white one, 2 m high", strings.Repeat("x", 200), strings.Repeat("\x00", 128)} {
		if err := os.WriteFile(path+".fence", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := fence.NewFile(path).Write(t.Context(), 1, nil); err == nil {
			t.Errorf("content %.20q: got nil, want an error", content)
		}
		if b, _ := os.ReadFile(path + ".fence"); string(b) != content {
			t.Errorf("got content %.20q, want %.20q", b, content)
		}
	}
}

// Goroutines show tokens concurrently, each with its own File or with a shared one. The fence admits one at a time,
// and no token after a larger one.
//
// Promise: 12
func TestFileAdmitsTokensInOrderFromManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	shared := fence.NewFile(path)
	var writers sync.WaitGroup
	var newest atomic.Int64 // the race detector does not know that the system's lock orders the writes
	for i := range 8 {
		writers.Go(func() {
			f := shared
			if i%2 == 0 {
				f = fence.NewFile(path)
			}
			for token := fence.Token(1 + i); token <= 80; token += 8 {
				err := f.Do(t.Context(), token, func() error {
					if last := fence.Token(newest.Load()); token < last {
						t.Errorf("token %d admitted after %d", token, last)
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
		t.Error("got no token admitted")
	}
}

// A File writes an equal token of another process again, because that process may have been killed before its sync.
//
// Promise: 12
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

// A crash during Write leaves path.fence.tmp, which no reader opens.
//
// Promise: 12
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
		t.Errorf("got %q, want the old content", b)
	}
	if err := f.Write(t.Context(), 1, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("got %q, want the new content", b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("got %v in the directory, want the file and its fence", entries)
	}
}

func TestFileWithoutANameIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"", "./", dir + "/"} {
		if err := fence.NewFile(path).Write(t.Context(), 1, []byte("a")); err == nil {
			t.Errorf("write to %q: got nil, want an error", path)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v are left behind %v", entries, err)
	}
}

// Promise: 12
func TestFileWithTwoNamesIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "latest")
	if err := os.Symlink(filepath.Join(dir, "report"), other); err != nil {
		t.Skip("cannot create symbolic links:", err)
	}
	if err := fence.NewFile(other).Write(t.Context(), 1, nil); err == nil {
		t.Error("write to a symbolic link: got nil, want an error")
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
	for range 20 { // the outcome must not be random
		if err := fence.NewFile(path).Write(ctx, 5, nil); !errors.Is(err, lost) {
			t.Fatalf("got %v, want the context's cause", err)
		}
		if err := fence.NewGate(nil).Do(ctx, "stock", 5, func(context.Context) error {
			t.Error("work ran, want it not to")
			return nil
		}); !errors.Is(err, lost) {
			t.Fatalf("got %v, want the context's cause", err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: got %v, want ErrNotExist", err)
	}
}
