package member_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// limit bounds what must happen some time.
const limit = 30 * time.Second

var modes = []member.NodeMode{
	member.Ephemeral, member.EphemeralSequential, member.Persistent, member.PersistentSequential,
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func server(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
}

// keep keeps a node at path.
func keep(t *testing.T, client *zk.Client, path, data string, cfg member.NodeConfig) *member.Node {
	t.Helper()
	n, err := member.OpenNode(client, path, []byte(data), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// mustGet returns a node's data and metadata.
func mustGet(t *testing.T, sess *zk.Session, path string) (string, zk.Stat) {
	t.Helper()
	data, stat, err := sess.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), stat
}

// awaitNode waits until f is true of the node at path: of its data, or of nil if there is none.
func awaitNode(t *testing.T, sess *zk.Session, path string, f func(data []byte, s zk.Stat, there bool) bool) zk.Stat {
	t.Helper()
	ctx := within(t)
	w, err := sess.Watch(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		data, stat, err := sess.Get(ctx, path)
		if err != nil && !errors.Is(err, zk.NoNode) {
			t.Fatal(err)
		}
		if f(data, stat, err == nil) {
			return stat
		}
		if _, err := w.Next(ctx); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

func is(want string) func([]byte, zk.Stat, bool) bool {
	return func(data []byte, _ zk.Stat, there bool) bool { return there && string(data) == want }
}

func gone(_ []byte, _ zk.Stat, there bool) bool { return !there }

// Promise: 16
func TestNodeIsThereAfterAwaitAndGoneAfterClose(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	sess := srv.Session(t, time.Minute)
	n := keep(t, client, "/a/b/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	if data, stat := mustGet(t, sess, "/a/b/node"); data != "one" || stat.EphemeralOwner == 0 {
		t.Errorf("%q, owner %x", data, stat.EphemeralOwner)
	}
	if err := n.Set(within(t), []byte("two")); err != nil {
		t.Fatal(err)
	}
	if data, _ := mustGet(t, sess, "/a/b/node"); data != "two" || !n.InPlace() {
		t.Errorf("%q after Set", data)
	}
	if err := n.CloseWait(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, there, err := sess.Exists(t.Context(), "/a/b/node"); there || err != nil {
		t.Errorf("there after Close: %v, %v", there, err)
	}
	for _, err := range []error{n.Await(t.Context()), n.Set(t.Context(), nil)} {
		if !errors.Is(err, member.ErrClosed) {
			t.Errorf("%v after Close", err)
		}
	}
	if err := n.CloseWait(within(t)); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Promise: 16
func TestNodeThatIsDeletedComesBackWithTheLatestData(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/node", "one", member.NodeConfig{})
	if err := n.Set(within(t), []byte("two")); err != nil {
		t.Fatal(err)
	}
	_, before := mustGet(t, sess, "/node")
	if err := sess.Delete(t.Context(), "/node", -1); err != nil {
		t.Fatal(err)
	}
	after := awaitNode(t, sess, "/node", is("two"))
	if after.Czxid == before.Czxid {
		t.Error("the same node")
	}
}

// After a change of the data by others the node is still watched (CURATOR-258).
//
// Promise: 16
func TestDataOfOthersStaysAndTheNodeIsStillKept(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := sess.Set(t.Context(), "/node", []byte("theirs"), -1); err != nil {
		t.Fatal(err)
	}
	if err := sess.Delete(t.Context(), "/node", 1); err != nil {
		t.Fatalf("their data did not stay: %v", err)
	}
	awaitNode(t, sess, "/node", is("one"))
}

// Promise: 16
func TestNodeIsCreatedAgainUnderTheNextSession(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	sess := srv.Session(t, time.Minute)
	n := keep(t, client, "/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	_, before := mustGet(t, sess, "/node")
	srv.ExpireSession(before.EphemeralOwner)
	after := awaitNode(t, sess, "/node", func(data []byte, s zk.Stat, there bool) bool {
		return there && string(data) == "one" && s.EphemeralOwner != before.EphemeralOwner
	})
	if err := n.Await(within(t)); err != nil || after.EphemeralOwner == 0 {
		t.Errorf("%v, owner %x", err, after.EphemeralOwner)
	}
}

// Promise: 16
func TestDataThatIsSetWithoutAConnectionArrivesLater(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	_, stat := mustGet(t, sess, "/node")
	srv.Cut(stat.EphemeralOwner)
	ctx, cancel := context.WithCancel(t.Context())
	set := make(chan error, 1)
	go func() { set <- n.Set(ctx, []byte("two")) }()
	cancel() // the caller leaves
	if err := <-set; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := n.Set(ctx, []byte("three")); err == nil {
		t.Error("set without a connection")
	}
	srv.Heal()
	awaitNode(t, sess, "/node", is("three"))
}

// A node of another session is not deleted, and never are there two.
//
// Promise: 16
func TestNodeOfAnotherSessionIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := server(t)
	other := srv.Session(t, time.Minute)
	if _, err := other.Create(t.Context(), "/node", []byte("theirs"), zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	n := keep(t, srv.Client(t, time.Minute), "/node", "ours", member.NodeConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v while another session has the node", err)
	}
	if data, _ := mustGet(t, other, "/node"); data != "theirs" {
		t.Errorf("data %q", data)
	}
	if err := other.Delete(t.Context(), "/node", 0); err != nil {
		t.Fatal(err)
	}
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
}

// Promise: 16
func TestNodeOfAnotherKindIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/node", []byte("theirs"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	n := keep(t, srv.Client(t, time.Minute), "/node", "ours", member.NodeConfig{})
	if err := n.Await(within(t)); !errors.Is(err, member.ErrTaken) {
		t.Fatalf("%v", err)
	}
	if err := sess.Delete(t.Context(), "/node", -1); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, sess, "/node", is("ours"))
	lasting := keep(t, srv.Client(t, time.Minute), "/node", "lasting", member.NodeConfig{Mode: member.Persistent})
	if err := lasting.Await(within(t)); !errors.Is(err, member.ErrTaken) {
		t.Fatalf("%v", err)
	}
	if err := lasting.CloseWait(within(t)); err != nil {
		t.Fatal(err)
	}
	if data, _ := mustGet(t, sess, "/node"); data != "ours" {
		t.Errorf("Close of a node that was never in place has changed %q", data)
	}
}

// Promise: 16
func TestPersistentNodeIsAdoptedAndOutlivesSessions(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/node", []byte("old"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	client := srv.Client(t, time.Minute)
	n := keep(t, client, "/node", "new", member.NodeConfig{Mode: member.Persistent})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	first, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(first.ID())
	if err := sess.Delete(t.Context(), "/node", -1); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, sess, "/node", is("new"))
	if err := n.CloseWait(within(t)); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, sess, "/node", gone)
}

// Promise: 16
func TestDetachedNodeStays(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/node", "x", member.NodeConfig{Mode: member.Persistent})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	n.Detach()
	if err := n.CloseWait(within(t)); err != nil {
		t.Fatal(err)
	}
	if data, _ := mustGet(t, sess, "/node"); data != "x" {
		t.Errorf("data %q", data)
	}
}

func TestNodeThatTwoGoroutinesDetachStays(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	client := srv.Client(t, time.Minute)
	for i := range 100 {
		path := fmt.Sprintf("/node-%d", i)
		n := keep(t, client, path, "x", member.NodeConfig{Mode: member.Persistent})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(n.Detach)
		both.Go(n.Detach)
		both.Wait()
		mustGet(t, sess, path)
	}
}

// Each request that the Node sends loses its reply, or its connection before the server sees it, in turn.
//
// Promise: 16
func TestFaultAtEachStepLeavesOneNodeAndNoneAfterClose(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		for name, fault := range map[string]zktest.Fault{
			"reply lost": zktest.DropReply, "request lost": zktest.CutBefore, "connection lost": zktest.CutAfter,
		} {
			t.Run(fmt.Sprint("mode ", mode, ", ", name), func(t *testing.T) {
				t.Parallel()
				for step, all := 1, false; !all; step++ {
					all = faultAtStep(t, mode, fault, step)
				}
			})
		}
	}
}

// faultAtStep runs a Node to its end, with the fault at one of its requests. It returns true if there are fewer.
func faultAtStep(t *testing.T, mode member.NodeMode, fault zktest.Fault, step int) (all bool) {
	t.Helper()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	client := srv.Client(t, time.Minute)
	var mu sync.Mutex
	seen := 0
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session == sess.ID() || r.Seq == 0 {
			return zktest.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == step {
			return fault
		}
		return zktest.Pass
	})
	n := keep(t, client, "/dir/node", "one", member.NodeConfig{Mode: mode})
	if err := n.Await(within(t)); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	if err := n.Set(within(t), []byte("two")); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	only(t, sess, "/dir")
	if data, _ := mustGet(t, sess, n.Path()); data != "two" {
		t.Errorf("step %d: data %q", step, data)
	}
	if err := n.CloseWait(within(t)); err != nil {
		t.Fatalf("step %d: close: %v", step, err)
	}
	srv.NoNodes(t, "/dir")
	mu.Lock()
	defer mu.Unlock()
	return seen < step
}

// The program closes the Node while its creation is on the way (CURATOR-297).
//
// Promise: 16
func TestCloseUndoesACreationThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		if _, err := sess.Create(t.Context(), "/dir", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		arrived := make(chan struct{})
		ctx, release := context.WithCancel(t.Context())
		var once sync.Once
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate {
				once.Do(func() { close(arrived) })
				return zktest.Until(ctx)
			}
			return zktest.Pass
		})
		n := keep(t, srv.Client(t, time.Minute), "/dir/node", "one", member.NodeConfig{Mode: mode})
		<-arrived
		n.Close()
		release()
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		awaitEmpty(t, sess, "/dir")
	}
}

