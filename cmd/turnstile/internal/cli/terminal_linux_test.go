package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
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

// end reads until no process has the terminal any more, and returns what came since what was looked for last.
func (s *screen) end() string {
	s.t.Helper()
	chunk := make([]byte, 1024)
	for {
		n, err := s.file.Read(chunk)
		s.seen.Write(chunk[:n])
		if errors.Is(err, syscall.EIO) {
			return s.seen.String()[s.past:]
		}
		if err != nil {
			s.t.Fatalf("waiting for the end: %v", err)
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
	s := sitDown(t, turnstile("lock", "--connect", srv.Addr(), "/x", "--", "sh", "-c",
		`echo read""y; read l; echo "got:$l"`))
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

// A script stops at Ctrl-C as it does with flock(1), whichever shell runs it and whichever process has the
// terminal. Then the lock is free.
//
// Promise: 4, 9
func TestCtrlCStopsTheScript(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, script string }{
		{"command", `turnstile lock --connect $SERVER /x -- puppet mortal`},
		{"script", `turnstile lock --connect $SERVER /x -- $SHELL -c 'puppet mortal; echo WENT ON'`},
		{"nested", `turnstile lock --connect $SERVER /y -- turnstile lock --connect $SERVER /x -- puppet mortal`},
		{"command that does not have the terminal", `turnstile lock --connect $SERVER /x -- puppet mortal </dev/null`},
		{"hold without a command", `turnstile lock --connect $SERVER /x`},
		{"election", `turnstile elect --connect $SERVER /x -- puppet mortal`},
		{"item", `turnstile queue take --connect $SERVER /q -- puppet mortal`},
		{"wait", `turnstile lock -v --connect $SERVER /lock -- true`},
		{"wait for a leadership", `turnstile elect -v --connect $SERVER /latch -- true`},
	} {
		for _, shell := range []string{"bash", "dash"} {
			t.Run(test.name+" in "+shell, func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(shell)
				if err != nil {
					t.Skip(err)
				}
				srv := newServer(t)
				putNumbers(t, srv.Addr(), 1)
				sess := srv.Session(t, time.Minute)
				for _, held := range []string{"lock", "latch"} { // by others
					if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/" + held}); err != nil {
						t.Fatal(err)
					}
					name := "/" + held + "/_c_2f6d45b1-2b81-4c65-ab65-05c04284d74d-" + held + "-"
					node := zk.Node{Path: name, Mode: zk.EphemeralSequential}
					if _, err := sess.CreateNode(t.Context(), node); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(path, "-c", "trap 'echo GO''ES' EXIT; "+test.script+"; echo WENT ON")
				cmd.Env = append(os.Environ(), "SERVER="+srv.Addr(), "SHELL="+path)
				s := sitDown(t, cmd)
				switch {
				case strings.HasPrefix(test.name, "wait"):
					s.see("waiting")
				case strings.HasPrefix(test.name, "hold"):
					s.see("/x ")
				default:
					s.see("ready")
				}
				s.enter("\x03")
				if got := s.end(); strings.Contains(got, "WENT ON") {
					t.Errorf("the script went on after Ctrl-C: %q", got)
				}
				_ = cmd.Wait() // it says how it has ended
				if got := shellCode(cmd.ProcessState); got != 130 {
					t.Errorf("the shell ended with %d, want 130", got)
				}
			})
		}
	}
}

// What handles Ctrl-C itself has its own way with it, and the script goes on, as it does without turnstile.
//
// Promise: 9
func TestScriptGoesOnAfterACommandThatHandlesCtrlC(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	srv := newServer(t)
	cmd := exec.Command(bash, "-c", `turnstile lock --connect $SERVER /x -- \
		sh -c 'trap "exit 7" INT; echo rea""dy; while :; do sleep 0.01; done'
		echo went on with $?`)
	cmd.Env = append(os.Environ(), "SERVER="+srv.Addr())
	s := sitDown(t, cmd)
	s.see("ready")
	s.enter("\x03")
	s.see("went on with 7")
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
	s.enter(`turnstile lock --session-timeout 60s --connect $SERVER /x -- ` +
		`sh -c 'echo rea""dy; read l; echo got":"$l'` + "\n")
	s.see("ready")
	s.enter("\x1a")
	s.see("/x: stopped: if it does not continue within") // unlike flock(1), so it is said
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

// What other clients have stored must not control the terminal at which it is read; into a pipe it goes as it is.
func TestDataOfOthersIsEscapedAtATerminal(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	sess := srv.Session(t, 30*time.Second)
	const data, shown = "a\x1b[2J\tb\r\n\u202e\xff\x00ü", "a\\x1b[2J\tb\\r\n\\u202e\\xff\\x00ü\n"
	for _, node := range []string{"/data", "/dir", "/dir/\u202ex", "/services", "/services/\u202ex"} {
		if _, err := sess.Create(t.Context(), node, []byte(data), zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	put := turnstile("queue", "put", "--connect", srv.Addr(), "/q", "-")
	put.Stdin = strings.NewReader(data)
	id, err := put.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, terminal, pipe string }{
		{"get /data", shown, data},
		{"ls /dir", "\\u202ex\n", "\u202ex\n"},
		{"discover ls", "\\u202ex\n", "\u202ex\n"},
		{"create /dir/\u202ey", "/dir/\\u202ey\n", ""},
		{"create /dir/\u202ez", "", "/dir/\u202ez\n"},
		{"queue show /q " + string(bytes.TrimSpace(id)), "\n\n" + shown, "\n\n" + data + "\n"},
		{"queue take --no-wait -q /q", shown, data + "\n"},
		{"queue take --no-wait -q -0 /q", "", data + "\x00"},
	} {
		args := strings.Fields(test.args)
		command := func() *exec.Cmd {
			cmd := turnstile(args...)
			cmd.Env = append(os.Environ(), "TURNSTILE_CONNECT="+srv.Addr())
			return cmd
		}
		if test.terminal != "" {
			got := strings.ReplaceAll(sitDown(t, command()).end(), "\r\n", "\n") // the terminal's own \r
			if !strings.HasSuffix(got, test.terminal) {
				t.Errorf("%s at a terminal: got %q, want %q", test.args, got, test.terminal)
			}
		}
		if test.pipe != "" {
			if got, err := command().Output(); err != nil || !strings.HasSuffix(string(got), test.pipe) {
				t.Errorf("%s in a pipe: got %q %v, want %q", test.args, got, err, test.pipe)
			}
		}
	}
}

// The list is drawn on a screen of its own, which Ctrl-C leaves.
func TestLocksAreWatchedAtATerminal(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	cmd := turnstile("locks", "--watch", "--connect", srv.Addr())
	s := sitDown(t, cmd)
	s.see("\x1b[?1049h")
	s.see("no lock to show")
	holder := start(t, "lock", "--connect", srv.Addr(), "--label", "b\x1bc", "/a", "--", "puppet")
	holder.ready()
	s.see("PATH")
	s.see("/a")
	s.see(`(b\x1bc)`)
	for i := range 30 {
		start(t, "lock", "--connect", srv.Addr(), fmt.Sprintf("/n/%d", i), "--", "puppet").ready()
	}
	s.see("do not fit")
	s.enter("\x03")
	if rest := s.end(); !strings.HasSuffix(rest, "\x1b[?1049l") {
		t.Errorf("the screen was left with %q", rest)
	}
	if _ = cmd.Wait(); shellCode(cmd.ProcessState) != 130 {
		t.Errorf("it ended with %d, want 130", shellCode(cmd.ProcessState))
	}
}
