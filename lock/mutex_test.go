package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const path = "/locks/report"

// open returns a client of srv that is closed with the test.
func open(t *testing.T, srv *zktest.Server) *zk.Client {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr(), Timeout: time.Minute, Dial: srv.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func session(t *testing.T, client *zk.Client) *zk.Session {
	t.Helper()
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

func mutex(t *testing.T, client *zk.Client) *lock.Mutex {
	t.Helper()
	m, err := lock.NewMutex(client, path, lock.Config{Label: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func acquire(t *testing.T, m *lock.Mutex) *lock.Hold {
	t.Helper()
	hold, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// result is what a Lock in the background came to.
type result struct {
	hold *lock.Hold
	err  error
}

func lockInBackground(ctx context.Context, m *lock.Mutex) <-chan result {
	c := make(chan result, 1)
	go func() {
		hold, err := m.Lock(ctx)
		c <- result{hold, err}
	}()
	return c
}

// testTimeout bounds what tests in real time wait for: what takes longer does not come.
const testTimeout = time.Minute

// awaitLine waits until n contenders stand in the line, and returns them.
func awaitLine(t *testing.T, client *zk.Client, n int) []lock.Contender {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testTimeout, fmt.Errorf("there were never %d in the line", n))
	defer cancel()
	sess := session(t, client)
	for {
		names, _, watch, err := sess.ChildrenW(ctx, path)
		switch {
		case errors.Is(err, zk.NoNode) && n == 0:
			return nil
		case errors.Is(err, zk.ErrConnectionLost): // the test's doing
			continue
		case err != nil:
			t.Fatal(err)
		case len(names) == n:
			watch.Close()
			line, err := lock.Inspect(ctx, client, path)
			if err != nil {
				t.Fatal(err)
			}
			return line
		}
		if _, err := watch.Next(ctx); err != nil {
			t.Fatal(err)
		}
		watch.Close()
	}
}

func TestFreeLockTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	m := mutex(t, open(t, srv))
	if err := acquire(t, m).UnlockWait(t.Context()); err != nil { // makes the parents
		t.Fatal(err)
	}
	// Replies are held back: only what is sent without waiting for an answer reaches the server.
	ctx, answer := context.WithCancel(t.Context())
	defer answer()
	var mu sync.Mutex
	var asked []string
	both := make(chan struct{})
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Seq == 0 {
			return zktest.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, string(r.Op))
		if len(asked) == 2 {
			close(both)
		}
		return zktest.ReplyUntil(ctx)
	})
	got := lockInBackground(t.Context(), m)
	select {
	case <-both:
	case <-time.After(testTimeout):
		t.Error("the second request waits for the answer to the first")
	}
	answer()
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	mu.Lock()
	defer mu.Unlock()
	if s := fmt.Sprint(asked); len(asked) != 2 {
		t.Errorf("taking a free lock asked %s, want one creation and one listing", s)
	}
}

// Promise: 5
func TestWaitersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	first := acquire(t, mutex(t, client))
	var waiting []<-chan result
	for i := range 5 {
		waiting = append(waiting, lockInBackground(t.Context(), mutex(t, open(t, srv))))
		awaitLine(t, client, i+2)
	}
	held := first
	for i, w := range waiting {
		select {
		case r := <-w:
			t.Fatalf("waiter %d is in while another holds: %+v", i, r)
		default:
		}
		if err := held.Unlock(); err != nil {
			t.Fatal(err)
		}
		r := <-w
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.hold.Token() <= held.Token() {
			t.Errorf("waiter %d: got token %d, want more than %d", i, r.hold.Token(), held.Token())
		}
		held = r.hold
	}
}

// Promise: 4
func TestCancelledWaiterLeavesNoNodeAndNoWatch(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	hold := acquire(t, mutex(t, client))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller has gone home")
	waiting := lockInBackground(ctx, mutex(t, open(t, srv)))
	awaitLine(t, client, 2)
	cancel(why)
	if r := <-waiting; !errors.Is(r.err, why) || r.hold != nil {
		t.Errorf("got %v, %v, want the context's cause", r.hold, r.err)
	}
	awaitLine(t, client, 1)
	if err := hold.UnlockWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.NoWatches(t)
}

// Promise: 4
func TestCallerThatLeavesDuringTheCreationLeavesNoNode(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("reply lost %t", lost), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			client := open(t, srv)
			m := mutex(t, client)
			if err := acquire(t, m).UnlockWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Op == zktest.OpCreate && r.Nth == 1 {
					cancel()
					if lost {
						return zktest.DropReply
					}
				}
				return zktest.Pass
			})
			if hold, err := m.Lock(ctx); err == nil { // the answer may be quicker than the leaving
				_ = hold.Unlock()
			} else if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want context.Canceled", err)
			}
			awaitLine(t, client, 0)
		})
	}
}

