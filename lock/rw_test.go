package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func (w *world) rw(cfg lock.RWConfig) *lock.RWMutex {
	w.t.Helper()
	return rwmutex(w.t, w.Client(w.t, 20*time.Second), cfg)
}

func rwmutex(t *testing.T, client *zk.Client, cfg lock.RWConfig) *lock.RWMutex {
	t.Helper()
	m, err := lock.NewRWMutex(client, path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// locked takes a lock now: it must not have to wait.
func locked(t *testing.T, take func(context.Context) (*lock.Hold, error)) *lock.Hold {
	t.Helper()
	hold, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// waits takes a lock in the background. It returns when that waits, or has it.
func waits(ctx context.Context, take func(context.Context) (*lock.Hold, error)) <-chan result {
	c := make(chan result, 1)
	go func() {
		hold, err := take(ctx)
		c <- result{hold, err}
	}()
	synctest.Wait()
	return c
}

// none fails the test if one of those who wait has got in.
func none(t *testing.T, what string, waiting ...<-chan result) {
	t.Helper()
	synctest.Wait()
	for i, c := range waiting {
		select {
		case r := <-c:
			t.Fatalf("%s: number %d did not wait: %+v, %v", what, i, r.hold, r.err)
		default:
		}
	}
}

// nodes lists the names below a path.
func (w *world) nodes(dir string) []string {
	w.t.Helper()
	synctest.Wait()
	names, _, err := w.Session(w.t, 20*time.Second).Children(w.t.Context(), dir)
	if err != nil && !errors.Is(err, zk.NoNode) {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// Promise: 1
func TestReadersHoldTogetherAndWritersAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{})
		r1, r2 := locked(t, a.RLock), locked(t, b.RLock)
		writer := waits(t.Context(), c.Lock)
		late := waits(t.Context(), b.RLock) // joins b's node, which stands ahead of the writer
		lone := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		none(t, "a writer behind readers, a reader behind it", writer, lone)
		unlock(t, r1)
		none(t, "one reader is left", writer, lone)
		unlock(t, r2)
		none(t, "one reader is left that came late", writer, lone)
		unlock(t, got(t, late))
		hold := got(t, writer)
		none(t, "a reader behind a writer", lone)
		if hold.Token() <= r2.Token() {
			t.Errorf("the writer has token %d after the reader's %d", hold.Token(), r2.Token())
		}
		unlock(t, hold)
		last := got(t, lone)
		if last.Token() <= hold.Token() {
			t.Errorf("the reader has token %d after the writer's %d", last.Token(), hold.Token())
		}
		unlock(t, last)
		if left := w.nodes(path); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestReadersOfOneProcessShareANode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		first := locked(t, m.RLock)
		before := w.Traffic().Replies
		var holds []*lock.Hold
		for range 30 {
			h := locked(t, m.RLock)
			if h.Path() != first.Path() || h.Token() == first.Token() {
				t.Fatalf("got node %s, token %d beside %s, %d", h.Path(), h.Token(), first.Path(), first.Token())
			}
			holds = append(holds, h)
		}
		if n := w.Traffic().Replies - before; n != 0 {
			t.Errorf("30 more readers took %d round trips", n)
		}
		unlock(t, first)
		if first.Context().Err() == nil || holds[0].Context().Err() != nil {
			t.Error("the hold that was unlocked must be over, and no other")
		}
		for _, h := range holds {
			unlock(t, h)
		}
		if left := w.nodes(path); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		strict := w.rw(lock.RWConfig{Handoff: lock.StrictFIFO})
		a, b := locked(t, strict.RLock), locked(t, strict.RLock)
		if a.Path() == b.Path() {
			t.Error("with StrictFIFO two readers share a node")
		}
		unlock(t, a)
		unlock(t, b)
	})
}

func TestMoreReadersThanANodeHasTurnsGetAnotherNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, writer := w.rw(lock.RWConfig{}), locked(t, w.rw(lock.RWConfig{}).Lock)
		const readers = 5000
		answers := make(chan result, readers)
		for range readers {
			go func() {
				h, err := m.RLock(t.Context())
				answers <- result{h, err}
			}()
		}
		synctest.Wait()
		unlock(t, writer)
		tokens, nodes := map[lock.Token]bool{}, map[string]bool{}
		for range readers {
			h := got(t, answers)
			tokens[h.Token()], nodes[h.Path()] = true, true
			defer unlock(t, h)
		}
		if len(tokens) != readers || len(nodes) != 2 {
			t.Errorf("%d readers have %d tokens on %d nodes, want 2 nodes", readers, len(tokens), len(nodes))
		}
	})
}

