package zk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 18
func TestCreateAllCreatesTheParentsThatAreMissing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := openClient(t, zktest.Run(t))
	acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	n := zk.Node{Path: "/a/b/c/d", Data: []byte("x"), Mode: zk.Ephemeral}
	made, err := c.CreateAll(ctx, n, zk.Parents{Mode: zk.Container, ACL: acl})
	if err != nil || made.Path != n.Path {
		t.Fatalf("got %v, %v", made, err)
	}
	data, stat, err := c.Get(ctx, n.Path)
	if string(data) != "x" || stat != made.Stat || err != nil {
		t.Errorf("got %s, %+v, %v", data, stat, err)
	}
	if got, _, err := c.GetACL(ctx, "/a/b"); !slices.Equal(got, acl) || err != nil {
		t.Errorf("ACL of a parent: %v, %v; want %v", got, err, acl)
	}
	_, err = c.CreateAll(ctx, n, zk.Parents{})
	wantFailure(t, err, zk.NodeExists, zk.Refused)
	made, err = c.CreateAll(ctx, zk.Node{Path: "/a/q/n-", Mode: zk.PersistentSequential}, zk.Parents{})
	if err != nil || made.Path != "/a/q/n-0000000000" {
		t.Errorf("sequential: %v, %v", made, err)
	}
	_, err = c.CreateAll(ctx, zk.Node{Path: n.Path + "/below/it"}, zk.Parents{})
	wantFailure(t, err, zk.NoChildrenForEphemerals, zk.Refused)
	_, err = c.CreateAll(ctx, zk.Node{Path: "/p"}, zk.Parents{Mode: zk.Ephemeral})
	wantFailure(t, err, zk.BadArguments, zk.NotSent)
}

// Promise: 18
func TestCreateAllNeedsNoRightToParentsThatExist(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	none := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.DigestID("a", "b")}}
	_, err := c.CreateNode(ctx, zk.Node{Path: "/shut", ACL: none})
	must(t, err)
	_, err = c.CreateAll(ctx, zk.Node{Path: "/shut/x/y"}, zk.Parents{})
	wantFailure(t, err, zk.NoAuth, zk.Refused)

	_, err = c.CreateAll(ctx, zk.Node{Path: "/half/open"}, zk.Parents{})
	must(t, err)
	_, err = c.SetACL(ctx, "/half", none, -1)
	must(t, err)
	_, err = c.CreateAll(ctx, zk.Node{Path: "/half/open/x/y"}, zk.Parents{})
	must(t, err)
}

// Promise: 18
func TestCreateAllSaysThatTheChrootIsMissing(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	cfg := srv.Config(10 * time.Second)
	cfg.Servers += "/app"
	c, err := zk.Open(t.Context(), cfg)
	must(t, err)
	defer c.Close()
	_, err = c.CreateAll(t.Context(), zk.Node{Path: "/a/b"}, zk.Parents{})
	wantFailure(t, err, zk.NoNode, zk.Refused)
	plain := openClient(t, srv)
	_, err = plain.Create(t.Context(), "/app", nil, zk.Persistent)
	must(t, err)
	_, err = c.CreateAll(t.Context(), zk.Node{Path: "/a/b"}, zk.Parents{})
	must(t, err)
}

// Each request in turn meets each fault; the parents may exist, or not.
//
// Promise: 18
func TestCreateAllFindsOutWhatALostReplyHasDone(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"lost before": zktest.Refuse, "cut before": zktest.CutBefore, "reply lost": zktest.DropReply,
		"cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		for _, mode := range []zk.Mode{zk.Persistent, zk.Ephemeral, zk.Container, zk.PersistentTTL} {
			t.Run(fmt.Sprintf("%s, mode %d", name, mode), func(t *testing.T) {
				t.Parallel()
				srv := zktest.Run(t)
				c := openClient(t, srv)
				for seq := 1; ; seq++ {
					hit := false
					var mu sync.Mutex
					srv.Control(func(r zktest.Request) zktest.Fault {
						mu.Lock()
						defer mu.Unlock()
						if r.Seq == seq {
							hit = true
							return fault
						}
						return zktest.Pass
					})
					n := zk.Node{Path: fmt.Sprintf("/dir%d/a/b/c", seq), Data: []byte("mine"), Mode: mode}
					if mode == zk.PersistentTTL {
						n.TTL = time.Hour
					}
					made, err := c.CreateAll(t.Context(), n, zk.Parents{Mode: zk.Container})
					if err != nil {
						t.Fatalf("request %d: %v", seq, err)
					}
					stat, exists, err := c.Exists(t.Context(), n.Path)
					if !exists || err != nil || made.Stat != stat {
						t.Errorf("request %d: got %+v, want %+v, %v", seq, made.Stat, stat, err)
					}
					mu.Lock()
					over := !hit
					mu.Unlock()
					if over {
						return
					}
				}
			})
		}
	}
}

