package lock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// foreign makes a node of another program's contender, which sets no watch.
func (w *world) foreign(sess *zk.Session, name string, mode zk.Mode) string {
	w.t.Helper()
	for {
		c, err := sess.Create(w.t.Context(), path+"/"+name, nil, mode)
		if err == nil {
			return c.Path
		}
		if !errors.Is(err, zk.NoNode) {
			w.t.Fatal(err)
		}
		for _, dir := range []string{"/locks", path} {
			_, err := sess.Create(w.t.Context(), dir, nil, zk.Persistent)
			if err != nil && !errors.Is(err, zk.NodeExists) {
				w.t.Fatal(err)
			}
		}
	}
}

const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e"

// Every timed attempt behind a holder that stays sets watches. None is left, however many there were.
func TestTimedAttemptsLeaveNoWatchBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		w.foreign(sess, guid+"-lock-", zk.EphemeralSequential)
		w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		m, rw := w.mutex(lock.Config{}), w.rw(lock.RWConfig{})
		for _, take := range []func(context.Context) (*lock.Hold, error){m.Lock, rw.Lock, w.set(path, pathA).Lock} {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := take(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v, want the context's end", err)
				}
				cancel()
			}
		}
		synctest.Wait()
		w.NoWatches(t)
	})
}

func TestNothingIsMadeBeforeALockIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.mutex(lock.Config{Delay: delay})
		w.rw(lock.RWConfig{})
		w.set(path, pathA)
		w.line()
		if r := <-w.revoke(lock.RevokeOptions{Record: true}); r.err != nil {
			t.Fatal(r.err)
		}
		w.empty("/locks") // a container that never had a child is never collected
	})
}

// A client that may create below a node need not be allowed to read it.
func TestParentsAreMadeWithoutReadingAncestors(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		closed := []zk.ACL{{Perms: zk.PermCreate | zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/locks", ACL: closed}); err != nil {
			t.Fatal(err)
		}
		hold := locked(t, w.set(pathC).Lock)
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// A client's prefix counts for what is removed in the background as for everything else.
func TestRemovalInTheBackgroundStaysBelowTheClientsPrefix(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		if _, err := sess.Create(t.Context(), "/app", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		cfg := w.Config(20 * time.Second)
		cfg.Servers += "/app"
		client, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for _, c := range []lock.Config{{}, {Delay: delay}} {
			m, err := lock.NewMutex(client, path, c)
			if err != nil {
				t.Fatal(err)
			}
			for nth := 1; nth <= 5; nth++ {
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Seq == nth {
						return zktest.DropReply
					}
					return zktest.Pass
				})
				unlock(t, acquire(t, m))
				synctest.Wait()
				w.Control(nil)
				time.Sleep(time.Second)
				w.empty("/app"+path, path)
			}
		}
	})
}

// kazoo's reader used to wait for writers that came after it, and they for it.
func TestReaderDoesNotWaitForAWriterThatCameLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		first := w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		reader := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		synctest.Wait()
		w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		w.foreign(sess, "0f8fad5bd9cb469fa16570867728950e__lock__", zk.EphemeralSequential)
		if err := sess.Delete(t.Context(), first, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, reader))
	})
}

// Curator's reader that was a writer carries the writer's number while both its nodes are there.
func TestChildrenOfEqualNumberAreTwoContenders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		writer := w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		reader := w.foreign(sess, "_c_1f8fad5b-d9cb-469f-a165-70867728950e-__READ__"+writer[len(writer)-10:],
			zk.Ephemeral)
		ours := w.rw(lock.RWConfig{})
		write := waits(t.Context(), ours.Lock)
		read := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		none(t, "behind both", write, read)
		if line := w.line(); len(line) != 4 {
			t.Errorf("got %d contenders, want 4: %+v", len(line), line)
		}
		if err := sess.Delete(t.Context(), writer, -1); err != nil {
			t.Fatal(err)
		}
		none(t, "behind the one that is left", write, read)
		if err := sess.Delete(t.Context(), reader, -1); err != nil {
			t.Fatal(err)
		}
		hold := got(t, write)
		none(t, "behind the writer", read)
		unlock(t, hold)
		unlock(t, got(t, read))
	})
}