// The bound of the hand-off is what a remote writer may be kept waiting by readers that come later.
func TestLateLocalReadersDoNotKeepAWriterWaitingBeyondTheBound(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]lock.Handoff{
		"count": {Count: 8, Time: 10 * time.Minute}, "time": {Count: 1 << 11, Time: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.rw(lock.RWConfig{Handoff: h})
				hold := locked(t, m.RLock)
				for range 20 { // without other contenders there is no bound
					next := locked(t, m.RLock)
					synctest.Wait()
					unlock(t, hold)
					hold = next
					time.Sleep(h.Time / 4)
				}
				writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
				asked, turns := time.Now(), 0
				for done := false; !done; turns++ {
					next := waits(t.Context(), m.RLock)
					unlock(t, hold)
					time.Sleep(h.Time / 20)
					select {
					case r := <-writer:
						if r.err != nil {
							t.Fatal(r.err)
						}
						none(t, "a reader beside the writer", next)
						unlock(t, r.hold)
						done = true
					default:
					}
					hold = got(t, next)
				}
				if name == "count" && turns > h.Count+1 || name == "time" && time.Since(asked) > h.Time*3/2 {
					t.Errorf("the writer waited for %d readers and %v", turns, time.Since(asked))
				}
				unlock(t, hold)
			})
		})
	}
}

// Promise: 5
func TestLocalReadersAndWritersAreServedInTheOrderOfTheirCalls(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		first := locked(t, m.RLock)
		w1 := waits(t.Context(), m.Lock)
		r1, r2 := waits(t.Context(), m.RLock), waits(t.Context(), m.RLock)
		w2 := waits(t.Context(), m.Lock)
		r3 := waits(t.Context(), m.RLock)
		if n := len(w.nodes(path)); n != 5 {
			t.Errorf("got %d nodes, want 5: two readers share one", n)
		}
		none(t, "behind a reader", w1, r1, r2, w2, r3)
		unlock(t, first)
		h := got(t, w1)
		none(t, "behind a writer", r1, r2, w2, r3)
		unlock(t, h)
		h1, h2 := got(t, r1), got(t, r2)
		none(t, "behind two readers", w2, r3)
		unlock(t, h1)
		unlock(t, h2)
		h = got(t, w2)
		none(t, "behind the second writer", r3)
		unlock(t, h)
		unlock(t, got(t, r3))
	})
}

func TestLossOfTheSessionKeepsTheOrderOfReadersAndWriters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		first := locked(t, m.Lock)
		var waiting []<-chan result
		for i := range 20 {
			take := m.Lock
			if i%3 == 2 {
				take = m.RLock
			}
			waiting = append(waiting, waits(t.Context(), take))
		}
		w.ExpireSession(first.Session().ID())
		<-first.Context().Done()
		for i, c := range waiting {
			h := got(t, c)
			none(t, fmt.Sprintf("while number %d holds", i), waiting[i+1:]...)
			unlock(t, h)
		}
		if err := first.Unlock(); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("Unlock of the lost hold: got %v, want zk.ErrExpired", err)
		}
	})
}

func TestReaderThatLeavesTheLocalGroupTouchesNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, writer := w.rw(lock.RWConfig{}), locked(t, w.rw(lock.RWConfig{}).Lock)
		ctx, cancel := context.WithCancel(t.Context())
		leaving := waits(ctx, m.RLock)
		staying := waits(t.Context(), m.RLock)
		cancel()
		if r := <-leaving; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", r.err)
		}
		if n := len(w.nodes(path)); n != 2 {
			t.Errorf("got %d nodes, want the writer's and the other reader's", n)
		}
		unlock(t, writer)
		unlock(t, got(t, staying))
		// The last that leaves takes the node along.
		writer = locked(t, w.rw(lock.RWConfig{}).Lock)
		ctx, cancel = context.WithCancel(t.Context())
		leaving = waits(ctx, m.RLock)
		alsoLeaving := waits(ctx, m.Lock)
		cancel()
		<-leaving
		<-alsoLeaving
		if n := len(w.nodes(path)); n != 1 {
			t.Errorf("got %d nodes, want the writer's alone", n)
		}
		unlock(t, writer)
		unlock(t, locked(t, m.RLock))
	})
}

