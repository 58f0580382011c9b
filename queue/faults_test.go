package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Whichever request of a whole life of a queue gets lost, or its reply, or both: nothing is lost, nothing is
// delivered twice, nothing is out of order and nothing stays behind.
//
// Promise: 7
func TestConnectionLostAtAnyStepChangesNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, 20*time.Second)
				steps := 0
				for step := range soak.Steps(name, faults) {
					reached := false
					var at zktest.Request
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached, at = true, r
						return fault
					})
					path := fmt.Sprintf("%s%d", root, step)
					life(t, client, path, func() string {
						return fmt.Sprintf("fault at step %d, %s %s %v", step, at.Op, at.Path, at.Parts)
					}, 20*time.Second)
					w.Control(nil)
					if !reached {
						break
					}
					for _, dir := range []string{"claims", "consumers", "waiters", "delayed"} {
						w.NoNodes(t, path+"/"+dir)
					}
					if t.Failed() {
						t.Fatalf("fault at step %d, %s %s %v", step, at.Op, at.Path, at.Parts)
					}
					steps = step
				}
				w.NoWatches(t)
				if steps < 60 {
					t.Errorf("the last step with a fault is %d", steps)
				}
			})
		})
	}
}

// life puts items in every way, and finishes them in every way.
func life(t *testing.T, client *zk.Client, path string, where func() string, delay time.Duration) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", where(), err)
		}
	}
	q, err := queue.New(client, path, queue.Config{Linger: time.Hour}.WithSegment(2))
	check(err)
	ids, err := q.PutBatch(t.Context(), messages("a", "b", "c", "d", "e"))
	check(err)
	urgent, err := q.Put(t.Context(), queue.Message{Body: []byte("urgent"), Priority: -1})
	check(err)
	late, err := q.Put(t.Context(), queue.Message{Body: []byte("late"), Delay: delay})
	check(err)
	once, added, err := q.PutOnce(t.Context(), "key", queue.Message{Body: []byte("once")})
	check(err)
	again, addedAgain, err := q.PutOnce(t.Context(), "key", queue.Message{Body: []byte("once more")})
	check(err)
	if !added || addedAgain || again != once {
		t.Fatalf("%s: put once: %q %v, then %q %v", where(), once, added, again, addedAgain)
	}
	next := func(id string, attempt int) *queue.Item {
		t.Helper()
		item, err := q.Take(t.Context())
		check(err)
		if item.ID() != id || item.Attempt() != attempt {
			t.Fatalf("%s: got %q (%s), attempt %d, want %s, attempt %d",
				where(), item.Body(), item.ID(), item.Attempt(), id, attempt)
		}
		return item
	}
	check(next(urgent, 1).Done(t.Context()))
	check(next(ids[0], 1).Done(t.Context()))
	b := next(ids[1], 1)
	check(b.Fail(t.Context(), &queue.RetryError{}))
	check(next(ids[1], 2).Done(t.Context(), zk.CreateOp(path+"/dead/mark", nil, zk.Persistent)))
	c, d := next(ids[2], 1), next(ids[3], 1)
	check(d.Done(t.Context()))
	check(c.Fail(t.Context(), &queue.RetryError{After: time.Second}))
	check(next(ids[4], 1).Reject(t.Context(), "bad"))
	check(next(once, 1).Done(t.Context()))
	check(next(ids[2], 2).Done(t.Context()))
	n, err := q.Requeue(t.Context())
	check(err)
	if n > 1 { // no letter may be counted if the answer was lost
		t.Fatalf("%s: requeued %d", where(), n)
	}
	check(next(ids[4], 1).Done(t.Context()))
	check(next(late, 1).Done(t.Context()))
	if item, err := q.TryTake(t.Context()); !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("%s: got %v, %v, want ErrEmpty", where(), item, err)
	}
	counts, err := q.Len(t.Context())
	check(err)
	if counts != (queue.Counts{}) {
		t.Fatalf("%s: left: %+v", where(), counts)
	}
	check(q.Close(t.Context()))
}

func messages(bodies ...string) []queue.Message {
	var list []queue.Message
	for _, b := range bodies {
		list = append(list, queue.Message{Body: []byte(b)})
	}
	return list
}

// Promise: 7
func TestCrashedConsumersItemsComeBackInTheirPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{Linger: time.Hour}), w.queue(queue.Config{})
		putAll(t, q, 0, 200)
		for i := range 40 { // by now it holds many that were not delivered
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		held := take(t, q)
		session := held.Session()
		w.Cut(session.ID())
		<-held.Context().Done()
		if err := held.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) || !errors.Is(err, zk.ErrLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
		pass(2 * session.Timeout())
		for i := 40; i < 200; i++ {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			// Of what was not handed out one may count as tried: the next.
			if want := 1; item.Attempt() != want && i > 41 || i == 40 && item.Attempt() != 2 {
				t.Errorf("item %d: attempt %d", i, item.Attempt())
			}
			if item.Token() <= held.Token() {
				t.Errorf("item %d: token %d after %d", i, item.Token(), held.Token())
			}
			done(t, item)
		}
		wantEmpty(t, other)
		w.Heal()
		wantEmpty(t, q)
	})
}

