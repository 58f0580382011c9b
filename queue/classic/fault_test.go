package classic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var faults = map[string]zktest.Fault{
	"the request is lost":           zktest.Refuse,
	"the connection is cut":         zktest.CutBefore,
	"the reply is lost":             zktest.DropReply,
	"the connection ends behind it": zktest.CutAfter,
}

// atEveryStep prepares and runs do with a fault at its first request, again with one at its second, and so on until
// it has no further one.
func (w *world) atEveryStep(prepare func(), do func(fault string, step int)) {
	for name, fault := range faults {
		for step := 1; ; step++ {
			prepare()
			reached := false
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Seq != step {
					return zktest.Pass
				}
				reached = true
				return fault
			})
			do(name, step)
			w.Control(nil)
			if !reached {
				break
			}
		}
	}
}

// The layouts have no room for a mark in an item: without the receipts a put whose reply is lost would be made twice
// or not at all.
//
// Promise: 7
func TestPutMakesOneItemWhateverHitsItAtWhicheverStep(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		reader := w.queue(k)
		w.atEveryStep(func() {}, func(fault string, step int) {
			client := w.Client(t, timeout)
			must(t, w.queueOf(k, client).put(t.Context(), "body"))
			w.Control(nil)
			_ = client.Close() // a connection that was just cut need not tell the server
			if got := drain(t, reader); len(got) != 1 || got[0] != "body" {
				t.Errorf("%s at step %d: got %q, want one item", fault, step, got)
			}
		})
	})
}

// Removing and locking, reading, ending: an item whose deletion's reply is lost is neither lost nor delivered twice.
//
// Promise: 7
func TestTakeHandsOutEachItemOnceWhateverHitsItAtWhicheverStep(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		writer := w.queue(k)
		var want []string
		w.atEveryStep(func() { want = fill(t, writer, 3) }, func(fault string, step int) {
			client := w.Client(t, timeout)
			got := drain(t, w.queueOf(k, client))
			w.Control(nil)
			_ = client.Close() // a connection that was just cut need not tell the server
			if !slices.Equal(got, want) {
				t.Fatalf("%s at step %d: got %q, want %q", fault, step, got, want)
			}
			if left := append(w.names(k.dir), w.names(k.lockDir())...); len(left) != 0 {
				t.Fatalf("%s at step %d: %q are left", fault, step, left)
			}
		})
	})
}

// mute lets the servers execute the first request that is decisive and says nothing from then on, to that session.
func (w *world) mute(decisive func(zktest.Request) bool) {
	done := false
	w.Control(func(r zktest.Request) zktest.Fault {
		if done || !decisive(r) {
			return zktest.Pass
		}
		done = true
		w.Mute(r.Session)
		return zktest.Mute
	})
}

func isMulti(r zktest.Request) bool { return r.Op == zktest.OpMulti }

// Promise: 7
func TestPutWhoseSessionEndsBeforeTheAnswerIsNotRepeated(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1) // so that the directory is there
		wantBodies(t, drain(t, q), "body 0")
		w.mute(isMulti)
		err := q.put(t.Context(), "body")
		if !errors.Is(err, classic.ErrUnresolved) || !errors.Is(err, zk.ErrLost) {
			t.Errorf("got %v, want ErrUnresolved because of zk.ErrLost", err)
		}
		w.Control(nil)
		wantBodies(t, drain(t, w.queue(k)), "body")
	})
}

// Promise: 7
func TestItemWhoseRemovalNobodyCanTellComesWithTheError(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if k.locks {
			t.Skip("nothing is removed when it is taken")
		}
		fill(t, w.queue(k), 1)
		q := w.queue(k)
		w.mute(isMulti)
		_, err := q.take(t.Context(), true)
		unresolved, ok := errors.AsType[*classic.UnresolvedError](err)
		if !ok || unresolved.Item == nil || string(unresolved.Item.Body()) != "body 0" {
			t.Fatalf("got %v, want an UnresolvedError with the item", err)
		}
		w.Control(nil)
		wantBodies(t, drain(t, w.queue(k))) // the error has the only copy
	})
}