func TestTriesOfAReadWriteLockAreAnsweredAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{})
		refused := func(what string, take func(context.Context) (*lock.Hold, error)) {
			t.Helper()
			if h, err := take(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("%s: got %v, %v, want lock.ErrHeld", what, h, err)
			}
		}
		h := locked(t, a.TryLock)
		refused("read beside a writer", b.TryRLock)
		refused("read beside the own writer", a.TryRLock)
		refused("write beside a writer", b.TryLock)
		unlock(t, h)
		r1, r2, r3 := locked(t, a.TryRLock), locked(t, a.TryRLock), locked(t, b.TryRLock)
		if r1.Path() != r2.Path() || r1.Path() == r3.Path() {
			t.Errorf("readers share nodes as they should not: %s, %s, %s", r1.Path(), r2.Path(), r3.Path())
		}
		refused("write beside readers", a.TryLock)
		waiting := waits(t.Context(), b.Lock)
		refused("read past a writer that waits", w.rw(lock.RWConfig{}).TryRLock)
		for _, h := range []*lock.Hold{r1, r2, r3} {
			unlock(t, h)
		}
		unlock(t, got(t, waiting))
		unlock(t, locked(t, b.TryLock))
	})
}

// Promise: 1
func TestDowngradeKeepsTheNumberAndAdmitsNoWriter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		time.Sleep(time.Second) // its node is watched
		node, token := hold.Path(), hold.Token()
		direct := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		local := waits(t.Context(), m.RLock)
		if err := m.Downgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		none(t, "behind a reader that was a writer", writer, local)
		if hold.Path() == node || hold.Path()[len(hold.Path())-18:] != "__READ__"+node[len(node)-10:] ||
			hold.Token() != token {
			t.Errorf("got node %s, token %d, want the number of %s and token %d",
				hold.Path(), hold.Token(), node, token)
		}
		time.Sleep(time.Second)
		if err := hold.Context().Err(); err != nil {
			t.Fatalf("the hold has ended: %v", context.Cause(hold.Context()))
		}
		if err := m.Downgrade(t.Context(), hold); err != nil {
			t.Errorf("again: %v", err)
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guard()); err != nil {
			t.Errorf("the guard: %v", err)
		}
		unlock(t, got(t, direct))
		none(t, "one reader is left", writer, local)
		unlock(t, hold)
		unlock(t, got(t, writer))
		unlock(t, got(t, local))
	})
}

// The writer directly behind watches the very node that vanishes.
func TestDowngradeDoesNotLetTheNextWriterIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		next := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		if err := m.Downgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		none(t, "directly behind", next)
		unlock(t, hold)
		unlock(t, got(t, next))
	})
}

func TestHoldThatChangedEndsWhenItsNodeIsDeletedByOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		change := map[string]func(context.Context, *lock.Hold) error{"down": m.Downgrade, "up": m.Upgrade}
		for name, take := range map[string]func(context.Context) (*lock.Hold, error){"down": m.Lock, "up": m.RLock} {
			hold := locked(t, take)
			if err := change[name](t.Context(), hold); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if err := w.Session(t, 20*time.Second).Delete(t.Context(), hold.Path(), -1); err != nil {
				t.Fatal(err)
			}
			<-hold.Context().Done()
			if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
				t.Errorf("%s: got %v, want lock.ErrDeleted", name, cause)
			}
			if err := change[name](t.Context(), hold); !errors.Is(err, lock.ErrDeleted) {
				t.Errorf("%s once more: got %v, want lock.ErrDeleted", name, err)
			}
			if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
				t.Errorf("%s, Unlock: got %v, want lock.ErrDeleted", name, err)
			}
		}
	})
}

