package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is the other end of a terminal, at which a user sits.
type screen struct {
	t    *testing.T
	file *os.File
	seen bytes.Buffer
	past int // how much of it was looked for
}

// sitDown starts a command as the leader of a session with a terminal of its own.
func sitDown(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	s := &screen{t: t, file: master}
	var number int
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		master.Close() // hangs up
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("on the screen: %q", s.seen.String())
		}
	})
	if err := master.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return s
}

// see reads until the text appears, after what was looked for before.
func (s *screen) see(text string) {
	s.t.Helper()
	chunk := make([]byte, 1024)
	for {
		if i := strings.Index(s.seen.String()[s.past:], text); i >= 0 {
			s.past += i + len(text)
			return
		}
		n, err := s.file.Read(chunk)
		s.seen.Write(chunk[:n])
		if err != nil {
			s.t.Fatalf("waiting for %q on the screen: %v", text, err)
		}
	}
}

func (s *screen) enter(text string) {
	s.t.Helper()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

func TestInteractiveCommandReadsTheTerminal(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	s := sitDown(t, turnstile("lock", "--connect", srv.Addr(), "/x", "--", "sh", "-c", `echo read""y; read l; echo "got:$l"`))
	s.see("ready")
	s.enter("hello\n")
	s.see("got:hello")
}

func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	s := sitDown(t, turnstile("lock", "--connect", srv.Addr(), "/x", "--", "puppet"))
	s.see("ready")
	s.enter("\x03")
	s.see("got 2\r\n")
	s.enter("\x1c")
	s.see("got 3\r\n") // and no second 2
}

func TestCtrlZStopsTheCommandAndTheShellContinuesIt(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	srv := newServer(t)
	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "PS1=> ", "HISTFILE=", "TERM=dumb", "SERVER="+srv.Addr())
	s := sitDown(t, cmd)
	s.see("> ")
	s.enter(`turnstile lock --session-timeout 60s --connect $SERVER /x -- sh -c 'echo rea""dy; read l; echo got":"$l'` + "\n")
	s.see("ready")
	s.enter("\x1a")
	s.see("Stopped")
	s.see("> ")
	s.enter("fg\n")
	s.enter("hello\n")
	s.see("got:hello")
	s.see("> ")

	// a command in a pipeline gets the terminal when it asks for it
	s.enter(`turnstile lock --connect $SERVER /x -- sh -c 'read l </dev/tty; echo got":"$l' | cat` + "\n")
	s.enter("again\n")
	s.see("got:again")
	s.see("> ")

	// in the background it is stopped for that, and gets it in the foreground
	s.enter(`turnstile lock --session-timeout 60s --connect $SERVER /x -- sh -c 'read l; echo got":"$l' &` + "\n")
	s.enter("wait\n")
	s.see("Stopped")
	s.enter("fg\n")
	s.enter("third\n")
	s.see("got:third")
	s.see("> ")
	s.enter("exit\n")
}

func TestCtrlZStopsTheCommandsOfAQueueToo(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 2)
	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "PS1=> ", "HISTFILE=", "TERM=dumb", "SERVER="+srv.Addr())
	s := sitDown(t, cmd)
	s.see("> ")
	s.enter("turnstile queue work --workers 2 --session-timeout 60s --connect $SERVER /q -- puppet all\n")
	s.see("ready")
	s.see("ready")
	s.enter("\x1a")
	s.see("Stopped")
	s.see("> ")
	s.enter("fg\n")
	s.see("got 18\r\n")
	s.see("got 18\r\n")
	s.enter("\x03")
	s.see("got 2\r\n")
	s.see("got 2\r\n")
	s.enter("\x03")
	s.see("> ")
	s.enter("exit\n")
	s.see("exit")
	wantDepth(t, srv.Addr(), depth{Ready: 2})
}

func TestPutOfLinesTellsATerminalOfItsProgress(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	s := sitDown(t, turnstile("queue", "put", "--lines", "--connect", srv.Addr(), "/q"))
	s.see("reading lines from the terminal")
	s.enter("one\n")
	s.see("\r1 item put") // before there is an end of the lines
	s.enter("two\n\x04")
	s.see("\r\x1b[K") // makes room for the result
	s.see("2 items put\r\n")
	wantDepth(t, srv.Addr(), depth{Ready: 2})

	quiet := sitDown(t, turnstile("queue", "put", "--lines", "--quiet", "--connect", srv.Addr(), "/q"))
	quiet.enter("three\n\x04")
	quiet.see("1 item put\r\n")
	if text := quiet.seen.String(); strings.Contains(text, "reading lines") || strings.Contains(text, "\x1b") {
		t.Errorf("told although it was to be quiet: %q", text)
	}
}