// Promise: 7
func TestTakerThatLeavesDuringTheAnswerGetsTheItem(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		fill(t, w.queue(k), 1)
		q := w.queue(k)
		answer, proceed := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) {
				return zktest.ReplyUntil(answer)
			}
			return zktest.Pass
		})
		if k.locks { // the directory is there already, as when the queue is in use
			must(t, makeAll(t, w, k.lockDir()))
		}
		ctx, leave := context.WithCancel(t.Context())
		type result struct {
			x   *taken
			err error
		}
		got := make(chan result, 1)
		go func() {
			x, err := q.take(ctx, true)
			got <- result{x, err}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		proceed()
		r := <-got
		if r.err != nil || r.x.body != "body 0" {
			t.Fatalf("got %v, %v, want the item that was taken", r.x, r.err)
		}
		must(t, r.x.done(t.Context()))
		w.Control(nil)
		wantBodies(t, drain(t, w.queue(k)))
	})
}

func makeAll(t *testing.T, w *world, dir string) error {
	t.Helper()
	sess := w.Session(t, timeout)
	for i, c := range dir + "/" {
		if c == '/' && i > 0 {
			_, err := sess.Create(t.Context(), dir[:i], nil, zk.Persistent)
			if err != nil && !errors.Is(err, zk.NodeExists) {
				return err
			}
		}
	}
	return nil
}

// Promise: 7
func TestTakerThatLeavesWhileNothingIsThereGoesAtOnce(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := q.take(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		w.NoWatches(t)
	})
}

// CURATOR-623: a consumer whose watch is lost waits for ever; here also if the session goes with it.
//
// Promise: 7
func TestWaitingTakeGoesOnAfterAnOutageAndUnderTheNextSession(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		for _, outage := range []time.Duration{timeout / 2, 3 * timeout} {
			client := w.Client(t, timeout)
			q := w.queueOf(k, client)
			got := make(chan *taken, 1)
			go func() {
				if x, err := q.take(t.Context(), true); err != nil {
					t.Error(err)
				} else {
					got <- x
				}
			}()
			synctest.Wait()
			w.Cut()
			time.Sleep(outage)
			w.Heal()
			fill(t, w.queue(k), 1)
			x := <-got
			if x.body != "body 0" {
				t.Errorf("after %v: got %q", outage, x.body)
			}
			must(t, x.done(t.Context()))
			must(t, client.Close())
		}
	})
}

// CURATOR-308: the directory goes with its last item, or another client removes it, while a consumer waits.
//
// Promise: 7
func TestWaitingTakeSurvivesTheDirectorysEnd(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q, writer := w.queue(k), w.queue(k)
		fill(t, writer, 1)
		wantBodies(t, drain(t, q), "body 0")
		got := make(chan *taken, 1)
		go func() {
			if x, err := q.take(t.Context(), true); err != nil {
				t.Error(err)
			} else {
				got <- x
			}
		}()
		synctest.Wait()
		if err := w.Session(t, timeout).Delete(t.Context(), k.dir, -1); err != nil && !errors.Is(err, zk.NoNode) {
			t.Fatal(err)
		}
		synctest.Wait()
		fill(t, writer, 1)
		x := <-got
		must(t, x.done(t.Context()))
		if x.body != "body 0" {
			t.Errorf("got %q", x.body)
		}
	})
}

// Promise: 7
func TestReceiptsThatOthersDeleteAreMadeAnew(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1)
		dir := k.receiptDir()
		receipts := w.names(dir)
		if len(receipts) != 1 {
			t.Fatalf("got receipts %q, want one: no two writes were under way", receipts)
		}
		sess := w.Session(t, timeout)
		must(t, sess.Delete(t.Context(), dir+"/"+receipts[0], -1))
		must(t, sess.Delete(t.Context(), dir, -1))
		must(t, q.put(t.Context(), "body 1"))
		wantBodies(t, drain(t, q), "body 0", "body 1")
	})
}

