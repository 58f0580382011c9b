package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const line0 = root + "/ready/p1000"

// An empty open segment at the cursor, with others behind it, would keep all consumers waiting: puts go to the last
// one.
//
// Promise: 7
func TestSegmentThatIsMadeLateIsNeverMadeUnderTheCursor(t *testing.T) {
	t.Parallel()
	for _, byHand := range []bool{false, true} {
		name := "sealed while a producer looks"
		if byHand {
			name = "sealed by hand"
		}
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				cfg := queue.Config{Prefetch: -1}.WithSegment(2)
				producer, late, consumer := w.queue(cfg), w.queue(cfg), w.queue(cfg)
				sess := w.Session(t, time.Minute)
				putAll(t, producer, 0, 2)
				s1, s2 := line0+"/s0000000001", line0+"/s0000000002"
				if byHand {
					if _, err := sess.Set(t.Context(), s1, []byte("small"), 0); err != nil {
						t.Fatal(err)
					}
				}
				holdLook, look := context.WithCancel(t.Context())
				holdMake, makeIt := context.WithCancel(t.Context())
				var session int64
				looked := false
				w.Control(func(r zktest.Request) zktest.Fault {
					if session == 0 && strings.HasPrefix(r.Path, root+"/receipts/") {
						session = r.Session
					}
					makes := func(p zktest.Part) bool { return p.Op == zktest.OpCreate && p.Path == s2 }
					switch {
					case r.Session != session || session == 0:
					case r.Path == s1 && !looked && !byHand:
						looked = true
						return zktest.Until(holdLook)
					case makes(zktest.Part{Op: r.Op, Path: r.Path}), slices.ContainsFunc(r.Parts, makes):
						return zktest.Until(holdMake)
					}
					return zktest.Pass
				})
				stored := make(chan error, 1)
				go func() {
					_, err := late.Put(t.Context(), queue.Message{Body: []byte("late")})
					stored <- err
				}()
				synctest.Wait()
				putAll(t, producer, 2, 3)
				look() // it sees that the first one is sealed, but had seen no second one
				synctest.Wait()
				putAll(t, producer, 3, 5)
				for range 4 {
					done(t, take(t, consumer))
				}
				bounded(t, w, 10000)
				synctest.Wait() // the second segment is removed
				makeIt()
				if err := <-stored; err != nil {
					t.Fatal(err)
				}
				w.Control(nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for range 2 {
					item, err := consumer.Take(ctx)
					if err != nil {
						t.Fatal(err)
					}
					done(t, item)
				}
				wantEmpty(t, consumer)
			})
		})
	}
}

// Promise: 7
func TestPutMendsALineOfWhichSomebodyHasRemovedANode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bell", "s0000000001"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, other, consumer := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
				sess := w.Session(t, time.Minute)
				put(t, producer, "before", queue.Message{})
				done(t, take(t, consumer))
				for _, q := range []*queue.Queue{producer, other} { // one that has put before, and one that has not
					got := make(chan *queue.Item)
					go takeInto(t, consumer, got)
					synctest.Wait()
					if err := sess.Delete(t.Context(), line0+"/"+name, -1); err != nil && q == producer {
						t.Fatal(err)
					}
					bounded(t, w, 1000)
					synctest.Wait()
					put(t, q, "after", queue.Message{})
					wantBody(t, <-got, "after")
				}
			})
		})
	}
}

// The first puts after a removal come at the same time, and each tries to mend.
//
// Promise: 7
func TestPutsThatMendALineAtTheSameTimeMakeOneSegment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, time.Minute)
		consumer := w.queue(queue.Config{})
		put(t, consumer, "before", queue.Message{})
		done(t, take(t, consumer))
		if err := sess.Delete(t.Context(), line0+"/s0000000001", -1); err != nil {
			t.Fatal(err)
		}
		bounded(t, w, 10000)
		errs := make(chan error)
		const n = 20
		for range n {
			q := w.queue(queue.Config{})
			go func() {
				_, err := q.Put(t.Context(), queue.Message{})
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		names, _, err := sess.Children(t.Context(), line0)
		slices.Sort(names)
		if want := []string{"bell", "s0000000002"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("got %v, %v, want %v", names, err, want)
		}
		got := 0
		takeAll(t, consumer, func(*queue.Item) { got++ })
		if got != n {
			t.Errorf("got %d items, want %d", got, n)
		}
	})
}