// A consumer deletes the node between the creation whose reply is lost and the look for it.
//
// Promise: 18
func TestCreateAllDoesNotCreateTwiceWhatAConsumerHasDeleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv, other := runWithSideDoor(t)
	_, err := other.Create(ctx, "/jobs", nil, zk.Persistent)
	must(t, err)
	sess, err := other.Session(ctx)
	must(t, err)
	made, err := sess.WatchRecursive(ctx, "/jobs")
	must(t, err)
	created := 0
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate && r.Nth == 1 {
			return zktest.DropReply
		}
		if r.Op == zktest.OpDelete { // behind it CreateAll looks
			if e, err := made.Next(ctx); err != nil || e.Type != zk.EventCreated {
				t.Errorf("got %v, %v, want that the node was created", e, err)
			}
			created++
			if err := other.Delete(ctx, "/jobs/a", -1); err != nil {
				t.Error(err)
			}
		}
		return zktest.Pass
	})
	c := openClient(t, srv)
	_, err = c.CreateAll(ctx, zk.Node{Path: "/jobs/a"}, zk.Parents{})
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
	if _, exists, err := other.Exists(ctx, "/jobs/a"); exists || err != nil || created != 1 {
		t.Errorf("got exists %t, %v, created %d times; want that it is not created again", exists, err, created)
	}
}

// runWithSideDoor starts a server, and returns a client that reaches it around the link: control functions may use it.
func runWithSideDoor(t *testing.T) (*zktest.Server, *zk.Client) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	srv := zktest.Run(t, zktest.With(func(c *server.Config) { c.Listeners = append(c.Listeners, ln) }))
	client, err := zk.Open(t.Context(), zk.Config{Servers: ln.Addr().String()})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return srv, client
}

// Promise: 18
func TestCreateAllTellsAnotherClientsNodeFromItsOwn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		early   bool // the other client creates the node before the call
		fresh   bool // the session has had no reply before
		idle    bool // it has had its last reply before the other client created the node
		mode    zk.Mode
		data    string
		changed bool
		want    error
		outcome zk.Outcome
	}{
		"an old node": {early: true, data: "mine", want: zk.NodeExists, outcome: zk.Refused},
		"an old node, and a new session": {
			early: true, fresh: true, data: "mine", want: zk.NodeExists, outcome: zk.Refused,
		},
		"an old node, and a session that was idle": {
			early: true, idle: true, data: "mine", want: zk.NodeExists, outcome: zk.Refused,
		},
		"other data":        {data: "theirs", want: zk.NodeExists, outcome: zk.Refused},
		"another mode":      {mode: zk.Ephemeral, data: "mine", want: zk.NodeExists, outcome: zk.Refused},
		"changed meanwhile": {data: "mine", changed: true, want: zk.ErrConnectionLost, outcome: zk.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			srv, other := runWithSideDoor(t)
			c := openClient(t, srv)
			create := func() {
				_, err := other.Create(ctx, "/n", []byte(row.data), row.mode)
				must(t, err)
				if row.changed {
					_, err := other.Set(ctx, "/n", []byte("mine"), -1)
					must(t, err)
				}
			}
			s, err := c.Session(ctx)
			must(t, err)
			if row.idle {
				must(t, s.Sync(ctx, "/"))
			}
			if row.early {
				create()
			}
			if !row.fresh && !row.idle {
				must(t, s.Sync(ctx, "/"))
			}
			var mu sync.Mutex
			first := true
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				ours := first && r.Op == zktest.OpCreate
				first = first && !ours
				mu.Unlock()
				if ours {
					if !row.early {
						create()
					}
					return zktest.Refuse
				}
				return zktest.Pass
			})
			_, err = c.CreateAll(ctx, zk.Node{Path: "/n", Data: []byte("mine")}, zk.Parents{})
			wantFailure(t, err, row.want, row.outcome)
		})
	}
}