// A server whose limit is lower than Config.MaxPacket drops the connection at each try.
func TestPutThatEndsTheConnectionEachTimeFails(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) && len(r.Parts) > 1 { // not the write that finds out whether the put was done
				return zktest.Refuse
			}
			return zktest.Pass
		})
		if err := q.put(t.Context(), "body"); err == nil || errors.Is(err, classic.ErrUnresolved) {
			t.Errorf("got %v, want an error that leaves nothing open", err)
		}
		w.Control(nil)
		wantBodies(t, drain(t, q), "body 0")
	})
}

// A goroutine that looks aside must not make the others forget that an item is left in the queue.
func TestItemThatATakerLeavesIsNotOvertakenByLaterOnes(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		want := fill(t, q, 3)
		left := false
		ctx, leave := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && !left {
				left = true
				leave()
			}
			return zktest.Pass
		})
		x, err := q.take(ctx, true)
		w.Control(nil)
		if err == nil { // it came all the same: with a lock the answer is awaited
			must(t, x.done(t.Context()))
			want = want[1:]
		}
		wantBodies(t, drain(t, q), want...)
	})
}

// A leader shows its clients a tree without what is still on its way through the quorum, also after a sync. So after
// a write whose reply was lost all reads are behind, until a write of the same session has been answered.
func (w *world) readsBehind() {
	behind, done := false, false
	w.Control(func(r zktest.Request) zktest.Fault {
		switch r.Op {
		case zktest.OpCreate, zktest.OpMulti, zktest.OpDelete, zktest.OpSetData:
			if !done && (r.Op == zktest.OpMulti || strings.HasPrefix(r.Path, path)) {
				behind, done = true, true
				return zktest.DropReply
			}
			behind = false
		case zktest.OpGetChildren, zktest.OpGetData, zktest.OpExists:
			if behind {
				return zktest.Answer(zk.NoNode)
			}
		default:
		}
		return zktest.Pass
	})
}

// Promise: 7
func TestOutcomeIsFoundThoughReadsAreBehind(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1) // so that the directory is there
		wantBodies(t, drain(t, q), "body 0")
		w.readsBehind()
		must(t, q.put(t.Context(), "body"))
		w.Control(nil)
		wantBodies(t, drain(t, q), "body")
		want := fill(t, q, 3)
		w.readsBehind()
		got := drain(t, q)
		w.Control(nil)
		wantBodies(t, got, want...)
	})
}

// loseOne loses the next transaction on its way to the server. Late does what it asked for, which must be refused by
// then: a partition may hold a request up until the link heals.
func (w *world) loseOne() (late func(sess *zk.Session)) {
	w.t.Helper()
	var lost []zktest.Part
	w.Control(func(r zktest.Request) zktest.Fault {
		if lost != nil || !isMulti(r) {
			return zktest.Pass
		}
		lost = r.Parts
		return zktest.Refuse
	})
	return func(sess *zk.Session) {
		w.t.Helper()
		w.Control(nil)
		if len(lost) != 2 {
			w.t.Fatalf("the transaction that was lost has %d operations, want 2", len(lost))
		}
		ops := []zk.Op{zk.SetOp(lost[0].Path, nil, lost[0].Version)}
		if node := lost[1]; node.Op == zktest.OpDelete {
			ops = append(ops, zk.DeleteOp(node.Path, node.Version))
		} else {
			ops = append(ops, zk.CreateOp(node.Path, nil, zk.PersistentSequential))
		}
		if _, err := sess.Multi(w.t.Context(), ops...); !errors.Is(err, zk.BadVersion) {
			w.t.Errorf("the late transaction: got %v, want that it is refused because of its receipt's version", err)
		}
	}
}