func TestItemIsGivenBackAlsoIfSomebodyHasRemovedTheBell(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		put(t, producer, "a", queue.Message{})
		item := take(t, consumer)
		if err := sess.Delete(t.Context(), line0+"/bell", -1); err != nil {
			t.Fatal(err)
		}
		bounded(t, w, 1000)
		if err := item.Fail(t.Context(), &queue.RetryError{}); err != nil {
			t.Fatal(err)
		}
		wantBody(t, take(t, consumer), "a")
	})
}

// A consumer makes the directory again in which it is to put an item, also after Close.
//
// Promise: 7
func TestItemIsPutOffAlsoIfSomebodyHasRemovedTheDirectory(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(context.Context, *queue.Item) error{
		"delayed": func(ctx context.Context, item *queue.Item) error { return item.Fail(ctx, errors.New("no")) },
		"free":    func(ctx context.Context, item *queue.Item) error { return item.Fail(ctx, &queue.RetryError{}) },
		"dead":    func(ctx context.Context, item *queue.Item) error { return item.Reject(ctx, "no") },
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closed %v", name, closed), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					consumer := w.queue(queue.Config{})
					putAll(t, consumer, 0, 2)
					items := takeBatch(t, consumer, 2)
					if closed {
						if err := consumer.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					bounded(t, w, 1000)
					for range items { // before it has put any there, and after
						if _, err := w.Session(t, time.Minute).DeleteAll(t.Context(), root+"/"+name); err != nil {
							t.Fatal(err)
						}
						if err := finish(t.Context(), items[0]); err != nil {
							t.Fatal(err)
						}
						items = items[1:]
					}
					got, err := w.queue(queue.Config{}).Len(t.Context())
					n := got.Delayed + got.Dead + len(w.children(root+"/free"))
					if err != nil || n != 1 { // the first was removed with the directory
						t.Errorf("got %d, %v, want 1", n, err)
					}
				})
			})
		}
	}
}

func TestConsumerGivesBackWhatItClaimedAheadAlsoIfSomebodyHasRemovedTheDirectory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		consumer, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, consumer, 0, 100)
		doneInOrder(t, consumer, 0, 20)
		if err := w.Session(t, time.Minute).Delete(t.Context(), root+"/free", -1); err != nil {
			t.Fatal(err)
		}
		bounded(t, w, 1000)
		if err := consumer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Control(nil)
		doneInOrder(t, other, 20, 100)
	})
}

// bounded panics at the given number of requests: in a bubble nothing else would end a loop that asks without end.
func bounded(t *testing.T, w *world, most int) {
	t.Helper()
	n := 0
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpPing {
			return zktest.Pass
		}
		if n++; n > most {
			panic("requests are sent without end")
		}
		return zktest.Pass
	})
}

// A ready list that was removed by hand and created again has the same versions as the former one: a request that was
// meant for that one makes no open segment behind the one at the cursor.
func TestSegmentThatIsMadeLateIsNotMadeInALineMadeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, late, consumer := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		put(t, producer, "lost", queue.Message{})
		s1, s2 := line0+"/s0000000001", line0+"/s0000000002"
		if _, err := sess.Set(t.Context(), s1, []byte("small"), 0); err != nil {
			t.Fatal(err)
		}
		holdMake, makeIt := context.WithCancel(t.Context())
		held := false
		w.Control(func(r zktest.Request) zktest.Fault {
			makes := func(p zktest.Part) bool { return p.Op == zktest.OpCreate && p.Path == s2 }
			if !held && slices.ContainsFunc(r.Parts, makes) {
				held = true
				return zktest.Until(holdMake)
			}
			return zktest.Pass
		})
		stored := make(chan error, 1)
		go func() {
			_, err := late.Put(t.Context(), queue.Message{Body: []byte("late")})
			stored <- err
		}()
		synctest.Wait()
		for _, path := range []string{s1 + "/0000000000", s1, line0 + "/bell", line0} {
			if err := sess.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		put(t, producer, "first", queue.Message{})
		makeIt()
		if err := <-stored; err != nil || !held {
			t.Fatal(held, err)
		}
		w.Control(nil)
		names, _, err := sess.Children(t.Context(), line0)
		slices.Sort(names)
		if want := []string{"bell", "s0000000001"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("got %v, %v, want %v", names, err, want)
		}
		for _, want := range []string{"first", "late"} {
			item := take(t, consumer)
			wantBody(t, item, want)
			done(t, item)
		}
	})
}