// Promise: 7
func TestWaitingConsumerHearsOfACrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		held := take(t, q)
		got := make(chan *queue.Item)
		go takeInto(t, other, got)
		pass(time.Minute)
		w.ExpireSession(held.Session().ID())
		item := <-got
		wantBody(t, item, "a")
		if item.Attempt() != 2 {
			t.Errorf("got attempt %d, want 2", item.Attempt())
		}
		done(t, item)
		<-held.Context().Done()
		if err := held.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
	})
}

// A put whose reply is lost together with its session is found by its receipt, also when the item was consumed
// meanwhile.
//
// Promise: 7
func TestPutIsNotRepeatedWhenItsSessionEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, q, "first", queue.Message{})
		done(t, take(t, other))
		w.Control(func(r zktest.Request) zktest.Fault {
			creates := func(p zktest.Part) bool { return p.Op == zktest.OpCreate }
			if r.Op == zktest.OpMulti && slices.ContainsFunc(r.Parts, creates) && r.Nth == 1 {
				w.Mute(r.Session)
			}
			return zktest.Pass
		})
		result := make(chan error)
		go func() {
			_, err := q.Put(t.Context(), queue.Message{Body: []byte("second")})
			result <- err
		}()
		item := take(t, other)
		wantBody(t, item, "second")
		done(t, item)
		pass(time.Minute) // the producer's session ends
		w.Heal()
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		wantEmpty(t, other)
	})
}

// Promise: 7
func TestRestartOfTheServerLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for i := range 30 {
			put(t, q, strconv.Itoa(i), queue.Message{})
		}
		for i := range 30 {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			if i%7 == 0 {
				w.Restart()
			}
			done(t, item)
		}
		wantEmpty(t, q)
	}, zktest.Durable())
}

// Promise: 7
func TestFormerOwnerCannotFinishAnItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		held := take(t, q)
		sess := w.Session(t, time.Minute)
		names, _, err := sess.Children(t.Context(), root+"/consumers")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := sess.Delete(t.Context(), root+"/consumers/"+names[0], -1); err != nil {
			t.Fatal(err)
		}
		item := take(t, other)
		if item.Attempt() != 2 || item.Token() <= held.Token() {
			t.Errorf("got attempt %d, token %d after %d", item.Attempt(), item.Token(), held.Token())
		}
		if err := held.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
		if _, err := held.Session().Multi(t.Context(), held.Guard()); !errors.Is(err, zk.NoNode) {
			t.Errorf("the former owner's guard: got %v, want NoNode", err)
		}
		<-held.Context().Done()
		done(t, item)
		put(t, q, "b", queue.Message{})
		done(t, take(t, q))
	})
}

// Promise: 7
func TestClaimIsLostWhenTheNodeOfItsConsumerIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, blind := range map[string]bool{"seen by the watch": false, "seen by the next write": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				put(t, q, "a", queue.Message{})
				held := take(t, q)
				node := root + "/consumers/" + w.children(root + "/consumers")[0]
				asks := 0
				w.Control(func(r zktest.Request) zktest.Fault {
					if blind && r.Op == zktest.OpGetData && r.Path == node {
						asks++
						return zktest.Answer(zk.SystemError)
					}
					return zktest.Pass
				})
				_, sess := w.login(t)
				again := zk.CreateNodeOp(zk.Node{Path: node, Mode: zk.Ephemeral})
				if _, err := sess.Multi(t.Context(), zk.DeleteOp(node, -1), again); err != nil {
					t.Fatal(err)
				}
				if blind {
					put(t, q, "b", queue.Message{Delay: 5 * time.Minute})
					item := take(t, q) // it asks for the time
					wantBody(t, item, "b")
					done(t, item)
				}
				synctest.Wait()
				if err := context.Cause(held.Context()); !errors.Is(err, queue.ErrClaimLost) {
					t.Errorf("the item's context: got %v, want ErrClaimLost", err)
				}
				if blind && asks == 0 {
					t.Error("the node was not looked at")
				}
				w.Control(nil)
				if err := sess.Delete(t.Context(), node, -1); err != nil {
					t.Fatal(err)
				}
				item := take(t, q)
				if wantBody(t, item, "a"); item.Attempt() != 2 {
					t.Errorf("got attempt %d, want 2", item.Attempt())
				}
				done(t, item)
			})
		})
	}
}