func TestTransactionThatComesTooLateIsRefused(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		client := w.Client(t, timeout)
		sess, err := client.Session(t.Context())
		must(t, err)
		q := w.queueOf(k, client)
		fill(t, q, 1) // so that the directories are there
		wantBodies(t, drain(t, q), "body 0")

		late := w.loseOne()
		must(t, q.put(t.Context(), "body"))
		late(sess)

		late = w.loseOne()
		x, err := q.take(t.Context(), true)
		must(t, err)
		late(sess)
		if !k.locks {
			wantBodies(t, drain(t, q))
			return
		}

		late = w.loseOne()
		must(t, x.item.Release(t.Context()))
		other, err := w.queue(k).take(t.Context(), true)
		must(t, err)
		late(sess)
		if held, err := other.item.Held(t.Context()); err != nil || !held {
			t.Errorf("the next one's lock: %v, %v", held, err)
		}
		must(t, other.done(t.Context()))
		if left := append(w.names(k.dir), w.names(k.lockDir())...); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// A consumer that leaves while the lock of its item is removed leaves no lock behind.
func TestReleaseGoesOnWhenItsCallerHasLeft(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		q := w.queue(k)
		fill(t, q, 1)
		x, err := q.take(t.Context(), true)
		must(t, err)
		ctx, leave := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) && ctx.Err() == nil {
				leave()
				return zktest.Refuse
			}
			return zktest.Pass
		})
		if err := x.item.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		other, err := w.queue(k).take(t.Context(), true)
		must(t, err)
		must(t, other.done(t.Context()))
	})
}

// A list that is too large stays too large: a consumer gets an error, and puts go on.
//
// Promise: 7
func TestListThatIsTooLargeIsAnErrorAndNotAskedForAgain(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		fill(t, w.queue(k), 100)
		cfg := w.Config(timeout)
		cfg.MaxFrame = 1 << 10
		q := w.queueOf(k, w.clientOf(cfg))
		lists := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren {
				lists++
			}
			return zktest.Pass
		})
		for i, wait := range []bool{false, true} {
			if _, err := q.take(t.Context(), wait); !errors.Is(err, zk.ErrReplyTooLarge) {
				t.Errorf("got %v, want that the list is too large", err)
			}
			if lists != i+1 {
				t.Errorf("the queue was listed %d times by %d calls", lists, i+1)
			}
		}
		must(t, q.put(t.Context(), "one more"))
	})
}

// The same goes for an item. It stays, and no lock stays on it.
//
// Promise: 7
func TestItemThatIsTooLargeIsAnErrorAndIsLeftAlone(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		writer := w.queue(k)
		body := strings.Repeat("x", 2<<10)
		must(t, writer.put(t.Context(), body))
		cfg := w.Config(timeout)
		cfg.MaxFrame = 1 << 10
		if _, err := w.queueOf(k, w.clientOf(cfg)).take(t.Context(), true); !errors.Is(err, zk.ErrReplyTooLarge) {
			t.Errorf("got %v, want that the item is too large", err)
		}
		wantBodies(t, drain(t, writer), body)
	})
}

// A caller that leaves while the client finds out whether the put was done still gets the outcome.
func TestPutWhoseCallerLeavesWithItsReplyLostIsAccountedFor(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1) // so that the directory is there
		wantBodies(t, drain(t, q), "body 0")
		for _, row := range []struct {
			fault zktest.Fault
			want  error
			in    []string
		}{{zktest.DropReply, nil, []string{"body"}}, {zktest.Refuse, context.Canceled, nil}} {
			ctx, leave := context.WithCancel(t.Context())
			w.Control(func(r zktest.Request) zktest.Fault {
				if isMulti(r) && r.Nth == 1 {
					leave()
					return row.fault
				}
				return zktest.Pass
			})
			if err := q.put(ctx, "body"); !errors.Is(err, row.want) || errors.Is(err, classic.ErrUnresolved) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			w.Control(nil)
			wantBodies(t, drain(t, q), row.in...)
		}
	})
}

// An operator deletes the lock of an item, and another consumer takes the item at once.
//
// Promise: 2, 11
func TestConsumerWhoseLockWasReplacedIsToldAndLeavesTheOthersAlone(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		for name, end := range map[string]func(*classic.Item, context.Context) error{
			"Done": (*classic.Item).Done, "Requeue": (*classic.Item).Requeue, "Release": (*classic.Item).Release,
		} {
			for _, after := range []time.Duration{0, time.Second} { // before the lock is watched, and later
				q, operator := w.queue(k), w.Session(t, timeout)
				fill(t, q, 1)
				x, err := q.take(t.Context(), true)
				must(t, err)
				lock := k.lockDir() + "/" + x.item.Name()
				time.Sleep(after)
				_, err = operator.Multi(t.Context(), zk.DeleteOp(lock, -1),
					zk.CreateNodeOp(zk.Node{Path: lock, Data: []byte("another's"), Mode: zk.Ephemeral}))
				must(t, err)
				err = end(x.item, t.Context())
				if name == "Release" && err != nil || name != "Release" && !errors.Is(err, classic.ErrLost) {
					t.Errorf("%s after %v: got %v", name, after, err)
				}
				wantBodies(t, w.names(k.lockDir()), x.item.Name())
				wantBodies(t, w.names(k.dir), x.item.Name())
				must(t, operator.Delete(t.Context(), lock, -1))
				wantBodies(t, drain(t, q), "body 0")
			}
		}
	})
}

