package lock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func shelves(n int) []string {
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("/locks/warehouse-berlin/shelf-%05d", i))
	}
	return paths
}

// A set's request grows with its paths and not with their square, and their parents are made together.
func TestSetOfManyPathsIsTakenInFewRoundTrips(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lock.SetConfig{{}, {Layout: lock.Both}, {Delay: delay}} {
		t.Run(fmt.Sprint(cfg.Layout, cfg.Delay), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				paths := shelves(400)
				client := w.Client(t, 20*time.Second)
				s, err := lock.NewSet(client, paths, cfg)
				if err != nil {
					t.Fatal(err)
				}
				session(t, client)
				const oneWay = 100 * time.Millisecond
				w.Delay(oneWay)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				hold, err := s.Lock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if trips := int(time.Since(began) / (2 * oneWay)); trips > 10 {
					t.Errorf("took %d round trips", trips)
				}
				w.Heal()
				first, err := lock.Inspect(t.Context(), client, paths[0])
				if err != nil || len(first) != 1 || !slices.Equal(first[0].Owner.Set, paths) {
					t.Errorf("at the first path: got %+v, %v, want the set's paths", first, err)
				}
				other, err := lock.Inspect(t.Context(), client, paths[7])
				if err != nil || len(other) != 1 || !slices.Equal(other[0].Owner.Set, paths[:1]) {
					t.Errorf("at another: got %+v, %v, want the first of the set's paths", other, err)
				}
				unlock(t, hold)
				synctest.Wait()
				w.empty(paths[0], paths[7], paths[399])
			})
		})
	}
}

// A request that servers would drop is not sent. It would be repeated for ever, and cost the session its connection
// each time.
//
// Promise: 9
func TestWhatDoesNotFitIntoARequestIsRefusedBeforeItIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		long := "/" + strings.Repeat("x", 1<<20)
		made := map[string]error{}
		_, made["mutex"] = lock.NewMutex(client, long, lock.Config{})
		_, made["read/write lock"] = lock.NewRWMutex(client, long, lock.RWConfig{})
		_, made["semaphore"] = lock.NewSemaphore(client, long, lock.AgreedLimit(1), lock.SemaphoreConfig{})
		_, made["simple"] = lock.NewSimple(client, long, lock.SimpleConfig{})
		_, made["set"] = lock.NewSet(client, shelves(5000), lock.SetConfig{})
		_, made["label"] = lock.NewMutex(client, path, lock.Config{Label: strings.Repeat("x", 1025)})
		_, made["ACL"] = lock.NewMutex(client, path, lock.Config{ACL: make([]zk.ACL, 10_000)})
		for what, err := range made {
			if err == nil || len(err.Error()) > 1000 {
				t.Errorf("%s: got %.100v, want a short error", what, err)
			}
		}
		s := semaphore(t, client, lock.AgreedLimit(lock.MaxPermits),
			lock.SemaphoreConfig{Label: strings.Repeat("x", 1024)})
		session(t, client)
		before := w.Traffic().Requests
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if hold, err := s.Acquire(ctx, lock.MaxPermits); err == nil {
			t.Error("many permits with a long label each: got no error")
			unlock(t, hold)
		}
		for op, n := range w.Traffic().Requests {
			if n != before[op] {
				t.Errorf("%d requests were sent: %s", n-before[op], op)
			}
		}
		unlock(t, locked(t, permits{s, 300}.Lock))
	})
}