// Promise: 18
func TestCreateAllOfASequentialNodeReportsALostReply(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	srv.Control(once(zktest.OpCreate, zktest.DropReply))
	_, err := c.CreateAll(t.Context(), zk.Node{Path: "/n-", Mode: zk.PersistentSequential}, zk.Parents{})
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
}

// Promise: 18
func TestCreateAllBearsParentsThatAreDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv, other := runWithSideDoor(t)
	c := openClient(t, srv)
	_, err := c.CreateAll(ctx, zk.Node{Path: "/a/b"}, zk.Parents{})
	must(t, err)
	var mu sync.Mutex
	rounds := 5
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpCreate || r.Path != "/a/b/c" {
			return zktest.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if rounds--; rounds >= 0 {
			if _, err := other.DeleteAll(ctx, "/a"); err != nil {
				t.Error(err)
			}
		}
		return zktest.Pass
	})
	_, err = c.CreateAll(ctx, zk.Node{Path: "/a/b/c"}, zk.Parents{Mode: zk.Container})
	must(t, err)
	mu.Lock()
	rounds = 1 << 20
	mu.Unlock()
	must(t, c.Delete(ctx, "/a/b/c", -1))
	_, err = c.CreateAll(ctx, zk.Node{Path: "/a/b/c"}, zk.Parents{})
	wantFailure(t, err, zk.NoNode, zk.Refused)
}

// A trap is a context that calls f when a request waits for its reply, once it is set.
type trap struct {
	context.Context //nolint:containedctx // it is one
	set             atomic.Bool
	f               func()
}

func (c *trap) Done() <-chan struct{} {
	if c.set.CompareAndSwap(true, false) {
		c.f()
	}
	return c.Context.Done()
}

// The reply to the creation is lost, and the end comes while its repetition waits for a connection.
//
// Promise: 18
func TestCreateAllIsUnknownIfItCannotFindOutWhatALostReplyHasDone(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"context", "session"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waits := &trap{Context: ctx}
			cfg := srv.Config(10 * time.Second)
			down := make(chan struct{})
			var first sync.Once
			cfg.Hooks.Disconnected = func(string, error) {
				first.Do(func() {
					srv.Cut()
					close(down)
				})
			}
			cfg.Hooks.Request = func(_ context.Context, r zk.RequestDone) {
				waits.set.Store(r.Op == "create" && errors.Is(r.Err, zk.ErrConnectionLost))
			}
			c, err := zk.Open(ctx, cfg)
			must(t, err)
			defer c.Close()
			s, err := c.Session(ctx)
			must(t, err)
			want := zk.ErrExpired
			waits.f = func() {
				<-down
				srv.ExpireSession(s.ID())
				srv.Heal()
			}
			if end == "context" {
				waits.f, want = cancel, context.Canceled
			}
			srv.Control(once(zktest.OpCreate, zktest.DropReply))
			_, err = c.CreateAll(waits, zk.Node{Path: "/n"}, zk.Parents{})
			wantFailure(t, err, want, zk.Unknown)
		})
	}
}

// Promise: 18
func TestCreateAllTellsANodeOfTheSameSessionThatWasChangedFromItsOwn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	cfg := srv.Config(10 * time.Second)
	var s *zk.Session
	var first sync.Once
	cfg.Hooks.Request = func(_ context.Context, r zk.RequestDone) {
		if errors.Is(r.Err, zk.ErrConnectionLost) {
			first.Do(func() { // another goroutine is quicker than the repetition
				_, err := s.Create(ctx, "/n", []byte("theirs"), zk.Ephemeral)
				must(t, err)
				_, err = s.Set(ctx, "/n", []byte("changed"), -1)
				must(t, err)
			})
		}
	}
	c, err := zk.Open(ctx, cfg)
	must(t, err)
	defer c.Close()
	s, err = c.Session(ctx)
	must(t, err)
	srv.Control(once(zktest.OpCreate, zktest.Refuse))
	_, err = c.CreateAll(ctx, zk.Node{Path: "/n", Data: []byte("mine"), Mode: zk.Ephemeral}, zk.Parents{})
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
}

