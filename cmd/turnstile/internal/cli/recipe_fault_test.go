//go:build unix

package cli_test

// Commands for other recipes whose replies are lost, whose sessions end and whose servers go.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestCounterAddsOnceWhicheverRequestIsLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore} {
		for step, came := 1, true; came; step++ {
			came = false
			srv := newServer(t)
			var mu sync.Mutex // guards came
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.Seq != step || r.Op == zktest.OpCloseSession { // it has printed its number
					return zktest.Pass
				}
				came = true
				return fault
			})
			r := start(t, "counter", "add", "--connect", srv.Addr(), "/deep/visits", "7")
			r.wantLine("7")
			r.wantCode(0)
			start(t, "counter", "get", "--connect", srv.Addr(), "/deep/visits").wantLine("7")
			if !came && step < 4 {
				t.Errorf("it made %d requests: the test misses some", step-1)
			}
		}
	}
}

func TestCounterSaysThatItDoesNotKnowWhenTheServerGoes(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	start(t, "counter", "set", "--connect", srv.Addr(), "/visits", "1").wantCode(0)
	_, _, changed, err := srv.Session(t, time.Minute).GetW(t.Context(), "/visits")
	if err != nil {
		t.Fatal(err)
	}
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpMulti { // the number, and the proof that it was this call
			return zktest.Pass
		}
		return zktest.ReplyUntil(t.Context())
	})
	r := start(t, "counter", "add", "--connect", srv.Addr(), "--session-timeout", "8s", "--connect-timeout", "8s",
		"/visits")
	if _, err := changed.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Cut()
	r.wantCode(69)
	r.wantStderr("look with turnstile counter get")
	if got := r.rest(); got != "" {
		t.Errorf("it printed %q", got)
	}
	srv.Control(nil)
	srv.Heal()
	start(t, "counter", "get", "--connect", srv.Addr(), "/visits").wantLine("2")
}

func TestSignalEndsASequenceThatPrintsManyNumbers(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/ids", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	_, _, changed, err := sess.GetW(t.Context(), "/ids")
	if err != nil {
		t.Fatal(err)
	}
	const many = "1000000000000000"
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Stdout = nil }, "sequence", "next", "--connect", srv.Addr(), "/ids",
		"-n", many, "--block", many)
	if _, err := changed.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGINT)
	r.wantCode(128 + int(syscall.SIGINT))
}

// parties returns the members at /b, without the ready node.
func parties(t *testing.T, sess *zk.Session) []string {
	t.Helper()
	names, _, err := sess.Children(t.Context(), "/b")
	if err != nil && !errors.Is(err, zk.NoNode) {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "ready" })
}

// enter starts a party of two at /b.
func enter(t *testing.T, srv *zktest.Server, command ...string) *running {
	t.Helper()
	args := []string{"barrier", "enter", "--connect", srv.Addr(), "/b", "--parties", "2", "--"}
	return start(t, append(args, command...)...)
}

func TestPartyThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := enter(t, srv, "echo", "no")
	wantContenders(t, sess, "/b", 1)
	r.signal(syscall.SIGINT)
	r.wantCode(128 + int(syscall.SIGINT))
	if got := r.rest(); got != "" {
		t.Errorf("it ran its command: %q", got)
	}
	if left := parties(t, sess); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPartyWhoseCommandIsInterruptedDoesNotWaitForTheOthers(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	one, two := enter(t, srv, "puppet"), enter(t, srv, "puppet")
	one.ready()
	two.ready()
	one.signal(syscall.SIGTERM)
	one.wantLine("got 15")
	one.wantCode(3)
	two.signal(syscall.SIGTERM)
	two.wantLine("got 15")
	two.wantCode(3)
}

func TestPartyThatWaitsGivesUpWhenTheServerHasGone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "barrier", "enter", "--connect", srv.Addr(), "--session-timeout", "8s", "--connect-timeout", "8s",
		"/b", "--parties", "2", "--", "echo", "no")
	wantContenders(t, sess, "/b", 1)
	srv.Cut()
	r.wantCode(69)
	r.wantStderr("cannot use the server at " + srv.Addr())
	if got := r.rest(); got != "" {
		t.Errorf("it ran its command: %q", got)
	}
	srv.Heal()
}

func TestPartyWhoseSessionEndsLetsItsCommandFinishAndSaysSo(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	one, two := enter(t, srv, "puppet"), enter(t, srv, "puppet")
	one.ready()
	pid := two.ready()
	expireOthers(t, srv, sess)
	for _, r := range []*running{one, two} {
		r.stderr.await(t, "place lost, the command runs on: the session ")
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the command of the second: %v", err)
	}
	// The command that ends by itself has its own code, and the loss does not hide a failure.
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	two.wantLine("got 15")
	two.wantCode(3)
	one.signal(syscall.SIGTERM)
	one.wantLine("got 15")
	one.wantCode(3)
}

func TestPartyWhoseSessionEndedReportsTheLossWhenItsCommandSucceeds(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	file := filepath.Join(t.TempDir(), "end")
	wait := []string{"sh", "-c", `echo up; until test -e "$0"; do sleep 0.01; done`, file}
	one, two := enter(t, srv, wait...), enter(t, srv, wait...)
	one.wantLine("up")
	two.wantLine("up")
	expireOthers(t, srv, sess)
	for _, r := range []*running{one, two} {
		r.stderr.await(t, "place lost, the command runs on: the session ")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*running{one, two} {
		r.wantCode(75)
		r.wantStderr("/b: the session ended: ")
	}
}

// stay enters the barrier without a command.
func stay(t *testing.T, srv *zktest.Server) *running {
	t.Helper()
	in, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = writer.Close()
		_ = in.Close()
	})
	r := startWith(t, func(c *exec.Cmd) { c.Stdin = in },
		"barrier", "enter", "--connect", srv.Addr(), "/b", "--parties", "1")
	r.wantLine("/b")
	return r
}