// Promise: 1
func TestUpgradeOfTheOnlyReaderKeepsTheNumber(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.RLock)
		time.Sleep(time.Second) // its node is watched
		token := hold.Token()
		before := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		if err := m.Upgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		after := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		local := waits(t.Context(), m.RLock)
		time.Sleep(time.Second)
		none(t, "beside a writer that was a reader", before, after, local)
		if hold.Token() <= token || hold.Context().Err() != nil {
			t.Errorf("got token %d after %d, context %v", hold.Token(), token, context.Cause(hold.Context()))
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guard()); err != nil {
			t.Errorf("the guard: %v", err)
		}
		// Down and up again.
		err := errors.Join(m.Downgrade(t.Context(), hold), m.Upgrade(t.Context(), hold), m.Upgrade(t.Context(), hold))
		if err != nil {
			t.Fatal(err)
		}
		none(t, "down and up again", before, after, local)
		unlock(t, hold)
		next := got(t, before)
		if next.Token() <= hold.Token() {
			t.Errorf("the next writer has token %d after %d", next.Token(), hold.Token())
		}
		unlock(t, next)
		unlock(t, got(t, after))
		unlock(t, got(t, local))
		if left := w.nodes(path); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// Promise: 1
func TestUpgradeBesideOtherReadersFailsAtOnceAndKeepsTheHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{})
		conflict := func(what string, m *lock.RWMutex, h *lock.Hold) {
			t.Helper()
			if err := m.Upgrade(t.Context(), h); !errors.Is(err, lock.ErrUpgradeConflict) {
				t.Fatalf("%s: got %v, want lock.ErrUpgradeConflict", what, err)
			}
			if h.Context().Err() != nil {
				t.Fatalf("%s: the hold has ended: %v", what, context.Cause(h.Context()))
			}
		}
		mine, theirs := locked(t, a.RLock), locked(t, b.RLock)
		conflict("a reader in another process", a, mine)
		conflict("a reader in another process, the other way", b, theirs)
		writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		conflict("with a writer behind", a, mine)
		none(t, "behind readers", writer)
		unlock(t, theirs)
		local := locked(t, a.RLock)
		if local.Path() == mine.Path() {
			conflict("a reader of the same process, on the same node", a, mine)
		}
		conflict("a reader of the same process", a, local)
		unlock(t, local)
		synctest.Wait() // until the others' nodes are gone: Unlock does not wait for that
		if err := a.Upgrade(t.Context(), mine); err != nil {
			t.Fatalf("alone: %v", err)
		}
		none(t, "behind a writer", writer)
		unlock(t, mine)
		unlock(t, got(t, writer))
	})
}

// A reader whose writer leaves must not take that for its turn: another reader, ahead of both, may be a writer by now.
//
// Promise: 1
func TestReaderBehindAWriterThatLeavesSeesAnUpgradeAheadOfBoth(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.RLock)
		ctx, cancel := context.WithCancel(t.Context())
		writer := waits(ctx, w.rw(lock.RWConfig{}).Lock)
		reader := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		if err := m.Upgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-writer
		none(t, "behind an upgraded reader", reader)
		unlock(t, hold)
		unlock(t, got(t, reader))
	})
}

// A reader that comes between an upgrade's look and its node is in: the upgrade must see it.
//
// Promise: 1
func TestReaderThatComesDuringAnUpgradeMakesItFail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{})
		hold := locked(t, a.RLock)
		ctx, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if strings.Contains(r.Path, "__WRIT__") {
				return zktest.Until(ctx)
			}
			return zktest.Pass
		})
		upgraded := make(chan error, 1)
		go func() { upgraded <- a.Upgrade(t.Context(), hold) }()
		synctest.Wait()
		other := locked(t, b.RLock)
		w.Control(nil)
		proceed()
		if err := <-upgraded; !errors.Is(err, lock.ErrUpgradeConflict) {
			t.Fatalf("got %v, want lock.ErrUpgradeConflict", err)
		}
		if names := w.nodes(path); len(names) != 2 {
			t.Errorf("got %v, want the two readers' nodes", names)
		}
		// Those who came while the writer's node was there are readers as ever.
		unlock(t, locked(t, w.rw(lock.RWConfig{}).RLock))
		unlock(t, other)
		unlock(t, hold)
	})
}