// Promise: 4
func TestUnlockSurvivesTheLossOfTheConnection(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, other := open(t, srv), open(t, srv)
	hold := acquire(t, mutex(t, client))
	waiting := lockInBackground(t.Context(), mutex(t, other))
	awaitLine(t, other, 2)
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpDelete && r.Nth <= 2 {
			return zktest.Refuse
		}
		return zktest.Pass
	})
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if r := <-waiting; r.err != nil {
		t.Fatal(r.err)
	}
}

// Promise: 5
func TestWaiterThatDiesIsSkipped(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, dying := open(t, srv), open(t, srv)
	hold := acquire(t, mutex(t, client))
	lockInBackground(t.Context(), mutex(t, dying))
	awaitLine(t, client, 2)
	last := lockInBackground(t.Context(), mutex(t, open(t, srv)))
	awaitLine(t, client, 3)
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, client, 2)
	select {
	case r := <-last:
		t.Fatalf("a contender that left the middle let the next one in: %+v", r)
	default:
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if r := <-last; r.err != nil {
		t.Fatal(r.err)
	}
}

// Promise: 5
func TestWaiterWhoseSessionEndsJoinsTheLineAgain(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, other := open(t, srv), open(t, srv)
	hold := acquire(t, mutex(t, client))
	waiting := lockInBackground(t.Context(), mutex(t, other))
	before := awaitLine(t, client, 2)
	old := session(t, other)
	srv.ExpireSession(old.ID())
	<-old.Context().Done()
	after := awaitLine(t, client, 2)
	if before[1].Path == after[1].Path {
		t.Errorf("the waiter still stands with the node of its old session, %s", after[1].Path)
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	r := <-waiting
	if r.err != nil {
		t.Fatal(r.err)
	}
	if r.hold.Session().ID() == old.ID() {
		t.Error("the hold belongs to a session that has ended")
	}
}

// Promise: 2, 3
func TestHolderWhoseSessionExpiresIsToldAndMayNotWrite(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	hold := acquire(t, mutex(t, client))
	_, err := hold.Session().Multi(t.Context(), hold.Guard(), zk.CreateOp("/stock", nil, zk.Persistent))
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(hold.Session().ID())
	<-hold.Context().Done()
	if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrExpired) {
		t.Errorf("got cause %v, want zk.ErrExpired", cause)
	}
	if err := hold.Unlock(); !errors.Is(err, zk.ErrExpired) {
		t.Errorf("Unlock of a lost hold: got %v, want zk.ErrExpired", err)
	}
	_, err = session(t, client).Multi(t.Context(), hold.Guard(), zk.SetOp("/stock", []byte("late"), -1))
	if !errors.Is(err, zk.NoNode) {
		t.Errorf("a late guarded write: got %v, want zk.NoNode", err)
	}
}