// Promise: 2
func TestHoldEndsWhenItsLockIsDeletedOrReplaced(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		for name, also := range map[string]func(lock string) []zk.Op{
			"deleted": func(string) []zk.Op { return nil },
			"replaced": func(lock string) []zk.Op {
				return []zk.Op{zk.CreateNodeOp(zk.Node{Path: lock, Mode: zk.Ephemeral})}
			},
		} {
			q, operator := w.queue(k), w.Session(t, timeout)
			fill(t, q, 1)
			x, err := q.take(t.Context(), true)
			must(t, err)
			lock := k.lockDir() + "/" + x.item.Name()
			time.Sleep(time.Second)
			_, err = operator.Multi(t.Context(), append([]zk.Op{zk.DeleteOp(lock, -1)}, also(lock)...)...)
			must(t, err)
			synctest.Wait()
			if cause := context.Cause(x.item.Context()); !errors.Is(cause, classic.ErrLost) {
				t.Errorf("%s: the context's cause is %v, want ErrLost", name, cause)
			}
			if also(lock) != nil {
				must(t, operator.Delete(t.Context(), lock, -1))
			}
			wantBodies(t, drain(t, q), "body 0")
		}
	})
}

// The lock's watch is no loss: the consumer itself removes it.
func TestEndedItemSaysThatItIsFinished(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		for _, held := range []time.Duration{0, time.Second} {
			q := w.queue(k)
			fill(t, q, 1)
			x, err := q.take(t.Context(), true)
			must(t, err)
			time.Sleep(held)
			must(t, x.done(t.Context()))
			if cause := context.Cause(x.item.Context()); !errors.Is(cause, core.ErrFinished) {
				t.Errorf("held for %v: the context's cause is %v, want queue.ErrFinished", held, cause)
			}
			synctest.Wait()
			w.NoWatches(t)
		}
	})
}

// loseReceipt makes the answer of the next transaction unknown: its reply is lost, or with zktest.Refuse the request,
// and another client deletes the receipt before this one has looked. Do is what sends the transaction.
func (w *world) loseReceipt(k kind, fault zktest.Fault, do func() error) error {
	w.t.Helper()
	operator := w.Session(w.t, timeout)
	deleted, proceed := context.WithCancel(w.t.Context())
	defer proceed()
	receipt := ""
	w.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case !isMulti(r) || !strings.HasPrefix(r.Parts[0].Path, k.receiptDir()):
		case receipt == "" && len(r.Parts) > 1:
			receipt = r.Parts[0].Path
			return fault
		case r.Parts[0].Path == receipt:
			return zktest.Until(deleted)
		}
		return zktest.Pass
	})
	done := make(chan error, 1)
	go func() { done <- do() }()
	synctest.Wait()
	must(w.t, operator.Delete(w.t.Context(), receipt, -1))
	proceed()
	err := <-done
	w.Control(nil)
	return err
}

