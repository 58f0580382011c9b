package fence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

// workEnv makes the test binary a writer process. Its value is the work and the file's path.
const workEnv = "TURNSTILE_FENCE_WORK"

func TestMain(m *testing.M) {
	work, path, ok := strings.Cut(os.Getenv(workEnv), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := map[string]func(string) error{"hold": holdFence, "append": appendTokens}[work](path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// holdFence holds the fence with token 5 until stdin has a line.
func holdFence(path string) error {
	return fence.NewFile(path).Do(context.Background(), 5, func() error {
		fmt.Println("inside")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	})
}

// appendTokens reads tokens from stdin, appends each one to the file in two halves if the fence admits it, and prints
// it.
func appendTokens(path string) error {
	f := fence.NewFile(path)
	tokens := bufio.NewScanner(os.Stdin)
	for tokens.Scan() {
		token, err := fence.ParseToken(tokens.Text())
		if err != nil {
			return err
		}
		err = f.Do(context.Background(), token, func() error { return appendLine(path, tokens.Text()) })
		if err != nil && !errors.Is(err, fence.ErrStale) {
			return err
		}
		fmt.Println("done", token)
	}
	return tokens.Err()
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	if err == nil {
		_, err = f.WriteString("\n")
	}
	return errors.Join(err, f.Close())
}

// process is a writer process.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, work, path string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), self)}
	p.Env = append(os.Environ(), workEnv+"="+work+" "+path)
	p.Stderr = t.Output()
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line returns the next line of the process's output.
func (p *process) line() string {
	s, _ := p.out.ReadString('\n') // an incomplete line fails the caller's check
	return strings.TrimSuffix(s, "\n")
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // killed
}

// Promise: 12
func TestFileIsFreeAgainWhenAWriterOfAnotherProcessIsKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	writer := start(t, "hold", path)
	if got := writer.line(); got != "inside" {
		t.Fatalf("got %q from the writer, want inside", got)
	}

	f := fence.NewFile(path)
	impatient, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped waiting")
	waiting := make(chan error, 1)
	go func() { waiting <- f.Raise(impatient, 6) }()
	cancel(stopped)
	if err := <-waiting; !errors.Is(err, stopped) {
		t.Errorf("got %v while another process writes, want the context's cause", err)
	}

	writer.kill(t)
	if err := f.Raise(t.Context(), 6); err != nil {
		t.Errorf("got %v after the writer was killed, want nil", err)
	}
	wantStale(t, f.Raise(t.Context(), 5), 5, 6)
}

// Processes append tokens to one file, and one of them is killed meanwhile. The tokens never fall, and no two writes
// interleave.
//
// Promise: 12
func TestFileAdmitsTokensInOrderFromManyProcesses(t *testing.T) {
	t.Parallel()
	const processes, first, last = 4, 1000, 1119 // four digits each: two joined tokens do not look like one
	path := filepath.Join(t.TempDir(), "log")
	writers := make([]*process, processes)
	for i := range writers {
		writers[i] = start(t, "append", path)
	}
	var feeders sync.WaitGroup
	for i, w := range writers {
		feeders.Go(func() {
			var err error
			for token := first + i; token <= last && err == nil; token += processes {
				_, err = fmt.Fprintln(w.in, token)
			}
			if err := errors.Join(err, w.in.Close()); err != nil && i > 0 { // the first is killed
				t.Error(err)
			}
		})
	}
	if got := writers[0].line(); got != "done 1000" {
		t.Errorf("got %q from the first writer, want done 1000", got)
	}
	writers[0].kill(t) // a token may have been admitted, and half a line written
	for i, w := range writers[1:] {
		said := ""
		for s := w.line(); s != ""; s = w.line() {
			said = s
		}
		if err := w.Wait(); err != nil || said != fmt.Sprint("done ", last-processes+2+i) {
			t.Errorf("writer %d: got %v, last line %q", i+1, err, said)
		}
	}
	feeders.Wait()
	wantLog(t, path)
	f := fence.NewFile(path)
	if got, err := f.Newest(t.Context()); got != last || err != nil {
		t.Errorf("got newest %d, %v, want %d", got, err, last)
	}
}

// wantLog checks that the file's tokens never fall. The killed writer may have left one token joined to the next one.
func wantLog(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var newest fence.Token
	joined := 0
	for line := range strings.Lines(string(b)) {
		token, err := fence.ParseToken(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if token > 9999 {
			joined++
			token %= 10000
		}
		if token < newest {
			t.Errorf("token %d admitted after %d", token, newest)
		}
		newest = token
	}
	if newest == 0 || joined > 1 {
		t.Errorf("got log\n%s", b)
	}
}
