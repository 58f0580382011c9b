package queue_test

import (
	"errors"
	stdpath "path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// forbid makes a node one that only its owner may read.
func forbid(t *testing.T, w *world, path string) {
	t.Helper()
	acl := []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "u:x"}}}
	if _, err := w.Session(t, time.Minute).SetACL(t.Context(), path, acl, -1); err != nil {
		t.Fatal(err)
	}
}

// list returns how many items are in a state, and the error that came after them.
func list(t *testing.T, q *queue.Queue, state queue.State) (n int, failed error) {
	t.Helper()
	for _, err := range q.Items(t.Context(), state) {
		switch {
		case failed != nil:
			t.Error("something came after the error")
		case err != nil:
			failed = err
		default:
			n++
		}
	}
	return n, failed
}

// Items that are too many for an answer that the client accepts are read in several, whoever asks for them.
func TestOperatorWithSmallFramesReachesAllItems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queueWithSmallFrames()
		const n = 50
		for i := range n {
			put(t, q, strings.Repeat(strconv.Itoa(i%10), 3900), queue.Message{})
		}
		if got, err := list(t, q, queue.Ready); got != n || err != nil {
			t.Errorf("got %d items, %v, want %d", got, err, n)
		}
		if _, err := q.Peek(t.Context()); err != nil {
			t.Error(err)
		}
		for _, end := range []func() (int, error){
			func() (int, error) { return q.Requeue(t.Context()) },
			func() (int, error) { return q.PurgeDead(t.Context()) },
		} {
			kill(t, q, n)
			if got, err := end(); got != n || err != nil {
				t.Errorf("got %d letters, %v, want %d", got, err, n)
			}
		}
	})
}

func TestLettersBesideOneThatCannotBeReadAreReached(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		var ids []string
		for range 4 {
			ids = append(ids, put(t, q, "x", queue.Message{}))
			kill(t, q, 1)
		}
		forbid(t, w, root+"/dead/s0000000001/0000000000")
		if n, err := q.Requeue(t.Context(), ids[3]); n != 1 || err != nil {
			t.Errorf("requeue: got %d, %v, want 1", n, err)
		}
		if n, err := q.PurgeDead(t.Context(), ids[2]); n != 1 || err != nil {
			t.Errorf("purge: got %d, %v, want 1", n, err)
		}
		if err := q.Remove(t.Context(), ids[3]); err != nil {
			t.Error(err)
		}
		if n, err := list(t, q, queue.Dead); n != 1 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("list: got %d, %v, want 1, and then NoAuth", n, err)
		}
		if err := q.Remove(t.Context(), ids[0]); !errors.Is(err, zk.NoAuth) {
			t.Errorf("remove: got %v, want NoAuth", err)
		}
		if n, err := q.Requeue(t.Context()); n != 1 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("requeue all: got %d, %v, want 1 and NoAuth", n, err)
		}
	})
}

// Promise: 7
func TestPurgeLeavesOnlyWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]queue.Message{"delayed": {Delay: time.Hour}, "waiting": {Group: "g"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				if m.Group != "" {
					put(t, q, "head", m)
					defer done(t, take(t, q))
				}
				for i := range 3 {
					if _, _, err := q.PutOnce(t.Context(), strconv.Itoa(i), m); err != nil {
						t.Fatal(err)
					}
				}
				path := root + "/delayed"
				if m.Group != "" {
					path = root + "/groups"
					path += "/" + w.children(path)[0]
				}
				for range 2 {
					path = stdpath.Join(path, w.children(path)[0])
				}
				forbid(t, w, path+"/0000000001")
				put(t, q, "ready", queue.Message{})
				if n, err := q.Purge(t.Context()); n != 3 || !errors.Is(err, zk.NoAuth) {
					t.Errorf("got %d, %v, want 3 and NoAuth", n, err)
				}
				if c, err := q.Len(t.Context()); c.Ready+c.Delayed+c.Waiting != 1 || err != nil {
					t.Errorf("left: %+v, %v, want one", c, err)
				}
				if err := w.Session(t, time.Minute).Delete(t.Context(), path+"/0000000001", -1); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// Promise: 7
func TestPurgeGoesOnBehindAPriorityThatItCannotRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 3)
		put(t, q, "later", queue.Message{Priority: 5})
		forbid(t, w, line0+"/s0000000001/0000000001")
		if n, err := q.Purge(t.Context()); n != 2 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("got %d, %v, want 2 and NoAuth", n, err)
		}
		wantLen(t, q, queue.Counts{Ready: 2})
	})
}
