//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// running is a turnstile that a test has started.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *os.File
	lines  *bufio.Reader
	stderr buffer
	once   sync.Once
	code   int
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu      sync.Mutex // guards b and written
	b       bytes.Buffer
	written chan struct{} // closed by the next Write; nil if none waits for it
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written != nil {
		close(b.written)
		b.written = nil
	}
	return b.b.Write(p)
}

// await waits until the buffer has a text.
func (b *buffer) await(t *testing.T, want string) {
	t.Helper()
	b.awaitBehind(t, 0, want)
}

// awaitBehind waits until the buffer has a text behind its first bytes.
func (b *buffer) awaitBehind(t *testing.T, first int, want string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		b.mu.Lock()
		found := strings.Contains(b.b.String()[first:], want)
		if b.written == nil {
			b.written = make(chan struct{})
		}
		written := b.written
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-written:
		case <-limit:
			t.Fatalf("%q did not come, but %q", want, b.String())
		}
	}
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts turnstile with these arguments. Its command writes directly to the pipe that line reads.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startWith(t, nil, args...)
}

func startWith(t *testing.T, change func(*exec.Cmd), args ...string) *running {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, cmd: turnstile(args...), out: out, lines: bufio.NewReader(patient{out})}
	r.cmd.Stdout, r.cmd.Stderr = in, &r.stderr
	r.cmd.WaitDelay = time.Second // the command may outlive it and hold its standard error
	if change != nil {
		change(r.cmd)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // for the command; it has ended in most tests
		r.wait()
		out.Close()
		if t.Failed() {
			t.Logf("standard error of %v:\n%s", r.cmd.Args, r.stderr.String())
		}
	})
	return r
}

// patient waits for each part of what comes through a pipe, but not for ever.
type patient struct{ *os.File }

// Read is that of the file.
func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return p.File.Read(b)
}

// wait returns the exit code.
func (r *running) wait() int {
	r.once.Do(func() {
		_ = r.cmd.Wait() // the code says it all
		r.code = shellCode(r.cmd.ProcessState)
	})
	return r.code
}

// shellCode returns what a shell calls the exit code: of a process that a signal ended, 128 and its number.
func shellCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

func (r *running) wantCode(want int) {
	r.t.Helper()
	if got := r.wait(); got != want {
		r.t.Errorf("exit code %d, want %d", got, want)
	}
}

func (r *running) wantStderr(want string) {
	r.t.Helper()
	if got := r.stderr.String(); !strings.Contains(got, want) {
		r.t.Errorf("standard error %q, want %q in it", got, want)
	}
}

// line returns the next line of standard output.
func (r *running) line() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("next line: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (r *running) wantLine(want string) {
	r.t.Helper()
	if got := r.line(); got != want {
		r.t.Fatalf("got line %q, want %q", got, want)
	}
}

// ready waits for a puppet, and returns its process id.
func (r *running) ready() int {
	r.t.Helper()
	line := r.line()
	pid, err := strconv.Atoi(strings.TrimPrefix(line, "ready "))
	if err != nil {
		r.t.Fatalf("got line %q, want the puppet's", line)
	}
	return pid
}

// rest returns what else is written to standard output until no process is left that could write.
func (r *running) rest() string {
	r.t.Helper()
	rest, err := io.ReadAll(r.lines)
	if err != nil {
		r.t.Fatalf("the end of standard output: %v", err)
	}
	return string(rest)
}

func (r *running) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// pause stops the process, and returns when it has stopped.
func (r *running) pause() {
	r.t.Helper()
	if err := peer.Pause(r.cmd.Process); err != nil {
		r.t.Fatal(err)
	}
}

// newServer starts a server whose timeouts a test can choose.
func newServer(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, 10*time.Minute))
}

// wantContenders waits until so many stand in line.
func wantContenders(t *testing.T, sess *zk.Session, path string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := awaitContenders(ctx, sess, path, want); err != nil {
		t.Fatal(err)
	}
}

// countContenders returns how many stand in line now.
func countContenders(t *testing.T, sess *zk.Session, path string) int {
	t.Helper()
	return len(contendersAt(t, sess, path))
}

// contendersAt returns the nodes of those who stand in line now.
func contendersAt(t *testing.T, sess *zk.Session, path string) []string {
	t.Helper()
	names, _, err := sess.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// sessionOf returns the session of the only contender.
func sessionOf(t *testing.T, sess *zk.Session, path string) (id int64, node string) {
	t.Helper()
	children, _, err := sess.Children(t.Context(), path)
	if err != nil || len(children) != 1 {
		t.Fatalf("contenders %v, %v, want one", children, err)
	}
	node = path + "/" + children[0]
	stat, _, err := sess.Exists(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return stat.EphemeralOwner, node
}

// expire ends the session of the only contender.
func expire(t *testing.T, srv *zktest.Server, sess *zk.Session, path string) {
	t.Helper()
	if id, _ := sessionOf(t, sess, path); !srv.ExpireSession(id) {
		t.Fatal("the session is not there")
	}
}

// wantGroupGoneInTime lets the link of the only contender fall silent, and checks that its command and that one's
// child are dead before its session can have ended. It returns what they have written, once they are both ready.
func wantGroupGoneInTime(t *testing.T, srv *zktest.Server, path string, r *running) string {
	t.Helper()
	sess := srv.Session(t, time.Minute)
	r.ready()
	r.ready()
	id, _ := sessionOf(t, sess, path)
	srv.HalfOpen(id)
	rest := r.rest() // the group holds standard output: it is gone
	if got := countContenders(t, sess, path); got != 1 {
		t.Errorf("the session had ended at the server before the command was dead")
	}
	r.wantCode(75)
	return rest
}

// startWithErrors starts turnstile with its standard error open for reading, too.
func startWithErrors(t *testing.T, args ...string) (*os.File, *running) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	t.Cleanup(func() { out.Close() })
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Stderr = in }, args...)
	return out, r
}
