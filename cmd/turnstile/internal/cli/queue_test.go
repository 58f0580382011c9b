//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// depth is what "turnstile queue len --json" prints.
type depth struct{ Ready, Delayed, Claimed, Dead int }

// queueRun runs a command for a queue to its end, and returns what it prints.
func queueRun(t *testing.T, addr string, args ...string) string {
	t.Helper()
	r := start(t, append([]string{"queue", args[0], "--connect", addr}, args[1:]...)...)
	out := r.rest()
	r.wantCode(0)
	return out
}

func wantDepth(t *testing.T, addr string, want depth) {
	t.Helper()
	var got depth
	if err := json.Unmarshal([]byte(queueRun(t, addr, "len", "--json", "/q")), &got); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// nextAttempt returns which attempt at the next item of the queue would be.
func nextAttempt(t *testing.T, addr string) int {
	t.Helper()
	var item struct{ Attempt int }
	if err := json.Unmarshal([]byte(queueRun(t, addr, "take", "--json", "--wait", "1m", "/q")), &item); err != nil {
		t.Fatal(err)
	}
	return item.Attempt
}

// awaitEmpty waits until all items are acknowledged: a command has ended some time after what it has printed.
func awaitEmpty(t *testing.T, srv *zktest.Server) {
	t.Helper()
	client := srv.Client(t, 10*time.Second)
	for {
		s, err := queue.Summarize(t.Context(), client, "/q", 0)
		if err != nil {
			t.Fatal(err)
		}
		if s.Counts == (queue.Counts{}) {
			return
		}
		time.Sleep(time.Millisecond) // real: until another process has had its answer
	}
}

func putNumbers(t *testing.T, addr string, n int) {
	t.Helper()
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(numbers(n)) }, "queue", "put", "--lines",
		"--connect", addr, "/q")
	if got, want := r.line(), fmt.Sprintf("%d item", n); !strings.HasPrefix(got, want) {
		t.Fatalf("got line %q, want that %s(s) are in", got, want)
	}
	r.wantCode(0)
}

func numbers(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintln(&text, i)
	}
	return text.String()
}

// Promise: 7
func TestSignalEndsTheCommandsAndTheirItemsGoBackUntried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		code    int
	}{{"work", 0}, {"take", 3}} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			putNumbers(t, srv.Addr(), 2)
			r := start(t, "queue", c.command, "--connect", srv.Addr(), "/q", "--", "puppet")
			r.ready()
			r.signal(syscall.SIGUSR1)
			r.wantLine("got 10")
			r.signal(syscall.SIGTERM)
			r.wantLine("got 15")
			r.wantCode(c.code)
			if got := r.rest(); got != "" {
				t.Errorf("another command ran: %q", got)
			}
			wantDepth(t, srv.Addr(), depth{Ready: 2})
			if got := nextAttempt(t, srv.Addr()); got != 1 {
				t.Errorf("attempt %d, want the first", got)
			}
		})
	}
}

func TestSecondSignalKillsTheCommands(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"signal", "finish"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			putNumbers(t, srv.Addr(), 3)
			errors, r := startWithErrors(t, "queue", "work", "--workers", "2", "--on-stop", mode, "--connect",
				srv.Addr(), "/q", "--", "puppet", "stubborn")
			r.ready()
			r.ready()
			r.signal(syscall.SIGTERM)
			const want = "turnstile: /q: terminated: taking no more items, 2 commands running; the next signal kills"
			if line, err := firstLine(errors); line != want {
				t.Errorf("standard error: %q, %v", line, err)
			}
			if mode == "signal" {
				r.wantLine("got 15")
				r.wantLine("got 15")
			}
			r.signal(syscall.SIGUSR1) // goes to the commands in any case
			r.wantLine("got 10")
			r.wantLine("got 10")
			r.signal(syscall.SIGINT)
			r.wantCode(128 + 15)
			if got := r.rest(); got != "" {
				t.Errorf("got %q, want no more", got)
			}
			wantDepth(t, srv.Addr(), depth{Ready: 3})
			if got := nextAttempt(t, srv.Addr()); got != 1 {
				t.Errorf("attempt %d, want the first", got)
			}
		})
	}
}

func TestCommandsFinishWhenTheyMay(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 2)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	errors, r := startWithErrors(t, "queue", "work", "--on-stop", "finish", "--connect", srv.Addr(), "/q", "--",
		"sh", "-c", `echo ready $$; read go <"$0"; cat`, gate)
	r.ready()
	r.signal(syscall.SIGTERM)
	if line, err := firstLine(errors); !strings.Contains(line, "taking no more items, 1 command running") {
		t.Fatalf("standard error: %q, %v", line, err)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	r.wantLine("0")
	r.wantCode(0)
	wantDepth(t, srv.Addr(), depth{Ready: 1})
}

func TestSignalWhileWaitingForAnItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
	}{
		{"take --ack", 128 + 15},
		{"take", 128 + 15},
		{"take /q -- true", 128 + 15},
		{"work -- true", 0},
		{"work --until empty -- true", 128 + 15},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			queueRun(t, srv.Addr(), "put", "--delay", "1h", "/q", "later")
			args := strings.Fields(strings.Replace(c.args, "/q ", "", 1))
			args = slices.Insert(args, 1, "-v", "--connect", srv.Addr(), "/q")
			errors, r := startWithErrors(t, append([]string{"queue"}, args...)...)
			if _, err := firstLine(errors); err != nil { // it is connected
				t.Fatal(err)
			}
			r.signal(syscall.SIGTERM)
			r.wantCode(c.code)
			wantDepth(t, srv.Addr(), depth{Delayed: 1})
		})
	}
}

func TestLostClaimEndsTheCommandAndTheItemComesAgain(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 1)
	r := start(t, "queue", "work", "--connect", srv.Addr(), "/q", "--", "puppet")
	for range 3 {
		r.ready()
		expireAll(t, srv)
		r.wantLine("got 15")
	}
	r.ready()
	r.signal(syscall.SIGTERM)
	r.wantLine("got 15")
	r.wantCode(0)
	if got := strings.Count(r.stderr.String(), "its claim was lost, so it is delivered again: "); got != 3 {
		t.Errorf("it tells of %d losses, want 3: %q", got, r.stderr.String())
	}
}

func TestLostClaimIsTakesExitCode(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 1)
	r := start(t, "queue", "take", "--connect", srv.Addr(), "/q", "--", "puppet")
	r.ready()
	expireAll(t, srv)
	r.wantLine("got 15")
	r.wantCode(75)
	wantDepth(t, srv.Addr(), depth{Ready: 1})
}

func expireAll(t *testing.T, srv *zktest.Server) {
	t.Helper()
	for _, id := range srv.Connected() {
		srv.ExpireSession(id)
	}
}

// Promise: 7
func TestGroupIsGoneBeforeAnybodyElseIsGivenTheItem(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 1)
	r := start(t, "queue", "take", "--connect", srv.Addr(), "--session-timeout", sessionTimeout, "--grace", grace,
		"/q", "--", "puppet", "parent")
	rest := wantGroupGoneInTime(t, srv, "/q/consumers", r)
	if got := strings.Count(rest, "got 15\n"); got != 2 {
		t.Errorf("%d processes of the group got SIGTERM, want 2", got)
	}
}

// Promise: 7
func TestKilledWorkerLosesNoItem(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, addr string) {
		const n = 300
		putNumbers(t, addr, n)
		out := filepath.Join(t.TempDir(), "out")
		work := func() *running {
			return start(t, "queue", "work", "--connect", addr, "--session-timeout", "8s", "--workers", "4",
				"--until", "empty", "/q", "--", "sh", "-c", `cat >> "$0"; echo $$`, out)
		}
		victim := work()
		for range 20 {
			victim.line()
		}
		other := work()
		victim.signal(syscall.SIGKILL)
		other.rest()
		other.wantCode(0)
		counts := linesOf(t, out)
		for i := range n {
			if counts[strconv.Itoa(i)] == 0 {
				t.Errorf("line %d was lost", i)
			}
		}
		wantDepth(t, addr, depth{})
	})
}

// linesOf returns how often each line is in a file.
func linesOf(t *testing.T, name string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		counts[strings.TrimSuffix(line, "\n")]++
	}
	return counts
}

// Promise: 7
func TestEveryLineIsWorkedOnExactlyOnceWhenNothingFails(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, addr string) {
		const n = 300
		putNumbers(t, addr, n)
		out := filepath.Join(t.TempDir(), "out")
		var workers []*running
		for range 2 {
			workers = append(workers, start(t, "queue", "work", "--connect", addr, "--session-timeout", "40s",
				"--workers", "4", "--until", "empty", "/q",
				"--", "sh", "-c", `cat >> "$0"`, out))
		}
		for _, r := range workers {
			r.rest()
			r.wantCode(0)
		}
		counts := linesOf(t, out)
		for i := range n {
			if got := counts[strconv.Itoa(i)]; got != 1 {
				t.Errorf("line %d was worked on %d times", i, got)
			}
		}
		if len(counts) != n {
			t.Errorf("%d different lines, want %d", len(counts), n)
		}
	})
}

// onBothServers runs a test on our server and on Apache ZooKeeper.
func onBothServers(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		test(t, newServer(t).Addr())
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		test(t, peer.ZooKeeper(t, longSessions).ConnectString())
	})
}

func TestLinesArePutAsTheyComeAndASignalSaysHowManyAreIn(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	var in io.WriteCloser
	r := startWith(t, func(cmd *exec.Cmd) {
		var err error
		if in, err = cmd.StdinPipe(); err != nil { // stays open
			t.Fatal(err)
		}
	}, "queue", "put", "--lines", "--json", "--connect", srv.Addr(), "/q")
	if _, err := io.WriteString(in, "one\ntwo\nthr"); err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		item := queueRun(t, srv.Addr(), "take", "--ack", "--wait", "1m", "/q")
		if item != []string{"one\n", "two\n"}[want] {
			t.Errorf("got item %q", item)
		}
	}
	r.signal(syscall.SIGINT)
	r.wantCode(128 + 2)
	r.wantStderr("turnstile: /q: interrupted by signal: interrupt; lines 1 to 2 are in; " +
		"continue with line 3: tail -n +3\n")
	if got := r.rest(); got != `{"path":"/q","items":2}`+"\n" {
		t.Errorf("standard output %q", got)
	}
	wantDepth(t, srv.Addr(), depth{})
}

