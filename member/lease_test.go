package member_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A clock shows the time that it was set to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)} }

func lease(t *testing.T, client *zk.Client, holder string, count int, c *clock) *member.Lease {
	t.Helper()
	l, err := member.NewLease(client, "/app/lease", holder, time.Minute, member.LeaseConfig{Count: count, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustTake(t *testing.T, l *member.Lease) member.Leased {
	t.Helper()
	got, err := l.Take(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func refused(t *testing.T, l *member.Lease) {
	t.Helper()
	if got, err := l.Take(within(t)); !errors.Is(err, member.ErrLeased) {
		t.Fatalf("%v, %v", got, err)
	}
}

// Promise: 20
func TestLeaseIsStoredAsKazooDoes(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	sess := srv.Session(t, time.Minute)
	mustTake(t, lease(t, srv.Client(t, time.Minute), "a\"<\\ü\U0001F600\n", 0, c))
	want := `{"version": 1, "holder": "a\"<\\\u00fc\ud83d\ude00\n", "end": "2026-01-02T03:05:05"}`
	if data, stat := mustGet(t, sess, "/app/lease/lease_holder"); data != want || stat.EphemeralOwner != 0 {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

// Promise: 20
func TestLeaseIsHeldUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	a := lease(t, srv.Client(t, time.Minute), "a", 0, c)
	b := lease(t, srv.Client(t, time.Minute), "b", 0, c)
	if got, want := mustTake(t, a).Until, c.Now().Add(time.Minute).Truncate(time.Second); !got.Equal(want) {
		t.Errorf("until %v, want %v", got, want)
	}
	refused(t, b)
	c.add(50 * time.Second)
	mustTake(t, a) // renewed
	c.add(50 * time.Second)
	refused(t, b)
	c.add(10 * time.Second)
	mustTake(t, b)
	refused(t, a)
	if err := a.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	refused(t, a)
	if err := b.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	mustTake(t, a)
}

// Kazoo's MultiNonBlockingLease takes the first that is free, although it has a later one.
//
// Promise: 20
func TestHolderNeverHasTwoLeases(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	client := srv.Client(t, time.Minute)
	a, b, third := lease(t, client, "a", 2, c), lease(t, client, "b", 2, c), lease(t, client, "c", 2, c)
	if got := mustTake(t, a); got.Path != "/app/lease/0" {
		t.Errorf("%v", got)
	}
	if got := mustTake(t, b); got.Path != "/app/lease/1" {
		t.Errorf("%v", got)
	}
	refused(t, third)
	if err := a.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := mustTake(t, b); got.Path != "/app/lease/1" {
		t.Errorf("renewed at %v", got)
	}
	// A program of kazoo's takes another one for the same holder.
	sess := srv.Session(t, time.Minute)
	theirs := []byte(`{"version": 1, "holder": "b", "end": "2026-01-02T03:05:05"}`)
	if _, err := sess.Create(t.Context(), "/app/lease/0/lease_holder", theirs, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	kept := mustTake(t, b)
	if kept.Path != "/app/lease/0" {
		t.Errorf("%v", kept)
	}
	if got := mustTake(t, third); got.Path != "/app/lease/1" {
		t.Errorf("%v", got)
	}
}

// Who comes when others have all leases costs a few writes, however many leases there are.
func TestRefusalOfManyLeasesIsCheap(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	const n = 30
	client := srv.Client(t, time.Minute)
	for i := range n {
		mustTake(t, lease(t, client, fmt.Sprint("holder ", i), n, c))
	}
	late := lease(t, srv.Client(t, time.Minute), "late", n, c)
	before := srv.Traffic()
	refused(t, late)
	after := srv.Traffic()
	writes := 0
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpSync} {
		writes += after.Requests[op] - before.Requests[op]
	}
	if writes > 10 {
		t.Errorf("it took %d writes", writes)
	}
	c.add(time.Hour)
	mustTake(t, late)
}

// Promise: 20
func TestCallsForOneHolderTakeOneLease(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	got := make(chan string, 8)
	for range cap(got) {
		l := lease(t, srv.Client(t, time.Minute), "a", 5, c)
		go func() {
			leased, err := l.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- leased.Path
		}()
	}
	for range cap(got) {
		if p := <-got; p != "/app/lease/0" {
			t.Errorf("took %s", p)
		}
	}
}

// Promise: 20
func TestUnknownFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	sess := srv.Session(t, time.Minute)
	l := lease(t, srv.Client(t, time.Minute), "a", 0, c)
	mustTake(t, l)
	for _, data := range []string{
		`{"version": 2, "holder": "a", "end": "2020-01-01T00:00:00"}`, "x",
		`{"version": 1, "holder": "a", "end": "yesterday"}`,
	} {
		if _, err := sess.Set(t.Context(), "/app/lease/lease_holder", []byte(data), -1); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Take(within(t)); !errors.Is(err, member.ErrLeaseFormat) {
			t.Errorf("%v", err)
		}
		if now, _ := mustGet(t, sess, "/app/lease/lease_holder"); now != data {
			t.Errorf("%s became %s", data, now)
		}
	}
}

// holdLease holds a session's transactions that write or delete a lease, and tells when the first one is there.
func holdLease(t *testing.T, srv *zktest.Server, id int64) (arrived <-chan struct{}, release func()) {
	t.Helper()
	reached := make(chan struct{})
	held, release := context.WithCancel(t.Context())
	var once sync.Once
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != id || r.Op != zktest.OpMulti {
			return zktest.Pass
		}
		if last := r.Parts[len(r.Parts)-1]; !strings.HasSuffix(last.Path, "/lease_holder") {
			return zktest.Pass
		}
		once.Do(func() { close(reached) })
		return zktest.Until(held)
	})
	return reached, release
}

// begin takes a lease in the background.
func begin(t *testing.T, l *member.Lease) <-chan error {
	t.Helper()
	taken := make(chan error, 1)
	go func() {
		_, err := l.Take(within(t))
		taken <- err
	}()
	return taken
}

// deleteLocks deletes the nodes of the locks at a path, as an operator may.
func deleteLocks(t *testing.T, sess *zk.Session, path string) {
	t.Helper()
	children, _, err := sess.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range children {
		if !strings.HasPrefix(name, "_c_") {
			continue
		}
		if err := sess.Delete(t.Context(), path+"/"+name, -1); err != nil && !errors.Is(err, zk.NoNode) {
			t.Fatal(err)
		}
	}
}

func sessionOf(t *testing.T, client *zk.Client) *zk.Session {
	t.Helper()
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// The transaction of a holder is on its way when its lock is lost, and another one takes the lease.
//
// Promise: 20
func TestLeaseIsNotTakenLateByAHolderWhoseLockIsGone(t *testing.T) {
	t.Parallel()
	for _, expired := range []bool{false, true} { // or there is no lease
		srv, c := server(t), newClock()
		sess := srv.Session(t, time.Minute)
		b := lease(t, srv.Client(t, time.Minute), "b", 0, c)
		if expired {
			mustTake(t, b)
			c.add(time.Hour)
		}
		client := srv.Client(t, time.Minute)
		arrived, release := holdLease(t, srv, sessionOf(t, client).ID())
		taken := begin(t, lease(t, client, "a", 0, c))
		<-arrived
		deleteLocks(t, sess, "/app/lease")
		mustTake(t, b)
		release()
		if err := <-taken; !errors.Is(err, member.ErrLeased) {
			t.Errorf("expired=%t: %v", expired, err)
		}
		if data, _ := mustGet(t, sess, "/app/lease/lease_holder"); !strings.Contains(data, `"holder": "b"`) {
			t.Errorf("expired=%t: %s", expired, data)
		}
	}
}

// The transaction of a search is on its way when the lock of the search is lost, and another program with the same
// holder takes another lease.
//
// Promise: 20
func TestLeaseIsNotTakenLateByASearchWhoseLockIsGone(t *testing.T) {
	t.Parallel()
	srv, c := server(t), newClock()
	sess := srv.Session(t, time.Minute)
	mustTake(t, lease(t, srv.Client(t, time.Minute), "b", 2, c))
	client := srv.Client(t, time.Minute)
	arrived, release := holdLease(t, srv, sessionOf(t, client).ID())
	taken := begin(t, lease(t, client, "a", 2, c)) // finds that the second lease is free
	<-arrived
	deleteLocks(t, sess, "/app/lease")
	deleteLocks(t, sess, "/app/lease/0") // its removal may wait behind what is held
	c.add(time.Hour)                     // b's lease is over
	if got := mustTake(t, lease(t, srv.Client(t, time.Minute), "a", 2, c)); got.Path != "/app/lease/0" {
		t.Fatalf("took %s", got.Path)
	}
	release()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if _, there, err := sess.Exists(t.Context(), "/app/lease/1/lease_holder"); there || err != nil {
		t.Errorf("the holder has two leases: %v, %v", there, err)
	}
}

// Kazoo's programs write the lease without a check that they have its lock still.
//
// Promise: 20
func TestLeaseThatKazooHasTakenMeanwhileIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, expired := range []bool{false, true} { // or there is no lease
		srv, c := server(t), newClock()
		sess := srv.Session(t, time.Minute)
		if expired {
			mustTake(t, lease(t, srv.Client(t, time.Minute), "b", 0, c))
			c.add(time.Hour)
		}
		client := srv.Client(t, time.Minute)
		arrived, release := holdLease(t, srv, sessionOf(t, client).ID())
		taken := begin(t, lease(t, client, "a", 0, c))
		<-arrived
		theirs := `{"version": 1, "holder": "k", "end": "2026-01-02T05:05:05"}`
		write := func() error {
			_, err := sess.Create(t.Context(), "/app/lease/lease_holder", []byte(theirs), zk.Persistent)
			return err
		}
		if expired {
			write = func() error {
				_, err := sess.Set(t.Context(), "/app/lease/lease_holder", []byte(theirs), 0)
				return err
			}
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		release()
		if err := <-taken; !errors.Is(err, member.ErrLeased) {
			t.Errorf("expired=%t: %v", expired, err)
		}
		if data, _ := mustGet(t, sess, "/app/lease/lease_holder"); data != theirs {
			t.Errorf("expired=%t: %s", expired, data)
		}
	}
}

// Each request loses its reply, or its connection, in turn.
//
// Promise: 20
func TestFaultAtEachStepOfALease(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.CutBefore, zktest.CutAfter} {
		for step := 1; step <= 14; step++ {
			srv, c := server(t), newClock()
			sess := srv.Session(t, time.Minute)
			client := srv.Client(t, time.Minute)
			var mu sync.Mutex
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.Seq == step && r.Session != sess.ID() {
					return fault
				}
				return zktest.Pass
			})
			a := lease(t, client, "a", 0, c)
			mustTake(t, a)
			c.add(time.Second)
			mustTake(t, a)
			want := `{"version": 1, "holder": "a", "end": "2026-01-02T03:05:06"}`
			if data, _ := mustGet(t, sess, "/app/lease/lease_holder"); data != want {
				t.Errorf("fault %v at step %d: %s", fault, step, data)
			}
			if err := a.Release(within(t)); err != nil {
				t.Fatal(err)
			}
			srv.NoNodes(t, "/app/lease")
		}
	}
}

func TestBadInputOfLeasesIsRefused(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	for name, f := range map[string]func() (*member.Lease, error){
		"no client": func() (*member.Lease, error) {
			return member.NewLease(nil, "/x", "a", time.Minute, member.LeaseConfig{})
		},
		"the root": func() (*member.Lease, error) {
			return member.NewLease(client, "/", "a", time.Minute, member.LeaseConfig{})
		},
		"no holder": func() (*member.Lease, error) {
			return member.NewLease(client, "/x", "", time.Minute, member.LeaseConfig{})
		},
		"half a second": func() (*member.Lease, error) {
			return member.NewLease(client, "/x", "a", time.Second/2, member.LeaseConfig{})
		},
		"a count": func() (*member.Lease, error) {
			return member.NewLease(client, "/x", "a", time.Minute, member.LeaseConfig{Count: -1})
		},
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestErrorOfOneOfSeveralLeasesNamesThemOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	l := lease(t, srv.Client(t, time.Minute), "a", 2, newClock())
	srv.Control(func(r zktest.Request) zktest.Fault {
		for _, part := range r.Parts {
			if part.Op == zktest.OpCreate && strings.HasSuffix(part.Path, "/lease_holder") {
				return zktest.Answer(zk.NoAuth)
			}
		}
		return zktest.Pass
	})
	_, err := l.Take(within(t))
	if !errors.Is(err, zk.NoAuth) || strings.Count(err.Error(), "member: ") != 1 {
		t.Errorf("got %v, want the refusal, and the package's name once", err)
	}
}