// awaitEmpty waits until the node has no children.
func awaitEmpty(t *testing.T, sess *zk.Session, dir string) {
	t.Helper()
	for {
		children, _, watch, err := sess.ChildrenW(within(t), dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(children) == 0 {
			watch.Close()
			return
		}
		if _, err := watch.Next(within(t)); err != nil {
			t.Fatalf("%v are left in %s: %v", children, dir, err)
		}
	}
}

// closed lets clients do nothing but change the list.
var closed = []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}

func setACL(t *testing.T, sess *zk.Session, path string, acl []zk.ACL) {
	t.Helper()
	if _, err := sess.SetACL(t.Context(), path, acl, -1); err != nil {
		t.Fatal(err)
	}
}

// Promise: 16
func TestRefusalIsReportedAndNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, time.Minute)
		readOnly := []zk.ACL{{Perms: zk.PermRead | zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/closed", ACL: readOnly}); err != nil {
			t.Fatal(err)
		}
		before := srv.Traffic().Requests[zktest.OpCreate]
		n := keep(t, srv.Client(t, time.Minute), "/closed/node", "x", member.NodeConfig{})
		for range 2 {
			if err := n.Await(within(t)); !errors.Is(err, zk.NoAuth) {
				t.Fatalf("%v", err)
			}
			synctest.Wait()
		}
		if tried := srv.Traffic().Requests[zktest.OpCreate] - before; tried != 1 {
			t.Errorf("tried %d times", tried)
		}
		time.Sleep(time.Hour)
		if tried := srv.Traffic().Requests[zktest.OpCreate] - before; tried < 60 || tried > 3600 {
			t.Errorf("tried %d times in an hour", tried)
		}
		setACL(t, sess, "/closed", zk.OpenACL())
		if err := n.Set(within(t), []byte("y")); err != nil {
			t.Fatalf("with access: %v", err)
		}
	})
}

