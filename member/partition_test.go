package member_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A board notes who works on which item. It fails the test when two do.
type board struct {
	t       *testing.T
	mu      sync.Mutex
	owner   map[string]string
	token   map[string]zk.Token
	ends    map[string]int // calls that have returned, by member
	changed chan struct{}
}

func newBoard(t *testing.T) *board {
	t.Helper()
	return &board{
		t: t, owner: map[string]string{}, token: map[string]zk.Token{}, ends: map[string]int{},
		changed: make(chan struct{}, 1),
	}
}

func (b *board) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// work works on an item until it must go.
func (b *board) work(id string) func(context.Context, *member.Share) error {
	return func(ctx context.Context, s *member.Share) error {
		b.note(func() {
			if other := b.owner[s.Item()]; other != "" {
				b.t.Errorf("%s works on %s, and so does %s", id, s.Item(), other)
			}
			if s.Token() <= b.token[s.Item()] {
				b.t.Errorf("%s: token %d after %d", s.Item(), s.Token(), b.token[s.Item()])
			}
			b.owner[s.Item()], b.token[s.Item()] = id, s.Token()
		})
		<-ctx.Done()
		b.note(func() {
			delete(b.owner, s.Item())
			b.ends[id]++
		})
		return context.Cause(ctx)
	}
}

// await waits until what is on the board is as f wants it.
func (b *board) await(f func() bool) {
	b.t.Helper()
	ctx := within(b.t)
	for {
		b.mu.Lock()
		ok := f()
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			b.t.Fatalf("owners: %v", b.owner)
		}
	}
}

// counts returns how many items each member has. The caller is a function that await calls.
func (b *board) counts() map[string]int {
	n := map[string]int{}
	for _, id := range b.owner {
		n[id]++
	}
	return n
}

// A runner is a member that runs.
type runner struct {
	*member.Partitioner
	client *zk.Client
	stop   context.CancelFunc
	done   chan error
}

func (b *board) member(srv *zktest.Server, id string, items []string, cfg member.PartitionerConfig) *runner {
	b.t.Helper()
	if cfg.Settle == 0 {
		cfg.Settle = 20 * time.Millisecond
	}
	client := srv.Client(b.t, time.Minute)
	p, err := member.NewPartitioner(client, "/app/share", id, items, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &runner{Partitioner: p, client: client, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- p.Run(ctx, b.work(id)) }()
	b.t.Cleanup(func() { r.leave(b.t) })
	return r
}

// leave stops the member and waits until its Run has returned.
func (r *runner) leave(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		r.done <- err
	case <-time.After(limit):
		t.Error("Run does not return")
	}
}

func items(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("item-%03d", i)
	}
	return list
}

// noneLeft fails the test if a node of a member or of a lock is left.
func noneLeft(t *testing.T, srv *zktest.Server, n int) {
	t.Helper()
	srv.NoNodes(t, "/app/share/party")
	for _, item := range items(n) {
		srv.NoNodes(t, "/app/share/locks/"+item)
	}
}

var splits = []member.Split{member.Even, member.SetPartitioner}

// Promise: 20
func TestItemsAreSharedAndPassOnWhenMembersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, split := range splits {
		t.Run(split.String(), func(t *testing.T) {
			t.Parallel()
			srv, b := server(t), newBoard(t)
			cfg := member.PartitionerConfig{Split: split}
			one := b.member(srv, "a", items(9), cfg)
			b.await(func() bool { return b.counts()["a"] == 9 })
			b.member(srv, "b", items(9), cfg)
			b.member(srv, "c", items(9), cfg)
			b.await(func() bool { n := b.counts(); return n["a"] == 3 && n["b"] == 3 && n["c"] == 3 })
			if got := len(one.Owned()); got != 3 {
				t.Errorf("Owned tells of %d items", got)
			}
			one.leave(t)
			b.await(func() bool { return len(b.owner) == 9 && b.counts()["a"] == 0 })
		})
	}
}