// Promise: 4
func TestLockThatMayHaveBeenMadeIsRemoved(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		client := w.Client(t, timeout)
		q := w.queueOf(k, client)
		fill(t, q, 1)
		must(t, makeAll(t, w, k.lockDir()))
		err := w.loseReceipt(k, zktest.DropReply, func() error {
			_, err := q.take(t.Context(), true)
			return err
		})
		if !errors.Is(err, classic.ErrUnresolved) || strings.Contains(err.Error(), "session") {
			t.Errorf("got %v, want ErrUnresolved because of the receipt, not of a session", err)
		}
		synctest.Wait() // it is removed in the background
		wantBodies(t, drain(t, w.queue(k)), "body 0")
		if left := w.names(k.lockDir()); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// Promise: 4
func TestLockIsRemovedHoweverOftenThatIsLost(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("there are no locks")
		}
		q := w.queue(k)
		fill(t, q, 1)
		x, err := q.take(t.Context(), true)
		must(t, err)
		must(t, w.loseReceipt(k, zktest.Refuse, func() error { return x.item.Release(t.Context()) }))
		x, err = q.take(t.Context(), true)
		must(t, err)
		lost := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) && len(r.Parts) > 1 && lost < 30 {
				lost++
				return zktest.Refuse
			}
			return zktest.Pass
		})
		must(t, x.item.Release(t.Context()))
		w.Control(nil)
		wantBodies(t, drain(t, q), "body 0")
		if left := w.names(k.lockDir()); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

func (k kind) receiptDir() string {
	if k.dir != path {
		return path + "/__receipts__"
	}
	return path + "-__receipts__"
}

func TestReceiptIsUsedAgainAfterALostReply(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		for range 3 {
			fill(t, q, 1)
			for _, fault := range []zktest.Fault{zktest.DropReply, zktest.Refuse} {
				w.Control(func(r zktest.Request) zktest.Fault {
					if isMulti(r) && r.Nth == 1 {
						return fault
					}
					return zktest.Pass
				})
				fill(t, q, 1)
				w.Control(nil)
			}
		}
		if receipts := w.names(k.receiptDir()); len(receipts) != 1 {
			t.Errorf("got receipts %q, want one: no two writes were under way", receipts)
		}
	})
}

// A receipt ends with its session, and may do so just when it is to tell what has become of a write of the next one.
func TestReceiptOfAnEarlierSessionIsNotUsed(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		client := w.Client(t, timeout)
		q := w.queueOf(k, client)
		fill(t, q, 1)
		earlier := k.receiptDir() + "/" + w.names(k.receiptDir())[0]
		sess, err := client.Session(t.Context())
		must(t, err)
		w.ExpireSession(sess.ID())
		used := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) && r.Parts[0].Path == earlier {
				used++
			}
			return zktest.Pass
		})
		<-sess.Context().Done()
		fill(t, q, 1)
		w.Control(nil)
		if used != 0 {
			t.Errorf("the next session has used it %d times", used)
		}
	})
}

// Two have seen an item, and one has finished it when the other's lock is made.
func TestLockOfAnItemThatIsGoneIsRemoved(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("items have no locks")
		}
		other := w.queue(k)
		fill(t, other, 1)
		must(t, makeAll(t, w, k.lockDir()))
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMulti(r) && r.Nth == 1 {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		late := make(chan error, 1)
		q := w.queue(k)
		go func() {
			_, err := q.take(t.Context(), false)
			late <- err
		}()
		synctest.Wait()
		wantBodies(t, drain(t, other), "body 0")
		proceed()
		if err := <-late; !errors.Is(err, classic.ErrEmpty) {
			t.Errorf("got %v, want ErrEmpty", err)
		}
		synctest.Wait()
		if left := w.names(k.lockDir()); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// An operator deletes the directory of the locks each time a consumer is about to make one in it.
func TestTakeMakesTheLocksDirectoryAsOftenAsItIsDeleted(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("items have no locks")
		}
		q, operator := w.queue(k), w.Session(t, timeout)
		fill(t, w.queue(k), 1)
		deleted := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if deleted == 5 || !slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
				return p.Op == zktest.OpCreate && strings.HasPrefix(p.Path, k.lockDir()+"/")
			}) {
				return zktest.Pass
			}
			deleted++
			until, proceed := context.WithCancel(t.Context())
			go func() {
				defer proceed()
				if err := operator.Delete(t.Context(), k.lockDir(), -1); err != nil && !errors.Is(err, zk.NoNode) {
					t.Error(err)
				}
			}()
			return zktest.Until(until)
		})
		wantBodies(t, drain(t, q), "body 0")
		if deleted != 5 {
			t.Errorf("deleted %d times, want 5", deleted)
		}
	})
}