func TestSetWaitsForAllItsPathsUnderOneDeadline(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var holds []*lock.Hold
		for _, p := range []string{pathA, pathB, pathC} {
			holds = append(holds, locked(t, w.set(p).Lock))
		}
		const limit = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		waiting := waits(ctx, w.set(pathA, pathB, pathC).Lock)
		for _, h := range holds { // each path alone would be free in time
			time.Sleep(limit * 6 / 10)
			unlock(t, h)
		}
		r := <-waiting
		if !errors.Is(r.err, context.DeadlineExceeded) {
			t.Fatalf("got %v, %v, want the context's end", r.hold, r.err)
		}
		w.empty(pathA, pathB, pathC)
	})
}

// Two neighbours are deleted in one transaction: the one behind hears of the other's end first. It must not go on as if
// it were in.
//
// Promise: 1
func TestWaiterThatIsDeletedTogetherWithTheOneAheadDoesNotHoldTheLock(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lock.Config{{}, {Handoff: lock.StrictFIFO}} {
		t.Run(fmt.Sprint(cfg.Handoff), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				sess := w.Session(t, 20*time.Second)
				first := acquire(t, w.mutex(lock.Config{}))
				second := lockInBackground(t.Context(), w.mutex(cfg))
				synctest.Wait()
				third := lockInBackground(t.Context(), w.mutex(cfg))
				synctest.Wait()
				line := w.line()
				_, err := sess.Multi(t.Context(), zk.DeleteOp(line[0].Path, -1), zk.DeleteOp(line[1].Path, -1))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // no time passes
				if len(second) > 0 {
					if r := <-second; r.err == nil && r.hold.Path() == line[1].Path && r.hold.Context().Err() == nil {
						t.Error("a hold goes on whose node was deleted before it began")
					} else if r.err == nil {
						_ = r.hold.Unlock()
					}
					second = nil
				}
				hold := got(t, third)
				unlock(t, hold)
				if second != nil {
					unlock(t, got(t, second))
				}
				_ = first.Unlock() // was deleted
			})
		})
	}
}

// isFence reports whether r is what a search for a lost creation begins with.
func isFence(r zktest.Request) bool {
	return r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, "/__fence-")
}

// A leader shows its own clients a tree without what is still on its way through the quorum, also after a sync. So
// after a creation whose reply was lost all reads are behind, until a write of the same session has been answered.
func (w *world) readsBehind(lost func()) {
	behind, done := false, false
	w.Control(func(r zktest.Request) zktest.Fault {
		write := r.Op == zktest.OpCreate || r.Op == zktest.OpMulti || r.Op == zktest.OpDelete
		switch {
		case !done && (r.Op == zktest.OpCreate || r.Op == zktest.OpMulti):
			behind, done = true, true
			lost()
			return zktest.DropReply
		case write:
			behind = false
		case behind && (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetData || r.Op == zktest.OpExists):
			return zktest.Answer(zk.NoNode)
		}
		return zktest.Pass
	})
}

// Promise: 4
func TestLostCreationIsFoundThoughReadsAreBehind(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(w *world) func(context.Context) (*lock.Hold, error){
		"mutex": func(w *world) func(context.Context) (*lock.Hold, error) { return w.mutex(lock.Config{}).Lock },
		"try":   func(w *world) func(context.Context) (*lock.Hold, error) { return w.mutex(lock.Config{}).TryLock },
		"two nodes": func(w *world) func(context.Context) (*lock.Hold, error) {
			return w.mutex(lock.Config{Layout: lock.Both}).Lock
		},
		"writer":  func(w *world) func(context.Context) (*lock.Hold, error) { return w.rw(lock.RWConfig{}).Lock },
		"reader":  func(w *world) func(context.Context) (*lock.Hold, error) { return w.rw(lock.RWConfig{}).RLock },
		"set":     func(w *world) func(context.Context) (*lock.Hold, error) { return w.set(path, pathA).Lock },
		"permits": func(w *world) func(context.Context) (*lock.Hold, error) { return w.another(3, 2).Lock },
		"simple":  func(w *world) func(context.Context) (*lock.Hold, error) { return w.simple().Lock },
	}
	for name, kind := range kinds {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,leaves=%t", name, leaves), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					take := kind(w)
					unlock(t, locked(t, take)) // the parents are there
					letHoldsAge()
					ctx, leave := context.WithTimeout(t.Context(), time.Minute)
					defer leave()
					w.readsBehind(func() {
						if leaves {
							leave()
						}
					})
					hold, err := take(ctx)
					if err == nil {
						unlock(t, hold)
					}
					if leaves == (err == nil) {
						t.Errorf("got %v", err)
					}
					letHoldsAge()
					w.Control(nil)
					if name == "simple" {
						w.free()
						return
					}
					w.empty(pathA, path+"/locks", path+"/leases")
					if name != "permits" {
						w.empty(path)
					}
				})
			})
		}
	}
}

