package queue_test

import (
	"context"
	"errors"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// endAfter calls end with the n-th request, and returns the number of requests.
func endAfter(w *world, n int64, end func()) *atomic.Int64 {
	var requests atomic.Int64
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpPing && requests.Add(1) == n {
			end()
		}
		return zktest.Pass
	})
	return &requests
}

// foreign creates nodes that belong to another program.
func foreign(t *testing.T, w *world, paths ...string) {
	t.Helper()
	sess := w.Session(t, time.Minute)
	for _, path := range paths {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(path, err)
		}
	}
}

// A number in a name is not enough: a name counts only if it is as the queue writes that number.
//
// Promise: 7
func TestNodesWhoseNamesOnlyLookLikeTheQueuesAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ready/p5", "ready/p9999", "ready/p01000", "ready/p1000/s99", "ready/p1000/s9223372036854775807",
		"ready/p1000/s0000000001/5", "delayed/ba5", "delayed/ba00000000000005", "delayed/bd9223372036854775807",
		"delayed/bd4611686018367600000", "dead/s7",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				put(t, q, "a", queue.Message{})
				foreign(t, w, root+"/"+name)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				requests := endAfter(w, 5000, cancel)
				producer := w.queue(queue.Config{})
				for _, m := range []queue.Message{{}, {Delay: time.Second}} {
					if _, err := producer.Put(ctx, m); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					item, err := q.Take(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if err := item.Reject(ctx, "bad"); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := q.PurgeDead(ctx); n != 3 || err != nil {
					t.Fatalf("got %d, %v, want 3 dead letters", n, err)
				}
				if item, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, %v, want that nothing is there", item, err)
				}
				if n := requests.Load(); n > 500 {
					t.Errorf("got %d requests, want fewer", n)
				}
				if _, there, err := w.Session(t, time.Minute).Exists(t.Context(), root+"/"+name); !there || err != nil {
					t.Errorf("got %v, %v, want that the node is still there", there, err)
				}
			})
		})
	}
}

// Promise: 7
func TestNodesOfListsThatAreNotTheQueuesAreNotCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		wantEmpty(t, q)
		for _, list := range []string{"/ready/p5", "/ready/notes", "/delayed/ba5"} {
			segment := root + list + "/s0000000001"
			foreign(t, w, root+list, segment, segment+"/0000000000")
		}
		wantLen(t, q, queue.Counts{})
	})
}

// Promise: 7
func TestForeignNodeAmongTheItemsOfAGroupIsInNobodysWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putGroup(t, q, "g", 0, 2)
		dir := root + "/groups"
		for range 3 { // its part, its list, and the segment of that
			dir = path.Join(dir, w.children(dir)[0])
		}
		foreign(t, w, dir+"/5", path.Dir(dir)+"/x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		endAfter(w, 5000, cancel)
		for range 2 {
			item, err := q.Take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := item.Done(ctx); err != nil {
				t.Fatal(err)
			}
		}
		putGroup(t, q, "g", 2, 3)
		for dir = root + "/groups"; len(w.children(dir)) > 0; {
			dir = path.Join(dir, w.children(dir)[0])
		}
		foreign(t, w, dir+"/5", dir+"/5/x") // which cannot go with the list
		item := take(t, q)
		if err := item.Done(ctx); !errors.Is(err, zk.NotEmpty) {
			t.Errorf("got %v, want NotEmpty", err)
		}
		if err := w.Session(t, time.Minute).Delete(t.Context(), dir+"/5/x", -1); err != nil {
			t.Fatal(err)
		}
		done(t, item)
	})
}