// Promise: 4
func TestCallerThatLeavesDuringAnUpgradeKeepsTheReadersHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.RLock)
		ctx, cancel := context.WithCancel(t.Context())
		held, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if strings.Contains(r.Path, "__WRIT__") && r.Nth == 1 {
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		upgraded := make(chan error, 1)
		go func() { upgraded <- m.Upgrade(ctx, hold) }()
		synctest.Wait()
		cancel()
		if err := <-upgraded; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		w.Control(nil)
		proceed()
		if names := w.nodes(path); len(names) != 1 || hold.Context().Err() != nil {
			t.Errorf("got %v and context %v, want the reader's node alone", names, hold.Context().Err())
		}
		unlock(t, hold)
	})
}

// The writer's node is made, its reply lost, and the caller leaves while it is looked for.
//
// Promise: 4
func TestCallerThatLeavesAnUpgradeWhoseReplyWasLostLeavesNoWriter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.RLock)
		ctx, leave := context.WithCancel(t.Context())
		answer, proceed := context.WithCancel(t.Context())
		defer proceed()
		asked := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op == zktest.OpCreate:
				asked++
				return zktest.DropReply
			case asked == 0:
				return zktest.Pass
			}
			leave()
			return zktest.ReplyUntil(answer)
		})
		if err := m.Upgrade(ctx, hold); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's end", err)
		}
		proceed()
		w.Control(nil)
		letHoldsAge()
		if line := w.line(); len(line) != 1 {
			t.Errorf("the line shows a writer that does not exist: %+v", line)
		}
		unlock(t, hold)
		unlock(t, locked(t, w.rw(lock.RWConfig{}).Lock))
	})
}

func TestUnlockWaitsForADowngrade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		held, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Downgrade(ctx, hold); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		unlocked := make(chan error, 1)
		go func() { unlocked <- hold.UnlockWait(t.Context()) }()
		synctest.Wait()
		proceed()
		if err := <-unlocked; err != nil {
			t.Fatal(err)
		}
		if names := w.nodes(path); len(names) != 0 {
			t.Errorf("left behind: %v", names)
		}
	})
}

func TestChangeOfAnotherLocksHoldIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, other := w.rw(lock.RWConfig{}), w.rw(lock.RWConfig{})
		mutex := w.mutex(lock.Config{})
		for _, take := range []func(context.Context) (*lock.Hold, error){mutex.Lock, other.RLock, other.Lock} {
			hold := locked(t, take)
			if m.Downgrade(t.Context(), hold) == nil || m.Upgrade(t.Context(), hold) == nil {
				t.Error("another lock's hold was changed")
			}
			unlock(t, hold)
		}
		read := locked(t, m.RLock)
		unlock(t, read)
		if err := m.Upgrade(t.Context(), read); !errors.Is(err, lock.ErrUnlocked) {
			t.Errorf("a hold that is over: got %v, want lock.ErrUnlocked", err)
		}
	})
}

// Promise: 6
func TestReaderThatLeavesWakesOnlyTheWriterThatWaitsForIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var readers []*lock.Hold
		for range 20 {
			readers = append(readers, locked(t, w.rw(lock.RWConfig{}).RLock))
		}
		writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		var behind []<-chan result
		for range 20 {
			behind = append(behind, waits(t.Context(), w.rw(lock.RWConfig{}).RLock))
		}
		time.Sleep(time.Second)
		before := w.Traffic().Events
		events := func() int {
			time.Sleep(time.Second)
			n := w.Traffic().Events - before
			before += n
			return n
		}
		for i, r := range readers {
			unlock(t, r)
			want := 0
			if i == len(readers)-1 { // the writer waits for the one directly ahead
				want = 1
			}
			if n := events(); n != want {
				t.Fatalf("reader %d of %d left and made %d events, want %d", i+1, len(readers), n, want)
			}
		}
		unlock(t, got(t, writer))
		for _, c := range behind {
			defer unlock(t, got(t, c))
		}
		if n := events(); n != len(behind) {
			t.Errorf("a writer left and made %d events, want %d: one for each reader behind it", n, len(behind))
		}
	})
}