func TestPartyWithoutACommandEndsWithItsSession(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := stay(t, srv)
	expireOthers(t, srv, sess)
	r.wantCode(75)
	r.wantStderr("/b: the session ended: ")
}

func TestPartyEndsWhenAnotherClientDeletesItsNode(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := stay(t, srv)
	nodes, _, err := sess.Children(t.Context(), "/b")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range nodes {
		if err := sess.Delete(t.Context(), "/b/"+name, -1); err != nil {
			t.Fatal(err)
		}
	}
	r.wantCode(75)
	r.wantStderr("/b: the party's node was deleted by another client")
}

func TestCounterThatIsInterruptedSaysThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	start(t, "counter", "set", "--connect", srv.Addr(), "/visits", "1").wantCode(0)
	_, _, changed, err := srv.Session(t, time.Minute).GetW(t.Context(), "/visits")
	if err != nil {
		t.Fatal(err)
	}
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpMulti {
			return zktest.Pass
		}
		return zktest.ReplyUntil(t.Context())
	})
	r := start(t, "counter", "add", "--connect", srv.Addr(), "--session-timeout", "8s", "/visits")
	if _, err := changed.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGINT) // it waits for the outcome until the session ends
	srv.Cut()
	r.wantCode(128 + int(syscall.SIGINT))
	r.wantStderr("look with turnstile counter get")
}

// memberOf waits until the group /g has a member with another session than the given one, and returns that session.
func memberOf(t *testing.T, srv *zktest.Server, not int64) int64 {
	t.Helper()
	g, err := member.NewGroup(srv.Client(t, time.Minute), "/g", member.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for members, err := range g.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if len(members) == 1 && members[0].Session != not {
			return members[0].Session
		}
	}
	t.Fatal("the member did not come")
	return 0
}

func TestMemberWhoseSessionEndsJoinsAgainAndItsCommandRunsOn(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "group", "join", "--connect", srv.Addr(), "/g", "--id", "one", "--", "puppet")
	pid := r.ready()
	first := memberOf(t, srv, 0)
	if !srv.ExpireSession(first) {
		t.Fatal("the session is not there")
	}
	memberOf(t, srv, first)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.wantLine("got 15")
	r.wantCode(3)
}

func TestMemberEndsWithItsCommandAlsoWhenTheServerHasGone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "group", "join", "--connect", srv.Addr(), "--session-timeout", "10m", "--connect-timeout", "8s", "/g",
		"--id", "one", "--", "puppet")
	pid := r.ready()
	memberOf(t, srv, 0)
	srv.Cut()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.wantLine("got 15")
	r.wantCode(3)
	srv.Heal()
}

func TestItemsAreWorkedOnAgainWhetherTheSessionHasEndedOrNot(t *testing.T) {
	t.Parallel()
	for _, expires := range []bool{false, true} {
		srv := zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
		r := shareItems(t, t.TempDir(), srv.Addr(), "one", `echo $TURNSTILE_ITEM $TURNSTILE_TOKEN; exec sleep 1000`,
			shortly...)
		tokens := make(map[string]int64) // of each item the latest
		// each reads until all items have run, with newer tokens if that is wanted. On a busy machine a session of two
		// seconds may be uncertain for a moment at any time, so commands may run once more.
		each := func(newer bool) {
			t.Helper()
			for ran := make(map[string]bool); len(ran) < 4; {
				item, token := itemAndToken(t, r.line())
				was := tokens[item]
				if token < was {
					t.Errorf("item %q with token %d came again with token %d", item, was, token)
				}
				if tokens[item] = token; token > was || !newer {
					ran[item] = true
				}
			}
		}
		each(true)
		sessions, said := srv.Connected(), len(r.stderr.String())
		srv.HalfOpen()
		r.stderr.awaitBehind(t, said, "item lost, the command has")
		if expires {
			for _, id := range sessions {
				srv.ExpireSession(id)
			}
		}
		srv.Heal()
		each(expires)
		if len(tokens) != 4 {
			t.Errorf("got the items %v", tokens)
		}
		r.signal(syscall.SIGTERM)
		r.wantCode(0)
		for line := range strings.Lines(r.rest()) { // of commands that ran once more before that
			if item, token := itemAndToken(t, line); token < tokens[item] {
				t.Errorf("item %q came again with token %d, after %d", item, token, tokens[item])
			}
		}
	}
}

// One item's lock is refused for a while: the others are worked on, and that one later.
func TestRefusalOfAnItemIsToldAndPasses(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	var refused atomic.Int32
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate && strings.Contains(r.Path, "/b/") && refused.Add(1) <= 3 {
			return zktest.Answer(zk.NoAuth)
		}
		return zktest.Pass
	})
	r := shareItems(t, t.TempDir(), srv.Addr(), "one", `echo $TURNSTILE_ITEM $TURNSTILE_TOKEN; exec sleep 1000`)
	r.itemLines(4)
	r.stderr.await(t, "item b: ")
	if n := strings.Count(r.stderr.String(), "retrying"); n != 1 || refused.Load() < 4 {
		t.Errorf("got %d refusals, told %d times, want once: %s", refused.Load()-1, n, r.stderr.String())
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}

// itemAndToken parses what the command of an item has written.
func itemAndToken(t *testing.T, line string) (item string, token int64) {
	t.Helper()
	if _, err := fmt.Sscan(line, &item, &token); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return item, token
}