// A right that is missing when the next session begins comes back later, which no watch tells.
//
// Promise: 16
func TestNodeOutlivesARefusal(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
			sess, client := srv.Session(t, time.Hour), srv.Client(t, time.Minute)
			if _, err := sess.Create(t.Context(), "/dir", nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
			n := keep(t, client, "/dir/node", "x", member.NodeConfig{Mode: mode})
			if err := n.Await(within(t)); err != nil {
				t.Fatal(err)
			}
			setACL(t, sess, "/dir", closed)
			srv.ExpireSession(sessionOf(t, client).ID())
			if mode == member.Persistent || mode == member.PersistentSequential {
				setACL(t, sess, n.Path(), closed)
			}
			time.Sleep(time.Minute)
			if err := n.Await(t.Context()); !errors.Is(err, zk.NoAuth) {
				t.Errorf("mode %d: got %v while refused, want NoAuth", mode, err)
			}
			setACL(t, sess, "/dir", zk.OpenACL())
			if mode == member.Persistent || mode == member.PersistentSequential {
				setACL(t, sess, n.Path(), zk.OpenACL())
			}
			time.Sleep(time.Minute)
			if data, _ := mustGet(t, sess, n.Path()); data != "x" || !n.InPlace() {
				t.Errorf("mode %d: got %q, in place: %t, want it kept when the right is back", mode, data, n.InPlace())
			}
		}, zktest.SessionTimeouts(time.Second, time.Hour))
	}
}