func TestReadersAndWritersOfCuratorAndKazooAreRespected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.Session(t, 20*time.Second)
		m := w.rw(lock.RWConfig{})
		unlock(t, locked(t, m.Lock)) // makes the parents
		const guid = "0f8fad5bd9cb469fa16570867728950e"
		for _, c := range []struct {
			name  string
			write bool
		}{
			{"_c_0f8fad5b-d9cb-469f-a165-70867728950e-__WRIT__", true},
			{"_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__", false},
			{guid + "__lock__", true},
			{guid + "__rlock__", false},
		} {
			synctest.Wait()
			theirs, err := other.Create(t.Context(), path+"/"+c.name, nil, zk.EphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			reader := waits(t.Context(), m.RLock)
			writer := waits(t.Context(), m.Lock)
			none(t, "a writer beside "+c.name, writer)
			if c.write {
				none(t, "a reader behind "+c.name, reader)
			} else {
				h := got(t, reader)
				if err := m.Upgrade(t.Context(), h); !errors.Is(err, lock.ErrUpgradeConflict) {
					t.Errorf("an upgrade beside %s: got %v", c.name, err)
				}
				unlock(t, h)
			}
			if err := other.Delete(t.Context(), theirs.Path, -1); err != nil {
				t.Fatal(err)
			}
			if c.write {
				unlock(t, got(t, reader))
			}
			unlock(t, got(t, writer))
		}
		// A later writer does not concern a reader (kazoo#649).
		r := locked(t, m.RLock)
		if _, err := other.Create(t.Context(), path+"/"+guid+"__lock__", nil, zk.EphemeralSequential); err != nil {
			t.Fatal(err)
		}
		none(t, "behind a kazoo writer", waits(t.Context(), w.rw(lock.RWConfig{}).RLock))
		unlock(t, locked(t, m.RLock))
		unlock(t, r)
	})
}

func TestBoundsThatAReadWriteLockDoesNotHaveAreRefused(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	if _, err := lock.NewRWMutex(client, path, lock.RWConfig{Handoff: lock.Handoff{Count: -2}}); err == nil {
		t.Error("a negative hand-off: got no error")
	}
	if _, err := lock.NewRWMutex(client, "/", lock.RWConfig{}); err == nil {
		t.Error("the root: got no error")
	}
	if _, err := lock.NewRWMutex(nil, path, lock.RWConfig{}); err == nil {
		t.Error("no client: got no error")
	}
}

// Every request of what a read/write lock does is hit in turn, in each way. Afterwards nothing is left, and no two held
// the lock that must not.
//
// Promise: 4
func TestLostRepliesMakeNoOrphanOfAReadWriteLock(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step := range soak.Steps(name, faults) {
					m := w.rw(lock.RWConfig{})
					session(t, w.Client(t, 20*time.Second))
					reached := false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					hold := locked(t, m.Lock)
					if err := m.Downgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					beside := locked(t, w.rw(lock.RWConfig{}).RLock)
					unlock(t, beside)
					time.Sleep(time.Second) // its session may have to come back for that
					if err := m.Upgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					none(t, fmt.Sprintf("step %d: beside a writer", step),
						waits(t.Context(), func(ctx context.Context) (*lock.Hold, error) {
							h, err := w.rw(lock.RWConfig{}).RLock(ctx)
							if err == nil {
								unlock(t, h)
							}
							return h, err
						}))
					unlock(t, hold)
					unlock(t, locked(t, m.RLock))
					w.Control(nil)
					time.Sleep(time.Second)
					if left := w.nodes(path); len(left) != 0 {
						t.Fatalf("step %d: left behind: %v", step, left)
					}
					if !reached {
						return
					}
				}
			})
		})
	}
}