// An operator deletes the queue's path before any one request, also while the queue makes its nodes.
func TestWhatAnOperatorDeletesIsMadeAgainWhateverIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *queue.Queue) error{
		"Put": func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Put(ctx, queue.Message{})
			return err
		},
		"PutOnce": func(ctx context.Context, q *queue.Queue) error {
			_, _, err := q.PutOnce(ctx, "k", queue.Message{})
			return err
		},
		"Len": func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Len(ctx)
			return err
		},
		"Purge": func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Purge(ctx)
			return err
		},
		"Pause":   func(ctx context.Context, q *queue.Queue) error { return q.Pause(ctx, "why") },
		"Resume":  func(ctx context.Context, q *queue.Queue) error { return q.Resume(ctx) },
		"SetRate": func(ctx context.Context, q *queue.Queue) error { return q.SetRate(ctx, queue.Rate{}) },
		"Consume": func(ctx context.Context, q *queue.Queue) error {
			ctx, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			return q.Consume(ctx, 1, func(context.Context, *queue.Item) error { return nil })
		},
		"Repeat": func(ctx context.Context, q *queue.Queue) error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			return q.Repeat(ctx, queue.Periodic{
				Name: "p", Schedule: every(time.Minute),
				Message: func(time.Time) queue.Message { return queue.Message{} },
				Put:     func(time.Time, string) { stop() },
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				operator := w.Client(t, 20*time.Second)
				for step, reached := 1, true; reached; step++ {
					q, sess := w.queueAndSession()
					asked := 0
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Session != sess.ID() || r.Seq == 0 {
							return zktest.Pass
						}
						if asked++; asked != step {
							return zktest.Pass
						}
						until, proceed := context.WithCancel(t.Context())
						go func() {
							defer proceed()
							_, err := operator.DeleteAll(t.Context(), "/queues")
							if err != nil && !errors.Is(err, zk.NoNode) {
								t.Error(err)
							}
						}()
						return zktest.Until(until)
					})
					if err := do(t.Context(), q); err != nil {
						t.Errorf("deleted before request %d: %v", step, err)
					}
					w.Control(nil)
					reached = asked >= step
					if _, err := q.Put(t.Context(), queue.Message{}); err != nil {
						t.Errorf("after a deletion before request %d: %v", step, err)
					}
					if err := q.Close(t.Context()); err != nil {
						t.Error(err)
					}
					if _, err := operator.DeleteAll(t.Context(), "/queues"); err != nil && !errors.Is(err, zk.NoNode) {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestPathThatIsDeletedForEverEndsAPut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queueAndSession()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == sess.ID() && r.Path == root && r.Op == zktest.OpCreate {
				return zktest.Answer(zk.NoNode)
			}
			return zktest.Pass
		})
		_, err := q.Put(t.Context(), queue.Message{})
		if err == nil || !strings.Contains(err.Error(), "vanish as often as they are made") {
			t.Errorf("got %v, want that the parents vanish", err)
		}
	})
}

// Two clients find a node at the path that is empty, and both make it the queue's.
func TestEmptyNodeIsMadeAQueueByTwoClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Session(t, time.Minute).CreateAll(t.Context(), zk.Node{Path: root}, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		q, sess := w.queueAndSession()
		until, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == sess.ID() && r.Path == root && r.Op == zktest.OpSetData {
				return zktest.Until(until)
			}
			return zktest.Pass
		})
		stored := make(chan error, 1)
		go func() {
			_, err := q.Put(t.Context(), queue.Message{})
			stored <- err
		}()
		synctest.Wait()
		put(t, w.queue(queue.Config{}), "quicker", queue.Message{})
		proceed()
		if err := <-stored; err != nil {
			t.Error(err)
		}
	})
}