func TestRefusalToDeleteTheNodeIsReported(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	noDelete := []zk.ACL{{Perms: zk.PermAll &^ zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/kept", ACL: noDelete}); err != nil {
		t.Fatal(err)
	}
	n := keep(t, srv.Client(t, time.Minute), "/kept/node", "x", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := n.CloseWait(within(t)); !errors.Is(err, zk.NoAuth) {
		t.Errorf("got %v, want the refusal", err)
	}
}

// Promise: 16
func TestNodeWithATTLIsTouchedAndStays(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/dir/node", "x",
		member.NodeConfig{Mode: member.Persistent, TTL: time.Second})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, sess, "/dir/node/touch", func(_ []byte, s zk.Stat, there bool) bool { return there && s.Version >= 2 })
	if _, stat := mustGet(t, sess, "/dir/node"); stat.Version != 0 {
		t.Error("watchers of the node see it touched")
	}
	if err := n.CloseWait(within(t)); err != nil {
		t.Fatal(err)
	}
	if data, _ := mustGet(t, sess, "/dir/node"); data != "x" {
		t.Errorf("data %q after Close", data)
	}
}

// Promise: 16
func TestNodeEndsWithItsClient(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client, err := zk.Open(t.Context(), srv.Config(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	n := keep(t, client, "/node", "x", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.Set(within(t), nil); !errors.Is(err, zk.ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := n.CloseWait(within(t)); err != nil && !errors.Is(err, zk.ErrClosed) {
		t.Error(err)
	}
}

func TestBadInputOfNodesIsRefused(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	for name, f := range map[string]func() (*member.Node, error){
		"no client": func() (*member.Node, error) { return member.OpenNode(nil, "/x", nil, member.NodeConfig{}) },
		"relative":  func() (*member.Node, error) { return member.OpenNode(client, "x", nil, member.NodeConfig{}) },
		"the root":  func() (*member.Node, error) { return member.OpenNode(client, "/", nil, member.NodeConfig{}) },
		"a mode": func() (*member.Node, error) {
			return member.OpenNode(client, "/x", nil, member.NodeConfig{Mode: 7})
		},
		"a TTL of an ephemeral node": func() (*member.Node, error) {
			return member.OpenNode(client, "/x", nil, member.NodeConfig{TTL: time.Minute})
		},
		"a short TTL": func() (*member.Node, error) {
			cfg := member.NodeConfig{TTL: time.Millisecond, Mode: member.Persistent}
			return member.OpenNode(client, "/x", nil, cfg)
		},
	} {
		if n, err := f(); err == nil {
			t.Errorf("%s is accepted", name)
			n.Close()
		}
	}
}

func TestNodeHoldsAsMuchDataAsFitsIntoARequest(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	most := attempt.MaxData(0, "/x", nil)
	data := make([]byte, most+1)
	if _, err := member.OpenNode(client, "/x", data, member.NodeConfig{}); !errors.Is(err, zk.BadArguments) {
		t.Errorf("OpenNode of one byte more: got %v, want BadArguments", err)
	}
	n := keep(t, client, "/x", string(data[:most]), member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Error(err)
	}
	if err := n.Set(within(t), data[:most]); err != nil {
		t.Error(err)
	}
	if err := n.Set(within(t), data); !errors.Is(err, zk.BadArguments) {
		t.Errorf("Set of one byte more: got %v, want BadArguments", err)
	}
}