// Many goroutines of several processes at once, with changes of kind and connections that break: never a writer beside
// another holder, and the tokens of writers grow.
//
// Promise: 1
func TestReadersAndWritersOfManyClientsExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lock.RWConfig{{}, {Handoff: lock.StrictFIFO}, {Handoff: lock.Handoff{Count: 2}}} {
		t.Run(fmt.Sprintf("%+v", cfg.Handoff), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			var readers, writers, upgrades atomic.Int64
			var last lock.Token
			in := func(n *atomic.Int64, alone bool) {
				if n.Add(1); alone && (writers.Load() != 1 || readers.Load() != 0) || !alone && writers.Load() != 0 {
					t.Errorf("%d writers and %d readers inside", writers.Load(), readers.Load())
				}
			}
			write := func(h *lock.Hold) {
				in(&writers, true)
				if h.Token() <= last {
					t.Errorf("a writer has token %d after %d", h.Token(), last)
				}
				last = h.Token()
				writers.Add(-1)
			}
			read := func() {
				in(&readers, false)
				readers.Add(-1)
			}
			var wg sync.WaitGroup
			for c := range 4 {
				m := rwmutex(t, open(t, srv), cfg)
				for g := range 6 {
					rnd := rand.New(rand.NewPCG(uint64(c), uint64(g)))
					wg.Go(func() {
						for range 15 {
							take := m.RLock
							if rnd.IntN(3) == 0 {
								take = m.Lock
							}
							h, err := take(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if strings.Contains(h.Path(), "__WRIT__") {
								write(h)
								if rnd.IntN(2) == 0 {
									if err := m.Downgrade(t.Context(), h); err != nil {
										t.Error(err)
									}
									read()
								}
							} else {
								read()
								if err := m.Upgrade(t.Context(), h); err == nil {
									upgrades.Add(1)
									write(h)
								} else if !errors.Is(err, lock.ErrUpgradeConflict) {
									t.Error(err)
								} else {
									read()
								}
							}
							if rnd.IntN(10) == 0 {
								srv.Drop(h.Session().ID())
							}
							if err := h.Unlock(); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			t.Logf("%d upgrades", upgrades.Load())
		})
	}
}

// A node is good for so many tokens. The last of them is the reader's own, so there is none for a writer, which needs
// a larger one.
//
// Promise: 1
func TestUpgradeIsRefusedWhenTheTokensOfItsNodeHaveRunOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{Handoff: lock.Handoff{Count: 1 << 30, Time: time.Hour}})
		hold := locked(t, m.RLock)
		for range 1<<12 - 1 {
			next := locked(t, m.RLock)
			unlock(t, hold)
			hold = next
		}
		before := hold.Token()
		if err := m.Upgrade(t.Context(), hold); !errors.Is(err, lock.ErrUpgradeConflict) {
			t.Errorf("got %v and token %d after %d, want lock.ErrUpgradeConflict", err, hold.Token(), before)
		}
		unlock(t, hold)
	})
}

// A Lock of the same RWMutex is on its way while a TryRLock succeeds. Who comes to read then must queue up behind the
// writer, and not join the reader who tried.
func TestReaderBehindAWriterDoesNotJoinWhoTried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		unlock(t, locked(t, m.Lock))
		time.Sleep(time.Second)
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.ReplyUntil(stopped)
			}
			return zktest.Pass
		})
		trying := waits(t.Context(), m.TryRLock)
		writer := waits(t.Context(), m.Lock)
		proceed()
		tried := got(t, trying)
		none(t, "behind a reader", writer)
		reader := waits(t.Context(), m.RLock)
		none(t, "behind a writer", reader)
		unlock(t, tried)
		hold := got(t, writer)
		none(t, "beside a writer", reader)
		unlock(t, hold)
		unlock(t, got(t, reader))
	})
}

func TestDowngradeWhoseReplyIsLostAndWhoseRepetitionIsRefusedLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op == zktest.OpMulti && r.Nth == 1:
				return zktest.DropReply
			case r.Op == zktest.OpMulti && r.Nth == 2:
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		if err := m.Downgrade(t.Context(), hold); err != nil {
			t.Errorf("got %v, want that it was done", err)
		}
		w.Control(nil)
		unlock(t, hold)
		w.NoNodes(t, path)
	})
}

// The node of a hold that has changed its kind is younger than the hold, and tells its token.
//
// Promise: 9
func TestInspectTellsTheTokenOfAHoldThatHasChangedItsKind(t *testing.T) {
	t.Parallel()
	for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				refuse := func(context.Context, lock.Revocation) bool { return false }
				m := w.rw(lock.RWConfig{Layout: layout, OnRevoke: refuse})
				hold := locked(t, m.Lock)
				for i, change := range []func(context.Context, *lock.Hold) error{m.Downgrade, m.Upgrade, m.Downgrade} {
					if err := change(t.Context(), hold); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					for range 2 { // a request that is written into the node leaves the token
						line := w.line()
						if len(line) != 1 || line[0].Token != hold.Token() || line[0].Path != hold.Path() {
							t.Errorf("change %d: got %+v, want one with token %d", i, line, hold.Token())
						}
						<-w.revoke(lock.RevokeOptions{Grace: time.Second})
					}
				}
				unlock(t, hold)
			})
		})
	}
}