// Promise: 20
func TestOnlyMovedItemsStop(t *testing.T) {
	t.Parallel()
	srv, b := server(t), newBoard(t)
	cfg := member.PartitionerConfig{}
	all := map[string]*runner{}
	for _, id := range []string{"a", "b", "c", "d"} {
		all[id] = b.member(srv, id, items(400), cfg)
	}
	// The shares are steady when each member owns what it is to own of four.
	b.await(func() bool {
		n := b.counts()
		return len(b.owner) == 400 && len(n) == 4 && max(n["a"], n["b"], n["c"], n["d"]) <= 110
	})
	b.mu.Lock()
	before, ends := b.counts()["a"], b.ends["b"]+b.ends["c"]+b.ends["d"]
	b.mu.Unlock()
	all["a"].leave(t)
	b.await(func() bool { return len(b.owner) == 400 && b.counts()["a"] == 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := b.ends["b"] + b.ends["c"] + b.ends["d"] - ends; more > before/5 {
		t.Errorf("work on %d items of others ended when a member of %d left", more, before)
	}
}

// Promise: 20
func TestItemPassesOnOnlyWhenItsFunctionHasReturned(t *testing.T) {
	t.Parallel()
	srv, b := server(t), newBoard(t)
	client := srv.Client(t, time.Minute)
	p, err := member.NewPartitioner(client, "/app/share", "slow", items(1),
		member.PartitionerConfig{Settle: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	begun, told, finish, done := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(ctx context.Context, s *member.Share) error {
			b.note(func() { b.owner[s.Item()], b.token[s.Item()] = "slow", s.Token() })
			close(begun)
			<-ctx.Done()
			close(told)
			<-finish
			b.note(func() { delete(b.owner, s.Item()) })
			return nil
		})
	}()
	<-begun
	b.member(srv, "next", items(1), member.PartitionerConfig{})
	stop()
	<-told
	// The next one stands in line, behind the one that still works.
	sess := srv.Session(t, time.Minute)
	for {
		names, _, w, err := sess.ChildrenW(within(t), "/app/share/locks/item-000")
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 2 {
			w.Close()
			break
		}
		if _, err := w.Next(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	close(finish)
	b.await(func() bool { return b.owner["item-000"] == "next" })
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Promise: 20
func TestItemsComeBackUnderTheNextSession(t *testing.T) {
	t.Parallel()
	for _, split := range splits {
		srv, b := server(t), newBoard(t)
		r := b.member(srv, "a", items(5), member.PartitionerConfig{Split: split})
		b.await(func() bool { return len(b.owner) == 5 })
		sess, err := r.client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.ExpireSession(sess.ID())
		b.await(func() bool { return b.ends["a"] == 5 && len(b.owner) == 5 })
	}
}

// Promise: 20
func TestSetItemsMovesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	srv, b := server(t), newBoard(t)
	r := b.member(srv, "a", items(5), member.PartitionerConfig{})
	b.await(func() bool { return len(b.owner) == 5 })
	if err := r.SetItems(append(items(4), "new")); err != nil {
		t.Fatal(err)
	}
	b.await(func() bool { return len(b.owner) == 5 && b.owner["new"] == "a" && b.owner["item-004"] == "" })
	b.await(func() bool { return b.ends["a"] == 1 })
	if err := r.SetItems([]string{"a/b"}); err == nil {
		t.Error("an item with a slash is accepted")
	}
}

// Promise: 20
func TestItemThatIsGivenTwiceIsOneItem(t *testing.T) {
	t.Parallel()
	srv, b := server(t), newBoard(t)
	r := b.member(srv, "a", []string{"x", "y", "x"}, member.PartitionerConfig{})
	b.await(func() bool { return len(b.owner) == 2 })
	if got := r.Items(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("items %q", got)
	}
	r.leave(t)
	srv.NoNodes(t, "/app/share/locks/x")
}

// kz#392: members whose sets differ, and a lock that another program holds, keep nothing else waiting.
//
// Promise: 20
func TestDifferentSetsAndForeignLocksHinderOnlyTheirItems(t *testing.T) {
	t.Parallel()
	srv, b := server(t), newBoard(t)
	sess := srv.Session(t, time.Minute)
	for _, p := range []string{"/app", "/app/share", "/app/share/locks", "/app/share/locks/item-001"} {
		if _, err := sess.Create(t.Context(), p, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	foreign := "/app/share/locks/item-001/0123456789abcdef0123456789abcdef__lock__"
	made, err := sess.CreateNode(t.Context(), zk.Node{Path: foreign, Mode: zk.EphemeralSequential})
	if err != nil {
		t.Fatal(err)
	}
	b.member(srv, "a", items(6), member.PartitionerConfig{})
	b.member(srv, "b", items(3), member.PartitionerConfig{})
	b.await(func() bool {
		return b.owner["item-000"] != "" && b.owner["item-002"] != "" && b.owner["item-001"] == ""
	})
	if err := sess.Delete(t.Context(), made.Path, -1); err != nil {
		t.Fatal(err)
	}
	b.await(func() bool { return b.owner["item-001"] != "" })
}

// An item that goes, and is to come back before its function has returned, comes back after that.
//
// Promise: 20
func TestItemThatIsWantedAgainMeanwhileComesBack(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/share", "a", []string{"x"},
			member.PartitionerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		calls, proceed := make(chan *member.Share), make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- p.Run(ctx, func(ctx context.Context, s *member.Share) error {
				calls <- s
				<-ctx.Done()
				<-proceed
				return nil
			})
		}()
		first := <-calls
		if err := p.SetItems(nil); err != nil {
			t.Fatal(err)
		}
		<-first.Context().Done()
		if err := p.SetItems([]string{"x"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // in the bubble no time passes; the members have settled
		close(proceed)
		select {
		case <-calls:
		case <-time.After(time.Hour):
			t.Error("the item has not come back")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

// Items move also if members or items never settle.
//
// Promise: 20
func TestChangesThatGoOnDelayItemsForAWhileOnly(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/share", "a", nil, member.PartitionerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- p.Run(ctx, func(ctx context.Context, _ *member.Share) error {
				<-ctx.Done()
				return nil
			})
		}()
		for i := range 30 {
			if owned := p.Owned(); i < 10 && len(owned) > 0 || i > 11 && len(owned) == 0 {
				t.Errorf("owns %q after changes in %d times Settle", owned, i)
			}
			for j := range 2 { // in each Settle
				if err := p.SetItems([]string{"x", fmt.Sprint("item-", 2*i+j)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second / 2) // in the bubble no time passes
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

func TestLongestSettleMovesNothing(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := member.PartitionerConfig{Settle: math.MaxInt64}
		p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/share", "a", items(3), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		err = p.Run(ctx, func(context.Context, *member.Share) error { return errors.New("an item moved") })
		if err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

// Promise: 20
func TestErrorOfTheFunctionEndsRun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/app/share", "a", items(20),
		member.PartitionerConfig{Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err = p.Run(within(t), func(ctx context.Context, s *member.Share) error {
		if s.Item() == "item-007" {
			return broken
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run: %v", err)
	}
	if got := p.Owned(); len(got) > 0 {
		t.Errorf("owns %v", got)
	}
}

func TestItemThatIsLostIsNotOwnedWhileItsFunctionGoesOn(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	p, err := member.NewPartitioner(client, "/app/share", "a", items(1),
		member.PartitionerConfig{Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(within(t))
	shares, finish, done := make(chan *member.Share, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(_ context.Context, s *member.Share) error {
			shares <- s
			<-finish
			return nil
		})
	}()
	s := <-shares
	if got := p.Owned(); len(got) != 1 {
		t.Errorf("owns %q", got)
	}
	srv.ExpireSession(s.Session().ID())
	<-s.Context().Done()
	if got := p.Owned(); len(got) > 0 {
		t.Errorf("owns %q after the session has ended", got)
	}
	stop()
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Promise: 20
func TestItemWhoseFunctionHasReturnedStays(t *testing.T) {
	t.Parallel()
	srv := server(t)
	calls, lost := make(chan string, 10), make(chan error, 10)
	p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/app/share", "a", items(1), member.PartitionerConfig{
		Settle: time.Millisecond,
		Hooks:  member.PartitionerHooks{Lost: func(_ string, cause, _ error) { lost <- cause }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(within(t))
	done := make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(_ context.Context, s *member.Share) error { calls <- s.Path(); return nil })
	}()
	node := <-calls
	sess := srv.Session(t, time.Minute)
	if _, there, err := sess.Exists(t.Context(), node); !there || err != nil {
		t.Fatalf("the lock is gone: %v", err)
	}
	if err := p.Run(t.Context(), nil); !errors.Is(err, member.ErrRuns) {
		t.Errorf("a second Run: %v", err)
	}
	if err := sess.Delete(t.Context(), node, -1); err != nil { // an operator
		t.Fatal(err)
	}
	if cause := <-lost; !errors.Is(cause, member.ErrDeleted) {
		t.Errorf("lost by %v", cause)
	}
	<-calls
	enough := errors.New("enough")
	stop(enough)
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	noneLeft(t, srv, 1)
}

// Replies and connections are lost while locks are taken; nothing stays behind.
//
// Promise: 20
func TestFaultsWhileItemsAreTaken(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore, zktest.CutAfter} {
		for nth := 1; nth <= 4; nth++ {
			srv, b := server(t), newBoard(t)
			var mu sync.Mutex
			creates := 0
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.Op != zktest.OpCreate {
					return zktest.Pass
				}
				if creates++; creates%(nth+1) == 0 && creates < 12 {
					return fault
				}
				return zktest.Pass
			})
			one := b.member(srv, "a", items(6), member.PartitionerConfig{})
			two := b.member(srv, "b", items(6), member.PartitionerConfig{})
			b.await(func() bool { n := b.counts(); return n["a"] == 3 && n["b"] == 3 })
			one.leave(t)
			two.leave(t)
			noneLeft(t, srv, 6)
		}
	}
}

func TestBadInputOfPartitionersIsRefused(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	for name, f := range map[string]func() (*member.Partitioner, error){
		"no client": func() (*member.Partitioner, error) {
			return member.NewPartitioner(nil, "/x", "a", nil, member.PartitionerConfig{})
		},
		"the root": func() (*member.Partitioner, error) {
			return member.NewPartitioner(client, "/", "a", nil, member.PartitionerConfig{})
		},
		"no id": func() (*member.Partitioner, error) {
			return member.NewPartitioner(client, "/x", "", nil, member.PartitionerConfig{})
		},
		"an empty item": func() (*member.Partitioner, error) {
			return member.NewPartitioner(client, "/x", "a", []string{""}, member.PartitionerConfig{})
		},
		"a split": func() (*member.Partitioner, error) {
			return member.NewPartitioner(client, "/x", "a", nil, member.PartitionerConfig{Split: 7})
		},
		"a time": func() (*member.Partitioner, error) {
			return member.NewPartitioner(client, "/x", "a", nil, member.PartitionerConfig{Settle: -1})
		},
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A right that is missing at one moment, at one item or to list the members, ends neither Run nor work on other items.
//
// Promise: 20
func TestPartitionerOutlivesARefusal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		const party, lock = "/app/share/party", "/app/share/locks/item-001"
		sess := srv.Session(t, time.Minute)
		for _, path := range []string{"/app", "/app/share", party, "/app/share/locks", lock} {
			if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		unlisted := []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		setACL(t, sess, party, unlisted)
		setACL(t, sess, lock, closed)
		var mu sync.Mutex
		told := map[string]bool{}
		cfg := member.PartitionerConfig{Hooks: member.PartitionerHooks{Refused: func(item string, err error) {
			mu.Lock()
			defer mu.Unlock()
			told[item] = errors.Is(err, zk.NoAuth)
		}}}
		b := newBoard(t)
		r := b.member(srv, "a", items(3), cfg)
		wantOwned := func(want ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := r.Owned(); !slices.Equal(got, want) {
				t.Errorf("got items %q, want %q", got, want)
			}
		}
		wantOwned()
		setACL(t, sess, party, zk.OpenACL())
		wantOwned("item-000", "item-002")
		setACL(t, sess, lock, zk.OpenACL())
		wantOwned(items(3)...)
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 2 || !told[""] || !told["item-001"] || b.ends["a"] != 0 {
			t.Errorf("was told of %v, and %d ends, want of the members and one item, and none", told, b.ends["a"])
		}
	})
}

// In a container that was removed, any client could make the path its own.
func TestParentsOfItemsLastIfTheyHaveAnACL(t *testing.T) {
	t.Parallel()
	const container = 19
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, acl := range [][]zk.ACL{nil, zk.OpenACL()} {
			var mu sync.Mutex
			made := 0
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.Code == container {
					made++
				}
				return zktest.Pass
			})
			b := newBoard(t)
			r := b.member(srv, "a", items(20), member.PartitionerConfig{ACL: acl})
			b.await(func() bool { return len(b.owner) == 20 })
			r.leave(t)
			time.Sleep(10 * time.Minute) // containers go
			mu.Lock()
			if got := made > 0; got != (acl == nil) {
				t.Errorf("list %v: made %d containers", acl, made)
			}
			mu.Unlock()
		}
	})
}

// As t.FailNow does in work.
func TestRunEndsAndItemsPassOnWhenWorkLeavesByGoexit(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		p, err := member.NewPartitioner(srv.Client(t, time.Minute), "/share", "a", []string{"x", "y"},
			member.PartitionerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- p.Run(t.Context(), func(context.Context, *member.Share) error {
				runtime.Goexit()
				return nil
			})
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("got no error, want that work has not returned")
			}
		case <-time.After(time.Hour):
			t.Fatal("Run has not ended")
		}
		srv.NoNodes(t, "/share/party")
		srv.NoNodes(t, "/share/locks/x")
		srv.NoNodes(t, "/share/locks/y")
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}
