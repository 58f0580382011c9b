//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// exportOf returns an export of a root with n children, the last of which has this list of rights.
func exportOf(n int, rights string) string {
	var b strings.Builder
	line := func(path, rights string) {
		fmt.Fprintf(&b, `{"path":%q,"acl":[{"scheme":"world","id":"anyone","rights":%q}],"data":%q}`+"\n", path,
			rights, path)
	}
	b.WriteString(`{"turnstile_export":1,"path":"/from"}` + "\n")
	line("", "cdrwa")
	for i := range n {
		if i == n-1 {
			line(fmt.Sprintf("/%04d", i), rights)
		} else {
			line(fmt.Sprintf("/%04d", i), "cdrwa")
		}
	}
	fmt.Fprintf(&b, `{"end":true,"nodes":%d}`+"\n", n+1)
	return b.String()
}

// importing runs turnstile import /to with this input.
func importing(t *testing.T, srv *zktest.Server, input string) *running {
	t.Helper()
	return startWith(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(input) },
		"import", "--connect", srv.Addr(), "--session-timeout", "10s", "/to")
}

// names returns the children of /to, and whether it exists.
func names(t *testing.T, srv *zktest.Server) ([]string, bool) {
	t.Helper()
	sess := srv.Session(t, time.Minute)
	all, _, err := sess.Children(t.Context(), "/to")
	if zk.OutcomeOf(err) == zk.Refused {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all, true
}

// once returns a control that answers the nth request of an operation with a fault, and the others as they come.
func once(op zktest.Op, nth int, fault zktest.Fault) func(zktest.Request) zktest.Fault {
	var mu sync.Mutex
	return func(r zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Op == op && r.Nth == nth {
			return fault
		}
		return zktest.Pass
	}
}

// Promise: 19
func TestImportWithLostRepliesCreatesEachNodeOnce(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 3; nth++ {
		srv := newServer(t)
		srv.Control(once(zktest.OpMulti, nth, zktest.DropReply))
		r := importing(t, srv, exportOf(250, "cdrwa"))
		r.wantCode(0)
		if all, ok := names(t, srv); !ok || len(all) != 250 {
			t.Errorf("after the loss of reply %d: %d nodes", nth, len(all))
		}
	}
}

// Each transaction that continues a sequence number counts once, also if its reply is lost.
func TestSequenceNumbersContinueWhateverIsLost(t *testing.T) {
	t.Parallel()
	input := `{"turnstile_export":1,"path":"/from"}
{"path":"","acl":[{"scheme":"world","id":"anyone","rights":"cdrwa"}],"next_sequence":1205,"set":true}
{"path":"/job-0000001203","acl":[{"scheme":"world","id":"anyone","rights":"cdrwa"}],"data":"x","set":true}
{"end":true,"nodes":2}
`
	for nth := 1; nth <= 4; nth++ {
		for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore} {
			srv := newServer(t)
			srv.Control(once(zktest.OpMulti, nth, fault))
			importing(t, srv, input).wantCode(0)
			sess := srv.Session(t, time.Minute)
			made, err := sess.CreateNode(t.Context(), zk.Node{Path: "/to/job-", Mode: zk.PersistentSequential})
			if err != nil || made.Path != "/to/job-0000001205" {
				t.Errorf("fault %v of transaction %d: the next node is %s, %v", fault, nth, made.Path, err)
			}
			if _, stat, err := sess.Get(t.Context(), "/to/job-0000001203"); err != nil || stat.Version != 1 {
				t.Errorf("fault %v of transaction %d: version %d, %v, want 1", fault, nth, stat.Version, err)
			}
		}
	}
}

func TestImportThatCannotContinueNumbersDeletesWhatItHasCreated(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	srv.Control(once(zktest.OpMulti, 2, zktest.Answer(zk.QuotaExceeded)))
	r := importing(t, srv, `{"turnstile_export":1,"path":"/from"}
{"path":"","acl":[{"scheme":"world","id":"anyone","rights":"cdrwa"}],"next_sequence":5,"set":true}
{"end":true,"nodes":1}
`)
	r.wantCode(70)
	r.wantStderr("sequence numbers of /to: ")
	r.wantStderr("turnstile: deleted 1 node again\n")
	if all, there := names(t, srv); there {
		t.Errorf("left behind: /to with %d nodes", len(all))
	}
}

func TestRemovalThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	importing(t, srv, exportOf(600, "cdrwa")).wantCode(0)
	arrived := make(chan struct{})
	ctx, release := context.WithCancel(t.Context())
	defer release()
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpDelete && r.Nth == 400 {
			close(arrived)
			return zktest.Until(ctx)
		}
		return zktest.Pass
	})
	r := start(t, "rm", "-r", "--connect", srv.Addr(), "/to")
	<-arrived
	r.signal(syscall.SIGINT)
	r.wantCode(128 + 2)
	r.wantStderr("turnstile: deleted at least ") // how many of a batch are known is chance
	r.wantStderr(" nodes, and not all\n")
}

// Promise: 19
func TestImportWhoseRequestIsLostSendsItAgain(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	srv.Control(once(zktest.OpMulti, 2, zktest.CutBefore))
	importing(t, srv, exportOf(250, "cdrwa")).wantCode(0)
	if all, _ := names(t, srv); len(all) != 250 {
		t.Errorf("%d nodes", len(all))
	}
}

// Promise: 19
func TestImportThatFailsDeletesWhatItHasCreated(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	// The server refuses the third transaction.
	srv.Control(once(zktest.OpMulti, 3, zktest.Answer(zk.InvalidACL)))
	r := importing(t, srv, exportOf(250, "cdrwa"))
	r.wantCode(77)
	r.wantStderr("turnstile: deleted 200 nodes again\n")
	if all, there := names(t, srv); there {
		t.Errorf("left behind: /to with %d nodes", len(all))
	}
}

// Promise: 19
func TestImportThatIsInterruptedDeletesWhatItHasCreated(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	arrived := holdThird(t, srv)
	r := importing(t, srv, exportOf(350, "cdrwa"))
	<-arrived
	r.signal(syscall.SIGINT)
	r.wantCode(128 + 2)
	if all, there := names(t, srv); there {
		t.Errorf("left behind: /to with %d nodes", len(all))
	}
}

// holdThird keeps the reply to the third transaction of an import back until the first transaction that undoes it. The
// channel is closed when the third has arrived.
func holdThird(t *testing.T, srv *zktest.Server) <-chan struct{} {
	t.Helper()
	arrived := make(chan struct{})
	ctx, release := context.WithCancel(t.Context())
	srv.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case r.Op == zktest.OpMulti && r.Nth == 3:
			close(arrived)
			return zktest.ReplyUntil(ctx) // it is applied, but the command stops waiting for the answer
		case r.Op == zktest.OpMulti && r.Nth == 4:
			release()
		}
		return zktest.Pass
	})
	return arrived
}

// Promise: 19
func TestImportThatIsInterruptedSaysWhatStays(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	arrived := holdThird(t, srv)
	r := importing(t, srv, exportOf(350, "cdrwa"))
	<-arrived
	if _, err := sess.Set(t.Context(), "/to/0007", []byte("mine"), 0); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGINT)
	r.wantCode(128 + 2)
	r.wantStderr("turnstile: 2 nodes stay, such as /to/0007, because another client has changed them")
	if all, _ := names(t, srv); !slices.Equal(all, []string{"0007"}) {
		t.Errorf("left: %v", all)
	}
}

// Promise: 19
func TestImportIsUndoneInFewTransactions(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	var mu sync.Mutex
	deletes := 0
	refuse := once(zktest.OpMulti, 11, zktest.Answer(zk.InvalidACL))
	srv.Control(func(r zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Op == zktest.OpDelete {
			deletes++
		}
		return refuse(r)
	})
	r := importing(t, srv, exportOf(1200, "cdrwa"))
	r.wantCode(77)
	r.wantStderr("turnstile: deleted 1000 nodes again\n")
	if _, there := names(t, srv); there {
		t.Error("/to is left behind")
	}
	mu.Lock()
	defer mu.Unlock()
	if deletes > 0 {
		t.Errorf("it deleted %d nodes one by one", deletes)
	}
}

// Promise: 19
func TestImportIntoATreeThatExistsIsRefusedAlsoIfItsFirstRequestIsLost(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	importing(t, srv, exportOf(50, "cdrwa")).wantCode(0)
	srv.Control(once(zktest.OpMulti, 1, zktest.CutBefore))
	r := importing(t, srv, exportOf(150, "cdrwa"))
	r.wantCode(1)
	r.wantStderr("/to exists: import creates it")
	if all, _ := names(t, srv); len(all) != 50 {
		t.Errorf("of 50 nodes there are %d", len(all))
	}
}