// Promise: 7
func TestLinesOfALostReplyAreInOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	lost := false
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpMulti && !lost {
			lost = true
			return zktest.DropReply
		}
		return zktest.Pass
	})
	putNumbers(t, srv.Addr(), 5000)
	wantDepth(t, srv.Addr(), depth{Ready: 5000})
}

// Promise: 7
func TestPutGivesUpWhenTheServerHasGoneAndSaysWhatIsIn(t *testing.T) {
	t.Parallel()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--in-memory")
	addr := strings.Fields(server.line())[1]
	var in io.WriteCloser
	r := startWith(t, func(cmd *exec.Cmd) {
		var err error
		if in, err = cmd.StdinPipe(); err != nil { // stays open
			t.Fatal(err)
		}
	}, "queue", "put", "--lines", "--connect", addr, "--session-timeout", "10s", "--connect-timeout", "8s", "/q")
	if _, err := io.WriteString(in, "one\n"); err != nil {
		t.Fatal(err)
	}
	if item := queueRun(t, addr, "take", "--ack", "--wait", "1m", "/q"); item != "one\n" {
		t.Errorf("got item %q", item)
	}
	server.pause()
	defer server.signal(syscall.SIGCONT)
	if _, err := io.WriteString(in, "two\nthree\n"); err != nil {
		t.Fatal(err)
	}
	r.wantCode(69)
	r.wantStderr("no server answers at " + addr + "; line 1 is in, and lines 2 to 3 may be; " +
		"continue after the last line that is in: turnstile queue len")
}

func TestWorkGoesOnWhenTheServerComesBack(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	putNumbers(t, srv.Addr(), 1)
	r := start(t, "queue", "work", "--connect", srv.Addr(), "/q", "--", "cat")
	r.wantLine("0")
	awaitEmpty(t, srv)
	srv.Cut()
	expireAll(t, srv)
	srv.Heal()
	putNumbers(t, srv.Addr(), 2)
	r.wantLine("0")
	r.wantLine("1")
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}

func TestPrintedItemIsNotAcknowledgedWhenNobodyReadsIt(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "queue", "take", "--ack", "--connect", srv.Addr(), "/q")
	r.out.Close()
	queueRun(t, srv.Addr(), "put", "/q", "hello")
	r.wantCode(128 + 13)
	if got := r.stderr.String(); got != "" {
		t.Errorf("standard error %q, want none", got)
	}
	if got := nextAttempt(t, srv.Addr()); got != 1 {
		t.Errorf("attempt %d, want the first", got)
	}
}

// Under nohup(1) a hangup is ignored, here as everywhere.
func TestLinesArePutAlsoWhenTheTerminalOfOneThatIgnoresItHangsUp(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	var in io.WriteCloser
	r := startWith(t, func(cmd *exec.Cmd) {
		named := filepath.Join(t.TempDir(), "turnstile") // a shell's exec gives no other name
		if err := os.Symlink(cmd.Path, named); err != nil {
			t.Fatal(err)
		}
		cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, named}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		var err error
		if in, err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	}, "queue", "put", "--lines", "--connect", srv.Addr(), "/q")
	if _, err := io.WriteString(in, "one\n"); err != nil {
		t.Fatal(err)
	}
	if item := queueRun(t, srv.Addr(), "take", "--ack", "--wait", "1m", "/q"); item != "one\n" {
		t.Errorf("got item %q", item)
	}
	r.signal(syscall.SIGHUP)
	if _, err := io.WriteString(in, "two\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	r.wantCode(0)
	wantDepth(t, srv.Addr(), depth{Ready: 1})
}

func TestItemWhoseGroupHasANULByteIsWorkedOn(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	queueRun(t, srv.Addr(), "put", "--group", "a_b", "/q", "body")
	const dir = "/q/ready/p1000/s0000000001"
	names, _, err := sess.Children(t.Context(), dir)
	if err != nil || len(names) != 1 {
		t.Fatalf("items %v, %v, want one", names, err)
	}
	data, _, err := sess.Get(t.Context(), dir+"/"+names[0])
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("a_b"), []byte("a\x00b")) // as another program could put it
	if _, err := sess.Set(t.Context(), dir+"/"+names[0], data, -1); err != nil {
		t.Fatal(err)
	}
	got := queueRun(t, srv.Addr(), "work", "--until", "empty", "/q", "-c", `cat; echo "($TURNSTILE_ITEM_GROUP)"`)
	if want := "body()\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantDepth(t, srv.Addr(), depth{})
}