// The reply of a creation is lost, and the server that is asked next may not answer.
//
// Promise: 4
func TestLostCreationIsFoundThoughTheServerRefusesToLookAtFirst(t *testing.T) {
	t.Parallel()
	for _, refusal := range []zk.Code{zk.NotReadOnly, zk.SessionMoved, zk.ThrottledOp} {
		t.Run(refusal.Error(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m, rw, s := w.mutex(lock.Config{}), w.rw(lock.RWConfig{}), w.set(path, pathA)
				for _, take := range []func(context.Context) (*lock.Hold, error){
					m.Lock, m.TryLock, rw.Lock, rw.RLock, s.Lock,
				} {
					unlock(t, locked(t, take)) // the parents are there
					synctest.Wait()
					refused, dropped := 0, false
					w.Control(func(r zktest.Request) zktest.Fault {
						switch {
						case !dropped && (r.Op == zktest.OpCreate || r.Op == zktest.OpMulti):
							dropped = true
							return zktest.DropReply
						case isFence(r) && refused < 3:
							refused++
							return zktest.Answer(refusal)
						}
						return zktest.Pass
					})
					hold := locked(t, take)
					w.Control(nil)
					if refused != 3 {
						t.Errorf("the search was refused %d times, want 3", refused)
					}
					if line := w.line(); len(line) != 1 {
						t.Errorf("got %d nodes for one hold: %+v", len(line), line)
					}
					unlock(t, hold)
					w.empty(path, pathA)
				}
			})
		})
	}
}

func TestTryLockRightBehindAnUnlockGetsTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, strict := w.mutex(lock.Config{}), w.mutex(lock.Config{Handoff: lock.StrictFIFO})
		keeps, rests := w.mutex(lock.Config{Retain: time.Minute}), w.delayed()
		rw, s := w.rw(lock.RWConfig{}), w.set(path, pathA)
		for _, take := range []func(context.Context) (*lock.Hold, error){
			m.TryLock, strict.TryLock, keeps.TryLock, rests.TryLock, rw.TryLock, rw.TryRLock, s.TryLock,
		} {
			for range 20 {
				unlock(t, locked(t, take))
			}
			time.Sleep(2 * time.Minute) // what is kept is given up
		}
		for range 20 {
			unlock(t, locked(t, rw.TryLock))
			unlock(t, locked(t, rw.TryRLock))
		}
	})
}

// The bound of the hand-off is reached, and the look at the line is still under way: no goroutine holds the lock when
// the session ends.
func TestParkedOwnershipWhoseSessionExpiresServesNoGoroutine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: 2, Time: time.Hour}})
		hold := acquire(t, m)
		waiting := lockers(t, m, 4)
		ctx, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && r.Session == hold.Session().ID() {
				return zktest.ReplyUntil(ctx)
			}
			return zktest.Pass
		})
		served := 0
		for ; served < len(waiting); served++ {
			unlock(t, hold)
			synctest.Wait()
			if len(waiting[served]) == 0 {
				break
			}
			hold = got(t, waiting[served])
		}
		if served == len(waiting) {
			t.Fatal("no waiter was parked")
		}
		lost := hold.Session()
		w.ExpireSession(lost.ID())
		w.Control(nil)
		for _, c := range waiting[served:] {
			next := got(t, c)
			if next.Session() == lost || next.Token() <= hold.Token() {
				t.Fatalf("got %v, token %d after %v, %d", next.Session(), next.Token(), lost, hold.Token())
			}
			hold = next
			unlock(t, hold)
		}
	})
}

// Why the hold was lost, and that its node cannot be removed: neither hides the other.
func TestUnlockWaitTellsTheLossAndTheRefusal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		hold := acquire(t, m)
		sess := w.Session(t, 20*time.Second)
		closed := []zk.ACL{{Perms: zk.PermAll &^ zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		if _, err := sess.SetACL(t.Context(), path, closed, -1); err != nil {
			t.Fatal(err)
		}
		if err := hold.UnlockWait(t.Context()); !errors.Is(err, zk.NoAuth) {
			t.Errorf("a node that may not be removed: got %v, want zk.NoAuth", err)
		}
		if _, err := sess.SetACL(t.Context(), path, zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
	})
}

