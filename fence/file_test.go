package fence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

// writerEnv carries a path: with it set, the test binary holds that file's fence, says so, and stays.
const writerEnv = "TURNSTILE_FENCE_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		err := fence.NewFile(path).Do(context.Background(), 5, func() error {
			fmt.Println("inside")
			_, err := bufio.NewReader(os.Stdin).ReadString('\n')
			return err
		})
		fmt.Println(err)
		return
	}
	os.Exit(m.Run())
}

func TestFileRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	f := fence.NewFile(path)
	if got, err := f.Newest(t.Context()); got != 0 || err != nil {
		t.Errorf("before any token: got %d, %v", got, err)
	}
	for _, token := range []int64{3, 3, 9, 1 << 62} {
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
	for token := int64(1); token <= 4; token++ {
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
			if err != nil || got != int64(i) && got != int64(i+1) {
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
			for token := int64(1 + i); token <= 80; token += 8 {
				err := f.Do(t.Context(), token, func() error {
					if last := newest.Load(); token < last {
						t.Errorf("token %d was let in after %d", token, last)
					}
					newest.Store(token)
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

func TestFileIsFreeAgainWhenAWriterOfAnotherProcessIsKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.CommandContext(t.Context(), self)
	writer.Env = append(os.Environ(), writerEnv+"="+path)
	if _, err := writer.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "inside\n" {
		t.Fatalf("the writer says %q, %v", line, err)
	}

	f := fence.NewFile(path)
	impatient, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped waiting")
	waiting := make(chan error, 1)
	go func() { waiting <- f.Raise(impatient, 6) }()
	cancel(stopped)
	if err := <-waiting; !errors.Is(err, stopped) {
		t.Errorf("while another process writes: got %v", err)
	}

	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait() // killed
	if err := f.Raise(t.Context(), 6); err != nil {
		t.Errorf("after the other was killed: %v", err)
	}
	wantStale(t, f.Raise(t.Context(), 5), 5, 6)
}