// A leader shows its clients a tree without what is still on its way through the quorum, also after a sync. So after
// a transaction without an answer all reads are behind, until a write of the same session has been answered. A
// consumer's node exists for longer.
func (w *world) readsBehind(fault zktest.Fault, hit func(zktest.Request) bool) {
	behind, done := false, false
	w.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case !done && hit(r):
			behind, done = true, true
			return fault
		case r.Op == zktest.OpCreate || r.Op == zktest.OpMulti || r.Op == zktest.OpDelete || r.Op == zktest.OpSetData:
			behind = false
		case strings.Contains(r.Path, "/consumers/"):
		case behind && (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetData || r.Op == zktest.OpExists):
			return zktest.Answer(zk.NoNode)
		}
		return zktest.Pass
	})
}

// Promise: 7
func TestOutcomeIsFoundThoughReadsAreBehind(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"request lost": zktest.Refuse, "reply lost": zktest.DropReply} {
		for op, first := range map[string]zktest.Op{
			"claim": zktest.OpCheck, "done": zktest.OpDelete, "given back": zktest.OpSetData,
		} {
			t.Run(op+" "+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q := w.queue(queue.Config{})
					putAll(t, q, 0, 5)
					if op != "claim" {
						items := takeBatch(t, q, 3)
						w.readsBehind(fault, func(r zktest.Request) bool {
							return r.Op == zktest.OpMulti && r.Parts[0].Op == first
						})
						if op == "done" {
							done(t, items[0])
						} else if err := items[0].Fail(t.Context(), &queue.RetryError{}); err != nil {
							t.Fatal(err)
						}
						done(t, items[1])
						done(t, items[2])
					} else {
						w.readsBehind(fault, func(r zktest.Request) bool {
							return r.Op == zktest.OpMulti && r.Parts[0].Op == first
						})
					}
					left := map[string][]string{
						"claim": {"0", "1", "2", "3", "4"}, "done": {"3", "4"}, "given back": {"0", "3", "4"},
					}
					for _, want := range left[op] {
						item := take(t, q)
						wantBody(t, item, want)
						done(t, item)
					}
					w.Control(nil)
					wantEmpty(t, q)
					wantLen(t, q, queue.Counts{})
					w.NoNodes(t, root+"/claims")
				})
			})
		}
	}
}

// below returns the paths of all nodes of a tree, the deepest first.
func below(t *testing.T, sess *zk.Session, top string) []string {
	t.Helper()
	names, _, err := sess.Children(t.Context(), top)
	if err != nil && !errors.Is(err, zk.NoNode) {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		paths = append(paths, below(t, sess, top+"/"+name)...)
	}
	return append(paths, top)
}

// What was in the queue is lost with its nodes; the queue is not (CURATOR-308).
//
// Promise: 7
func TestProducersAndConsumersGoOnWhenTheQueueIsRemoved(t *testing.T) {
	t.Parallel()
	removals := map[string]func(t *testing.T, sess *zk.Session){
		"at once": func(t *testing.T, sess *zk.Session) {
			t.Helper()
			var ops []zk.Op
			for _, path := range below(t, sess, root) {
				ops = append(ops, zk.DeleteOp(path, -1))
			}
			if _, err := sess.Multi(t.Context(), ops...); err != nil {
				t.Fatal(err)
			}
		},
		// Other clients create some again meanwhile, which keeps their parents.
		"one by one": func(t *testing.T, sess *zk.Session) {
			t.Helper()
			for _, path := range below(t, sess, root) {
				err := sess.Delete(t.Context(), path, -1)
				if err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.NotEmpty) {
					t.Fatal(err)
				}
			}
		},
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
				sess := w.Session(t, time.Minute)
				put(t, producer, "before", queue.Message{})
				done(t, take(t, consumer))
				for i := range 3 {
					got := make(chan *queue.Item)
					go takeInto(t, consumer, got)
					synctest.Wait() // it waits
					remove(t, sess)
					synctest.Wait()
					want := strconv.Itoa(i)
					put(t, producer, want, queue.Message{})
					item := <-got
					if item == nil {
						return
					}
					wantBody(t, item, want)
					done(t, item)
				}
				wantEmpty(t, consumer)
				wantLen(t, producer, queue.Counts{})
			})
		})
	}
}

// The server to which the connection is made anew may lag behind: it does not know the receipt yet that tells what
// became of the put.
//
// Promise: 7
func TestPutAsksAServerThatLagsOnlyAfterASync(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		lost, synced, asked := false, false, false
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case !lost && len(r.Parts) > 0 && strings.HasPrefix(r.Parts[0].Path, root+"/receipts/"):
				lost, synced = true, false
				return zktest.DropReply
			case r.Op == zktest.OpSync:
				synced = true
			case r.Op == zktest.OpGetData && lost && strings.HasPrefix(r.Path, root+"/receipts/"):
				asked = true
				if !synced {
					return zktest.Answer(zk.NoNode)
				}
			}
			return zktest.Pass
		})
		put(t, q, "a", queue.Message{})
		w.Control(nil)
		if !asked {
			t.Error("the receipt was not read")
		}
		wantLen(t, q, queue.Counts{Ready: 1})
	})
}