// The server closes the connection on such a request, however often it comes.
//
// Promise: 18
func TestRequestThatIsTooLargeIsNotRepeated(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := openClient(t, zktest.Run(t))
	_, err := c.CreateAll(ctx, zk.Node{Path: "/a/b", Data: make([]byte, 2<<20)}, zk.Parents{})
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
	reads := slices.Repeat([]zk.ReadOp{zk.GetOp("/" + strings.Repeat("x", 1000))}, 1100)
	_, err = c.MultiRead(ctx, reads...)
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
}

// Another client creates a parent at the same time, and then deletes all of them.
//
// Promise: 18
func TestCreateAllBearsAParentThatIsCreatedAndDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv, other := runWithSideDoor(t)
	c := openClient(t, srv)
	var mu sync.Mutex
	asked := make(map[string]int)
	srv.Control(func(r zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Op == zktest.OpCreate {
			asked[r.Path]++
		}
		switch {
		case r.Op != zktest.OpCreate || asked[r.Path] != 2:
		case r.Path == "/a/b":
			if _, err := other.Create(ctx, "/a/b", nil, zk.Persistent); err != nil {
				t.Error(err)
			}
		case r.Path == "/a/b/c":
			if n, err := other.DeleteAll(ctx, "/a"); n != 2 || err != nil {
				t.Error(n, err)
			}
		}
		return zktest.Pass
	})
	_, err := c.CreateAll(ctx, zk.Node{Path: "/a/b/c"}, zk.Parents{})
	must(t, err)
}

// Not even the root needs to be readable, also for the first request of a session.
func TestCreateAllNeedsNoRightToTheRoot(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	_, err := c.Create(t.Context(), "/apps", nil, zk.Persistent)
	must(t, err)
	_, err = c.SetACL(t.Context(), "/", []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "a:b"}}}, -1)
	must(t, err)
	_, err = openClient(t, srv).CreateAll(t.Context(), zk.Node{Path: "/apps/x/y"}, zk.Parents{})
	must(t, err)
}

// A partition may deliver the creation after CreateAll has found no node behind a write of its own.
//
// Promise: 18
func TestCreateAllKnowsItsNodeThatIsCreatedLate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		second  zktest.Fault
		data    string // of the node
		want    error
		outcome zk.Outcome
	}{
		"its own":       {zktest.Pass, "mine", nil, 0},
		"another":       {zktest.Pass, "theirs", zk.NodeExists, zk.Refused},
		"still to come": {zktest.Answer(zk.NoAuth), "mine", zk.NoAuth, zk.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, other := runWithSideDoor(t)
			c := openClient(t, srv)
			srv.Control(func(r zktest.Request) zktest.Fault {
				switch {
				case r.Op != zktest.OpCreate:
					return zktest.Pass
				case r.Nth == 1:
					return zktest.Refuse
				}
				if row.second == zktest.Pass {
					if _, err := other.Create(t.Context(), "/n", []byte(row.data), zk.Persistent); err != nil {
						t.Error(err)
					}
				}
				return row.second
			})
			made, err := c.CreateAll(t.Context(), zk.Node{Path: "/n", Data: []byte("mine")}, zk.Parents{})
			if row.want != nil {
				wantFailure(t, err, row.want, row.outcome)
				return
			}
			must(t, err)
			if made.Path != "/n" || made.Stat.Czxid == 0 {
				t.Errorf("got %+v, want the node", made)
			}
		})
	}
}

// Each request in turn is refused for now, also behind a lost reply.
//
// Promise: 18
func TestCreateAllAndDeleteAllAskAgainWhatIsRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]zktest.Fault{"refused": zktest.Pass, "reply lost": zktest.DropReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := srv.Client(t, 20*time.Second)
				for seq, hit := 1, true; hit; seq++ {
					hit = false
					create := 0
					srv.Control(func(r zktest.Request) zktest.Fault {
						if r.Op == zktest.OpCreate && r.Path == "/a/b/c" {
							if create++; create == 2 { // with its parents
								return first
							}
						}
						if r.Op != zktest.OpConnect && (r.Seq == seq || r.Seq == seq+1) {
							hit = true
							return zktest.Answer(zk.ThrottledOp)
						}
						return zktest.Pass
					})
					_, err := c.CreateAll(t.Context(), zk.Node{Path: "/a/b/c"}, zk.Parents{})
					must(t, err)
					_, err = c.DeleteAll(t.Context(), "/a")
					must(t, err)
					srv.Control(nil) // no call runs any more
				}
			})
		})
	}
}