// Promise: 19
func TestImportTellsAnotherClientsNodesFromItsOwn(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	srv.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case r.Op == zktest.OpMulti && r.Nth == 2:
			return zktest.CutBefore
		case r.Op == zktest.OpDelete && r.Nth == 1: // it asks what became of its request
			return meanwhile(t, func() error {
				_, err := sess.Create(t.Context(), "/to/0099", []byte("/0099"), zk.Persistent)
				_, err2 := sess.Create(t.Context(), "/to/0198", []byte("/0198"), zk.Persistent)
				return errors.Join(err, err2)
			})
		}
		return zktest.Pass
	})
	r := importing(t, srv, exportOf(250, "cdrwa"))
	r.wantCode(70)
	r.wantStderr("1 node stay, such as /to, because another client has changed them or added to them")
	if all, _ := names(t, srv); !slices.Equal(all, []string{"0099", "0198"}) {
		t.Errorf("left: %v", all)
	}
}

// Promise: 19
func TestImportWithALostReplyDeletesNothingOfOthers(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/to-none", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	srv.Control(once(zktest.OpMulti, 1, zktest.DropReply))
	importing(t, srv, exportOf(5, "cdrwa")).wantCode(0)
	if _, there, err := sess.Exists(t.Context(), "/to-none"); err != nil || !there {
		t.Errorf("/to-none is there: %v, %v", there, err)
	}
}

// Promise: 19
func TestImportOfMoreThanTheServerAcceptsIsUndone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	large := strings.Replace(exportOf(150, "cdrwa"), `"data":"/0120"`, `"data":"`+strings.Repeat("x", 2<<20)+`"`, 1)
	r := importing(t, srv, large)
	r.wantCode(65)
	r.wantStderr("it may not accept so much data")
	if all, there := names(t, srv); there {
		t.Errorf("left behind: /to with %d nodes", len(all))
	}
}

func TestWriteWhoseReplyIsLostSaysThatItMayBeDone(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	start(t, "create", "--connect", srv.Addr(), "/x").wantCode(0)
	srv.Control(once(zktest.OpSetData, 1, zktest.DropReply))
	r := start(t, "set", "--connect", srv.Addr(), "/x", "new")
	r.wantCode(69)
	r.wantStderr("/x: it is not known whether this was done")
	if got := start(t, "get", "--connect", srv.Addr(), "/x").rest(); got != "new" {
		t.Errorf("its data is %q", got)
	}
}

func TestSignalEndsACommandThatReadsStandardInput(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for _, args := range [][]string{{"import", "/to"}, {"set", "/to", "-"}, {"create", "/to", "-"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			in, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			r := startWith(t, func(cmd *exec.Cmd) { cmd.Stdin = in }, append(args, "--connect", srv.Addr())...)
			defer writer.Close()
			// More than a pipe holds: then it has begun to read.
			if _, err := writer.Write(bytes.Repeat([]byte("{"), 256<<10)); err != nil {
				t.Fatal(err)
			}
			r.signal(syscall.SIGTERM)
			if rest := r.rest(); rest != "" {
				t.Errorf("it printed %q", rest)
			}
			r.wantCode(128 + int(syscall.SIGTERM))
		})
	}
}

// meanwhile returns a fault that holds a request up until f has been called.
func meanwhile(t *testing.T, f func() error) zktest.Fault {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if err := f(); err != nil {
			t.Error(err)
		}
	}()
	return zktest.Until(ctx)
}

// Promise: 19
func TestImportThatFailsLeavesWhatOthersHaveChanged(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	srv.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case r.Op == zktest.OpMulti && r.Nth == 2:
			return meanwhile(t, func() error {
				_, err := sess.Set(t.Context(), "/to/0007", []byte("mine"), 0)
				return err
			})
		case r.Op == zktest.OpMulti && r.Nth == 3:
			return zktest.Answer(zk.InvalidACL)
		}
		return zktest.Pass
	})
	r := importing(t, srv, exportOf(250, "cdrwa"))
	r.wantCode(77)
	r.wantStderr("2 nodes stay, such as /to/0007, because another client has changed them")
	if all, _ := names(t, srv); !slices.Equal(all, []string{"0007"}) {
		t.Errorf("left: %v", all)
	}
}

