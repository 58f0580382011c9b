package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Transactions that begin groups fit into packets, also where a long path makes the nodes of the groups large.
//
// Promise: 7
func TestItemsOfNewGroupsFitIntoPackets(t *testing.T) {
	const packet = 200_000
	inWorld(t, func(t *testing.T, w *world) {
		cfg := queue.Config{MaxPacket: packet}.WithSegment(1)
		q, err := queue.New(w.Client(t, 20*time.Second), "/"+strings.Repeat("q", 8000), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for size := 0; size < 20_000; size += 2000 {
			var messages []queue.Message
			for i := range 10 {
				messages = append(messages, queue.Message{
					Body: bytes.Repeat([]byte("x"), size), Group: fmt.Sprint(size, " ", i),
				})
			}
			if _, err := q.PutBatch(t.Context(), messages); err != nil {
				t.Fatalf("items of %d bytes: %v", size, err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, zktest.With(func(c *server.Config) { c.MaxFrame = packet }))
}

// An operator may remove a directory of groups while a client lists what waits in them.
//
// Promise: 7
func TestDirectoryOfGroupsIsRemovedWhileTheyAreListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{Group: "g"})
		done(t, take(t, q))
		part := root + "/groups/" + w.children(root + "/groups")[0]
		held, release := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && r.Path == part {
				if asked++; asked > 1 {
					cancel() // it would ask for ever
				}
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		listed := make(chan error, 1)
		go func() {
			for _, err := range q.Items(ctx, queue.Waiting) {
				listed <- err
				return
			}
			listed <- nil
		}()
		synctest.Wait()
		if err := w.Session(t, time.Minute).Delete(t.Context(), part, -1); err != nil {
			t.Fatal(err)
		}
		release()
		if err := <-listed; err != nil || asked != 1 {
			t.Errorf("got %v after %d looks, want nothing", err, asked)
		}
	})
}