// Promise: 1
func TestHoldEndsWhenItsNodeIsDeletedByOthers(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	operator := open(t, srv)
	m := mutex(t, open(t, srv))
	hold := acquire(t, m)
	if err := session(t, operator).Delete(t.Context(), hold.Path(), -1); err != nil {
		t.Fatal(err)
	}
	<-hold.Context().Done()
	if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
		t.Errorf("got cause %v, want lock.ErrDeleted", cause)
	}
	if err := acquire(t, m).Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Promise: 1
func TestWaiterWhoseNodeIsDeletedByOthersIsNotLetIn(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	hold := acquire(t, mutex(t, client))
	waiting := lockInBackground(t.Context(), mutex(t, open(t, srv)))
	second := awaitLine(t, client, 2)[1].Path
	third := lockInBackground(t.Context(), mutex(t, open(t, srv)))
	awaitLine(t, client, 3)
	// The node behind the holder vanishes, then the holder's: a waiter that took the holder's leaving for its turn
	// would be wrong.
	b := hold.Session().Batch()
	b.Delete(second, -1)
	b.Send()
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	r := <-third
	if r.err != nil {
		t.Fatal(r.err)
	}
	awaitLine(t, client, 2) // the one whose node was deleted has joined again, at the end
	select {
	case r := <-waiting:
		t.Fatalf("two holders: %+v", r)
	default:
	}
	if err := r.hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if r := <-waiting; r.err != nil {
		t.Fatal(r.err)
	}
}

// Promise: 1
func TestForeignChildrenNeitherBlockNorFail(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	m := mutex(t, client)
	if err := acquire(t, m).UnlockWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00-first", "zzz", "lock-1", "x-72057594037927936-0000000000", "ready"} {
		if _, err := session(t, client).Create(t.Context(), path+"/"+name, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	hold, err := m.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Promise: 1
func TestContendersOfCuratorAndKazooAreRespected(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", "0f8fad5bd9cb469fa16570867728950e__lock__",
		"_c_0f8fad5bd9cb469fa16570867728950e-lock-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			client, other := open(t, srv), open(t, srv)
			m := mutex(t, client)
			if err := acquire(t, m).UnlockWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			theirs, err := session(t, other).Create(t.Context(), path+"/"+name, []byte("10.0.0.1"),
				zk.EphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("got %v, want lock.ErrHeld", err)
			}
			waiting := lockInBackground(t.Context(), m)
			line := awaitLine(t, client, 2)
			if line[0].Path != theirs.Path || line[0].Known || string(line[0].Data) != "10.0.0.1" {
				t.Errorf("got %+v first, want %s", line[0], theirs.Path)
			}
			if err := session(t, other).Delete(t.Context(), theirs.Path, -1); err != nil {
				t.Fatal(err)
			}
			if r := <-waiting; r.err != nil {
				t.Fatal(r.err)
			}
		})
	}
}