// Promise: 19
func TestWatchSaysThatItMayHaveMissedChanges(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	r := start(t, "watch", "-r", "-n", "3", "--connect", srv.Addr(), "--session-timeout", "1m", "/seen")
	r.stderr.await(t, "watching /seen") // the watch is set
	if _, err := sess.Create(t.Context(), "/seen", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	r.wantLine("created /seen")
	srv.Cut(ids(srv, sess)...)
	srv.Heal()
	r.wantLine("missed /seen")
	expireOthers(t, srv, sess)
	r.wantLine("missed /seen")
	if err := sess.Delete(t.Context(), "/seen", -1); err != nil {
		t.Fatal(err)
	}
	r.wantLine("deleted /seen")
	if _, err := sess.Create(t.Context(), "/seen", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	r.wantLine("created /seen")
	r.wantCode(0)
}

// ids returns the sessions other than sess.
func ids(srv *zktest.Server, sess *zk.Session) []int64 {
	return slices.DeleteFunc(srv.Connected(), func(id int64) bool { return id == sess.ID() })
}

func expireOthers(t *testing.T, srv *zktest.Server, sess *zk.Session) {
	t.Helper()
	for _, id := range ids(srv, sess) {
		srv.ExpireSession(id)
	}
}

// Promise: 19
func TestExportSaysThatTheTreeChangedMeanwhile(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	for _, path := range []string{"/from", "/from/a", "/from/a/b"} {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Path == "/from/a/b" && r.Op == zktest.OpGetData {
			return meanwhile(t, func() error {
				_, err := sess.Set(t.Context(), "/from/a", []byte("new"), -1)
				return err
			})
		}
		return zktest.Pass
	})
	r := start(t, "export", "--connect", srv.Addr(), "/from")
	out, err := io.ReadAll(r.lines)
	if err != nil {
		t.Fatal(err)
	}
	r.wantCode(0)
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if last := string(lines[len(lines)-1]); !strings.Contains(last, `"changed_meanwhile":true`) {
		t.Errorf("last line %s", last)
	}
	if !strings.Contains(r.stderr.String(), "/from changed meanwhile") {
		t.Errorf("standard error: %s", r.stderr.String())
	}
	srv.Control(nil)
	piped := func(cmd *exec.Cmd) { cmd.Stdin = bytes.NewReader(out) }
	r = startWith(t, piped, "import", "-q", "--connect", srv.Addr(), "/to")
	r.wantCode(0)
	r.wantStderr("the tree changed while it was exported")
}

// Promise: 19
func TestImportRefusesWhatIsMalformed(t *testing.T) {
	t.Parallel()
	const head = `{"turnstile_export":1,"path":"/x"}` + "\n"
	node := func(path string) string {
		return fmt.Sprintf(`{"path":%q,"acl":[{"scheme":"world","id":"anyone","rights":"r"}]}`+"\n", path)
	}
	end := func(n int) string { return fmt.Sprintf(`{"end":true,"nodes":%d}`+"\n", n) }
	srv := newServer(t)
	for name, test := range map[string]struct{ input, want string }{
		"newer":        {`{"turnstile_export":2}` + "\n", "format 2 is newer"},
		"no nodes":     {head + end(0), "the stream has no nodes"},
		"no root":      {head + node("/a"), "the first node must be the root"},
		"no parent":    {head + node("") + node("/a/b"), "/a/b stands before its parent"},
		"other parent": {head + node("") + node("/a") + node("/b/c"), "/b/c does not stand behind its parent"},
		"twice": {head + node("") + node("/a") + node("/a"), "does not stand in the order of the names, or " +
			"twice"},
		"root twice": {head + node("") + node(""), `invalid path ""`},
		"dots":       {head + node("") + node("/.."), `invalid path "/.."`},
		"no path":    {head + `{"acl":[]}` + "\n", "it has no path"},
		"no list":    {head + `{"path":"","acl":[]}` + "\n", "acl is empty"},
		"no JSON":    {head + "hello\n", "line 2: invalid character"},
		"more":       {head + node("") + end(1) + "x", "something follows the end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := importing(t, srv, test.input)
			r.wantCode(65)
			if got := r.stderr.String(); !strings.Contains(got, test.want) || !strings.Contains(got,
				"nothing was created") {
				t.Errorf("standard error: %s", got)
			}
		})
	}
}

// Whichever of the creations of a chroot is lost, or its reply: the node is made.
func TestChrootIsMadeWhicheverRequestIsLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore} {
		for nth := 1; ; nth++ {
			srv := newServer(t)
			var mu sync.Mutex
			n, hit := 0, false
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.Path != "/none" && r.Path != "/none/here" {
					return zktest.Pass
				}
				if n++; n == nth {
					hit = true
					return fault
				}
				return zktest.Pass
			})
			r := start(t, "create", "--connect", srv.Addr()+"/none/here", "--parents", "/a/b", "x")
			r.wantCode(0)
			srv.Control(nil)
			sess := srv.Session(t, time.Minute)
			if _, there, err := sess.Exists(t.Context(), "/none/here/a/b"); err != nil || !there {
				t.Fatalf("request %d: there is no node, %v", nth, err)
			}
			mu.Lock()
			done := !hit
			mu.Unlock()
			if done {
				if nth < 4 {
					t.Errorf("%d requests made the chroot, want at least 3", nth-1)
				}
				break
			}
		}
	}
}