// Every request of three locks and unlocks is hit in turn, in each way. Afterwards the lock is held by one node, or
// not held at all.
//
// Promise: 4
func TestLostRepliesMakeNoOrphan(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				step := 1
				for reached := true; reached; step++ {
					m := w.mutex(lock.Config{})
					client := w.Client(t, 20*time.Second) // looks on, undisturbed
					watcher := session(t, client).ID()
					reached = false
					asked := 0
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == 0 || r.Session == watcher {
							return zktest.Pass
						}
						if asked++; asked != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					for range 3 {
						hold := acquire(t, m)
						line, err := lock.Inspect(t.Context(), client, path)
						if err != nil {
							t.Fatal(err)
						}
						if len(line) == 0 || line[0].Path != hold.Path() || line[0].Session != hold.Session().ID() {
							t.Fatalf("step %d: the holder %s is not first in %+v", step, hold.Path(), line)
						}
						unlock(t, hold)
					}
					time.Sleep(time.Second)
					w.Control(nil)
					w.empty(path)
				}
				if step < 6 {
					t.Errorf("three locks and unlocks took %d requests", step)
				}
			})
		})
	}
}

// The creation was lost, and another client's node has the name that ours was to have, up to the number: by a server's
// error, or because that client imitates us. It is not ours: it belongs to another session (CURATOR-498, CURATOR-604).
//
// Promise: 1
func TestNodeOfAnotherSessionIsNotTakenForOursByItsName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.Session(t, 20*time.Second)
		m := w.mutex(lock.Config{})
		unlock(t, acquire(t, m))
		synctest.Wait()
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		var wanted string
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op == zktest.OpCreate && wanted == "":
				wanted = r.Path
				return zktest.Refuse
			case isFence(r):
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		waiting := waits(t.Context(), m.Lock)
		time.Sleep(time.Second) // its session has to come back
		none(t, "the search is on its way", waiting)
		w.Control(nil)
		foreign, err := other.Create(t.Context(), wanted+"0000000001", nil, zk.Ephemeral)
		if err != nil {
			t.Fatal(err)
		}
		proceed()
		none(t, "behind the other", waiting)
		if line := w.line(); len(line) != 2 || line[0].Session != other.ID() {
			t.Errorf("got %+v, want the other's node and ours behind it", line)
		}
		if err := other.Delete(t.Context(), foreign.Path, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, waiting))
		w.empty(path)
	})
}

// The same for a simple lock, whose node is known by its data: another client has made it anew with the same data.
//
// Promise: 1
func TestNodeOfAnotherSessionIsNotTakenForOursByItsData(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("caller leaves %t", leaves), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				other := w.Session(t, 20*time.Second)
				s := w.simple()
				unlock(t, locked(t, s.Lock))
				synctest.Wait()
				stopped, proceed := context.WithCancel(t.Context())
				defer proceed()
				var ours int64
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpCreate && ours == 0 {
						ours = r.Session
						return zktest.ReplyUntil(stopped)
					}
					return zktest.Pass
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				waiting := waits(ctx, s.Lock)
				data, _, err := other.Get(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if err := other.Delete(t.Context(), path, -1); err != nil {
					t.Fatal(err)
				}
				if _, err := other.Create(t.Context(), path, data, zk.Ephemeral); err != nil {
					t.Fatal(err)
				}
				if leaves {
					cancel()
				} else {
					w.Drop(ours)
				}
				proceed()
				time.Sleep(5 * time.Second)
				if _, exists, err := other.Exists(t.Context(), path); err != nil || !exists {
					t.Errorf("the other's node was removed, %v", err)
				}
				if leaves {
					if r := <-waiting; !errors.Is(r.err, context.Canceled) {
						t.Errorf("got %+v, want context.Canceled", r)
					}
					return
				}
				none(t, "beside the other", waiting)
				if err := other.Delete(t.Context(), path, -1); err != nil {
					t.Fatal(err)
				}
				unlock(t, got(t, waiting))
			})
		})
	}
}

// framewise is a connection on which each frame comes by itself, a while after the one before.
type framewise struct {
	net.Conn
	read []byte // and not given out yet
	left int    // of the frame that is given out
}

