package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Whenever during a purge an item is put under a key: afterwards either both are there, or neither counts.
//
// Promise: 7
func TestPurgeRemovesNoItemWithoutItsKey(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]queue.Message{"delayed": {Delay: time.Hour}, "waiting": {Group: "g"}} {
		for when, keys := range map[string]bool{"first key": false, "another key": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					purging, putting := w.Client(t, 20*time.Second), w.Client(t, 20*time.Second)
					step := 1
					for ; putsDuringPurge(t, w, purging, putting, m, keys, step); step++ {
						if t.Failed() {
							t.Fatalf("the put came at step %d", step)
						}
					}
					if step < 6 {
						t.Errorf("the last step is %d", step)
					}
				})
			})
		}
	}
}

// putsDuringPurge puts an item once before the purge's request number step is served, and once afterwards. It returns
// false if there were fewer requests.
func putsDuringPurge(
	t *testing.T, w *world, purging, putting *zk.Client, m queue.Message, keys bool, step int,
) bool {
	t.Helper()
	path := fmt.Sprintf("%s%d", root, step)
	var queues []*queue.Queue
	for _, client := range []*zk.Client{purging, putting} {
		q, err := queue.New(client, path, queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
	}
	q, other := queues[0], queues[1]
	if m.Group != "" {
		put(t, other, "head", m)
		defer done(t, take(t, other))
	}
	put(t, other, "x", m)
	if keys {
		if _, _, err := other.PutOnce(t.Context(), "first", m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Len(t.Context()); err != nil { // it has a session
		t.Fatal(err)
	}
	sess, err := purging.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, release := context.WithCancel(context.Background())
	defer release()
	requests := 0
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != sess.ID() || r.Op == zktest.OpPing {
			return zktest.Pass
		}
		if requests++; requests == step {
			return zktest.Until(held)
		}
		return zktest.Pass
	})
	purged := make(chan error)
	go func() {
		_, err := q.Purge(t.Context())
		purged <- err
	}()
	synctest.Wait()
	if _, added, err := other.PutOnce(t.Context(), "k", m); !added || err != nil {
		t.Fatal(added, err)
	}
	release()
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	w.Control(nil)
	_, added, err := other.PutOnce(t.Context(), "k", m)
	if err != nil {
		t.Fatal(err)
	}
	n, err := other.Len(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n.Delayed+n.Waiting != 1 {
		t.Errorf("put again: added %v, and the queue has %+v, want the item once", added, n)
	}
	return requests >= step
}

func TestPurgeCountsWhatItRemovesOverBrokenConnections(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"removed": zktest.DropReply, "not removed": zktest.Refuse} {
		for state, m := range map[string]queue.Message{"delayed": {Delay: time.Hour}, "waiting": {Group: "g"}} {
			t.Run(state+", "+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q := w.queue(queue.Config{}.WithSegment(30))
					if m.Group != "" {
						put(t, q, "head", m)
						defer done(t, take(t, q))
					}
					const n = 50
					for range n {
						put(t, q, "a", m)
					}
					deletes := 0
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Op != zktest.OpDelete || !strings.HasPrefix(r.Path, root+"/") {
							return zktest.Pass
						}
						if deletes++; deletes == 20 || deletes == 23 {
							return fault
						}
						return zktest.Pass
					})
					got, err := q.Purge(t.Context())
					w.Control(nil)
					if got != n || err != nil {
						t.Errorf("got %d, %v, want %d", got, err, n)
					}
					if deletes < 23 {
						t.Errorf("there were %d deletions", deletes)
					}
					if c, err := q.Len(t.Context()); c.Delayed+c.Waiting != 0 || err != nil {
						t.Errorf("left: %+v, %v", c, err)
					}
				})
			})
		}
	}
}