func TestTryLockOfAHeldLockCostsNothing(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	m := mutex(t, client)
	hold := acquire(t, m)
	before, _, err := session(t, client).Exists(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("got %v, want lock.ErrHeld", err)
		}
	}
	after, _, err := session(t, client).Exists(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if before.Cversion != after.Cversion {
		t.Errorf("ten failed tries changed the line: %+v became %+v", before, after)
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if hold, err = m.TryLock(t.Context()); err != nil {
		t.Fatalf("a try behind one's own unlock: %v", err)
	}
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Promise: 3
func TestTokensGrowAcrossTheDeletionOfTheDirectory(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	m := mutex(t, client)
	var last lock.Token
	for i := range 5 {
		hold := acquire(t, m)
		if hold.Token() <= last {
			t.Fatalf("hold %d: got token %d after %d", i, hold.Token(), last)
		}
		last = hold.Token()
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := session(t, client).Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecondUnlockDoesNothing(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	m := mutex(t, open(t, srv))
	hold := acquire(t, m)
	if err := errors.Join(hold.Unlock(), hold.Unlock(), hold.UnlockWait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrUnlocked) {
		t.Errorf("got cause %v, want lock.ErrUnlocked", cause)
	}
	next := acquire(t, m)
	if err := hold.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := next.Context().Err(); err != nil {
		t.Errorf("an old hold's Unlock ended the next hold: %v", context.Cause(next.Context()))
	}
}

func TestInspectTellsWhoAndSinceWhen(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := open(t, srv)
	if line, err := lock.Inspect(t.Context(), client, path); err != nil || len(line) != 0 {
		t.Errorf("a lock that was never used: got %v, %v", line, err)
	}
	hold := acquire(t, mutex(t, client))
	lockInBackground(t.Context(), mutex(t, open(t, srv)))
	line := awaitLine(t, client, 2)
	if !line[0].Holder || line[1].Holder || line[0].Token != hold.Token() || line[0].Session != hold.Session().ID() {
		t.Errorf("got %+v, want the holder first, with its token %d", line, hold.Token())
	}
	for _, c := range line {
		if !c.Known || c.Owner.Host == "" || c.Owner.PID == 0 || c.Owner.Program == "" || c.Owner.Label != t.Name() ||
			c.Owner.Since.IsZero() {
			t.Errorf("got owner %+v, want this process", c.Owner)
		}
	}
}

// Promise: 9
func TestPathsThatCannotBeALockAreRefused(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	for _, p := range []string{"", "locks", "/", "/locks/", "/a//b", "/a/../b", "/a\x00b", "/zookeeper"} {
		if _, err := lock.NewMutex(client, p, lock.Config{}); err == nil {
			t.Errorf("NewMutex(%q): got no error", p)
		}
	}
	if _, err := lock.NewMutex(nil, path, lock.Config{}); err == nil {
		t.Error("NewMutex without a client: got no error")
	}
}

func TestLockOfAClosedClientFails(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	m := mutex(t, client)
	hold := acquire(t, m)
	waiting := lockInBackground(t.Context(), mutex(t, client))
	awaitLine(t, client, 2)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-waiting; !errors.Is(r.err, zk.ErrClosed) {
		t.Errorf("a waiter: got %v, want zk.ErrClosed", r.err)
	}
	if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrClosed) {
		t.Errorf("a holder: got %v, want zk.ErrClosed", cause)
	}
	if _, err := m.Lock(t.Context()); !errors.Is(err, zk.ErrClosed) {
		t.Errorf("the next: got %v, want zk.ErrClosed", err)
	}
}

func TestLockWithoutAServerSaysSo(t *testing.T) {
	t.Parallel()
	client, err := zk.Open(t.Context(), zk.Config{Servers: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for err := client.LastError(); err == nil || !strings.Contains(err.Error(), "refused"); err = client.LastError() {
		time.Sleep(time.Millisecond) // real: no event tells of an attempt that failed
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = mutex(t, client).Lock(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want the deadline and the reason", err)
	}
}

// Promise: 9
func TestLockThatTimesOutTellsAHeldLockFromAServerThatIsAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		hold := acquire(t, w.mutex(lock.Config{}))
		try := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := m.Lock(ctx)
			return err
		}
		if err := try(); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zk.ErrNotConnected) {
			t.Errorf("held: got %v, want context.DeadlineExceeded alone", err)
		}
		unlock(t, hold)
		w.Cut()
		if err := try(); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zk.ErrNotConnected) {
			t.Errorf("no server: got %v, want context.DeadlineExceeded and zk.ErrNotConnected", err)
		}
		w.Heal()
	})
}

// The hold's own context has ended by then, for the very reason that UnlockWait does not mind.
func TestUnlockWaitAfterUnlockWaitsUnderTheHoldsOwnContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		for range 20 {
			hold := locked(t, m.Lock)
			if err := hold.Unlock(); err != nil {
				t.Fatal(err)
			}
			if err := hold.UnlockWait(hold.Context()); err != nil {
				t.Fatal(err)
			}
			w.NoNodes(t, path)
		}
	})
}