func (c *framewise) Read(p []byte) (int, error) {
	if c.left == 0 {
		time.Sleep(10 * time.Millisecond) // in a bubble
		for len(c.read) < 4 {
			if err := c.more(); err != nil {
				return 0, err
			}
		}
		c.left = 4 + int(binary.BigEndian.Uint32(c.read))
	}
	if len(c.read) == 0 {
		if err := c.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.read[:min(len(c.read), c.left)])
	c.read, c.left = c.read[n:], c.left-n
	return n, nil
}

func (c *framewise) more() error {
	b := make([]byte, 1<<16)
	n, err := c.Conn.Read(b)
	c.read = append(c.read, b[:n]...)
	return err
}

// While a waiter has no connection, its node and the one ahead of it are deleted. Which of the two events comes first
// when it is back says nothing: the server makes them up in the order of the paths. Here they do not come at one
// moment.
//
// Promise: 1
func TestEventsOfALaterConnectionLetNobodyIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for range 10 { // names are random, and with them the order
			cfg := w.Config(20 * time.Second)
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return &framewise{Conn: conn}, err
			}
			client, err := zk.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			hold := acquire(t, w.mutex(lock.Config{}))
			waiting := lockInBackground(t.Context(), mutex(t, client))
			time.Sleep(time.Second)
			third := lockInBackground(t.Context(), w.mutex(lock.Config{}))
			time.Sleep(time.Second)
			cut := session(t, client).ID()
			w.Cut(cut)
			w.removeNode(1)
			unlock(t, hold)
			next := got(t, third)
			w.Heal(cut)
			time.Sleep(2 * time.Second)
			none(t, "behind the contender that came before its second node", waiting)
			unlock(t, next)
			unlock(t, got(t, waiting))
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A lock is kept for as long as no other contender wants it. If that cannot be found out, it is not kept.
func TestLockWhoseLineCannotBeWatchedIsNotRetained(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.mutex(lock.Config{Retain: time.Hour}))
		own := hold.Session().ID()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == own && r.Op == zktest.OpGetChildren {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		waiting := waits(t.Context(), w.mutex(lock.Config{}).Lock)
		time.Sleep(5 * time.Second)
		w.Control(nil)
		if len(waiting) == 0 {
			t.Fatal("the lock is kept, although nothing watches for other contenders")
		}
		unlock(t, got(t, waiting))
	})
}

// Until the line is watched, a lock that is kept and used again and again tells of others no later than one that is
// handed on.
func TestLockWhoseWatchIsNotSetYetIsNotKeptBeyondTheBound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour, Handoff: lock.Handoff{Time: time.Second}})
		hold := acquire(t, m)
		own := hold.Session().ID()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == own && r.Op == zktest.OpGetChildren {
				return zktest.DelayReply(3 * time.Second)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		waiting := waits(t.Context(), w.mutex(lock.Config{}).Lock)
		time.Sleep(1500 * time.Millisecond)
		unlock(t, acquire(t, m))
		time.Sleep(time.Second)
		if len(waiting) == 0 {
			t.Fatal("the lock is kept, although nothing watches for other contenders yet")
		}
		unlock(t, got(t, waiting))
	})
}

// A server that lags behind shows a lock as free that another client holds by now.
func TestTryLockIsNotFooledByAServerThatLagsBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.mutex(lock.Config{}), w.mutex(lock.Config{})
		unlock(t, locked(t, b.TryLock)) // b has seen it free
		time.Sleep(time.Second)
		hold := locked(t, a.Lock)
		stale := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpGetChildren || stale {
				return zktest.Pass
			}
			stale = true
			return zktest.Stale
		})
		if _, err := b.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) || !stale {
			t.Errorf("got %v, want lock.ErrHeld; asked a server that lags: %v", err, stale)
		}
		w.Control(nil)
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Error(err)
		}
		unlock(t, locked(t, b.TryLock))
	})
}

// Who may not delete in the directory may still not know what has become of a creation.
func TestLostCreationIsFoundWhereNothingMayBeDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		if _, err := sess.Create(t.Context(), "/locks", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		noDelete := []zk.ACL{{Perms: zk.PermAll &^ zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: path, ACL: noDelete}); err != nil {
			t.Fatal(err)
		}
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		hold := locked(t, w.mutex(lock.Config{}).Lock)
		if line := w.line(); len(line) != 1 || line[0].Path != hold.Path() {
			t.Errorf("got the line %+v, want the hold's node alone", line)
		}
	})
}
