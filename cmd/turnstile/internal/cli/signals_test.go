//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestCommandGetsEverySignal(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet", "all")
	r.ready()
	for sig := syscall.Signal(1); sig < 32; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGTERM:
			continue
		case syscall.SIGURG, syscall.SIGPROF, syscall.SIGPIPE: // the Go runtime sends itself these
			continue
		}
		r.signal(sig)
		r.wantLine(fmt.Sprintf("got %d", sig))
	}
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(3)
}

func TestGroupGetsTheSignals(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "puppet", "parent")
	group, err := syscall.Getpgid(r.ready())
	if err != nil {
		t.Fatal(err)
	}
	r.ready()
	r.signal(syscall.SIGHUP)
	r.wantLine("got 1")
	r.wantLine("got 1")
	r.signal(syscall.SIGKILL)
	r.wantLine("got 15") // the command alone: what it has started is left to itself
	if err := syscall.Kill(-group, syscall.SIGKILL); err != nil {
		t.Errorf("a process that the command has started ended by itself: %v", err)
	}
	r.rest() // until no process is left that could write
}

// Promise: 4
func TestSignalWhileWaitingLeavesTheLine(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	client := srv.Client(t, 10*time.Second)
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := lock.NewMutex(client, "/x", lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGALRM,
	} {
		r := start(t, "lock", "--connect", srv.Addr(), "/x", "--", "echo", "no")
		wantContenders(t, sess, "/x", 2)
		r.signal(syscall.SIGWINCH) // no reason to go
		r.signal(sig)
		r.wantCode(128 + int(sig))
		if got := countContenders(t, sess, "/x"); got != 1 {
			t.Errorf("%v: %d in line after the end, want the holder", sig, got)
		}
		if got := r.rest(); got != "" {
			t.Errorf("%v: the command ran: %q", sig, got)
		}
	}
}

func TestSignalWhileNobodyAnswersEndsTheSearch(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := start(t, "lock", "--connect", "unix:"+l.Addr().String(), "--connect-timeout", "10m", "/x", "--", "echo", "no")
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r.signal(syscall.SIGTERM)
	r.wantCode(128 + 15)
}

func TestServerThatIsSilentIsSaidNotToAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts connections
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := start(t, "locks", "--connect", l.Addr().String(), "--session-timeout", "1s", "--connect-timeout", "2s")
	r.wantCode(69)
	r.wantStderr("no answer to the connect request: context deadline exceeded; check that it runs")
}

func TestSignalEndsAHoldWithoutCommand(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, 10*time.Second)
	r := startWith(t, func(cmd *exec.Cmd) {
		if _, err := cmd.StdinPipe(); err != nil { // stays open
			t.Fatal(err)
		}
	}, "lock", "--connect", srv.Addr(), "/x")
	r.line()
	r.signal(syscall.SIGINT)
	r.wantCode(128 + 2)
	if got := countContenders(t, sess, "/x"); got != 0 {
		t.Errorf("%d in line after the end, want none", got)
	}
}

func TestSecondSignalEndsACommandWhoseOutputNobodyReads(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	data := bytes.Repeat([]byte("x"), 500_000) // more than a pipe has room for
	if _, err := srv.Session(t, time.Minute).Create(t.Context(), "/big", data, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	r := start(t, "get", "--connect", srv.Addr(), "/big")
	if _, err := r.lines.Peek(1); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int)
	go func() { ended <- r.wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		select {
		case code := <-ended:
			if code != 128+15 {
				t.Errorf("exit code %d, want %d", code, 128+15)
			}
			return
		case <-tick.C:
			_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended meanwhile
		case <-limit:
			_ = r.cmd.Process.Kill()
			t.Fatalf("it still runs: %d", <-ended)
		}
	}
}

func TestSignalEndsABackupToAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	srv := newServer(t)
	r := start(t, "backup", "--connect", srv.Addr(), pipe)
	for len(srv.Connected()) == 0 {
		time.Sleep(time.Millisecond) // real: until another process has come so far
	}
	wantSignalEnds(t, r)
}

func TestSignalEndsARestoreFromAPipeThatNobodyWrites(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "restore", "--check", pipe)
	in, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until it is read
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	wantSignalEnds(t, r)
}

// wantSignalEnds sends SIGTERM, and checks that turnstile ends of it.
func wantSignalEnds(t *testing.T, r *running) {
	t.Helper()
	r.signal(syscall.SIGTERM)
	if _, err := r.lines.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		_ = r.cmd.Process.Kill()
		t.Fatalf("it prints something, or still runs: %v", err)
	}
	r.wantCode(128 + 15)
}

// The first signal ends a command also where no context reaches: in a read of a file that is a pipe, and in a write
// that nothing reads.
func TestSignalEndsACommandThatAPipeHoldsUp(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	large := append([]byte("begin\n"), make([]byte, 900_000)...)
	if _, err := sess.Create(t.Context(), "/large", large, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "/large"}, {"export", "/large"}} {
		r := start(t, append(args, "--connect", srv.Addr())...)
		r.line() // the rest is not read
		r.signal(syscall.SIGTERM)
		r.wantCode(128 + 15)
	}
	for _, args := range [][]string{{"--sasl-user", "ann", "--sasl-password-file"}, {"--tls-ca"}} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, append([]string{"who", "--connect", srv.Addr(), "/x"}, append(args, pipe)...)...)
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the command has opened it
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r.signal(syscall.SIGTERM)
		r.wantCode(128 + 15)
	}
}
