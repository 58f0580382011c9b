package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// An ensemble loses its leader twice while producers and consumers work: nothing is lost, nothing is done twice.
func TestQueueOnAnEnsembleThatLosesItsLeader(t *testing.T) {
	t.Parallel()
	cluster := peer.Ensemble(t, 3, peer.Options{})
	open := func() *queue.Queue {
		client, err := zk.Open(t.Context(), zk.Config{Servers: cluster.ConnectString(), Timeout: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() }) // the servers may be gone before
		q, err := queue.New(client, root, queue.Config{}.WithSegment(50))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	const producers = 3
	items := soak.Pick(120, 200)
	l := newLedger(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var consuming, producing sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	defer stop()
	for range 3 {
		q := open()
		consuming.Go(func() {
			for {
				item, err := q.Take(working)
				if err != nil {
					if working.Err() == nil {
						t.Errorf("take: %v", err)
					}
					return
				}
				if item.Context().Err() == nil {
					l.delivered(item)
				}
				err = item.Done(ctx)
				l.done(item, err)
				if err != nil && !errors.Is(err, queue.ErrClaimLost) {
					t.Errorf("done: %v", err)
				}
			}
		})
	}
	half := make(chan struct{}, producers)
	for p := range producers {
		q := open()
		producing.Go(func() {
			for i := range items {
				body := fmt.Sprintf("%d.%d", p, i)
				id, err := q.Put(ctx, queue.Message{Body: []byte(body), Priority: i % 2})
				if err != nil {
					t.Errorf("put: %v", err)
					return
				}
				l.acknowledged(id, body)
				if i == items/3 || i == 2*items/3 {
					half <- struct{}{}
				}
			}
		})
	}
	for range 2 {
		select {
		case <-half:
		case <-ctx.Done():
			t.Fatal("the producers do not get on")
		}
		leader := cluster.AwaitLeader(-1)
		cluster.Kill(leader)
		cluster.AwaitLeader(leader)
		cluster.Restart(leader)
	}
	go func() {
		for range half { // the other producers'
			continue
		}
	}()
	producing.Wait()
	close(half)
	last := open()
	for {
		n, err := last.Len(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == (queue.Counts{}) {
			break
		}
		time.Sleep(50 * time.Millisecond) // nothing tells when consumers on other servers have finished
	}
	stop()
	consuming.Wait()
	if err := l.judge(); err != nil {
		if i, said := cluster.Odd(); i >= 0 {
			t.Logf("not judged, because ZooKeeper's servers differ: %v\n%s", err, said)
			return
		}
		t.Error(err)
	}
}

func TestEveryWayThroughAQueueOnZooKeeper(t *testing.T) {
	t.Parallel()
	server := peer.ZooKeeper(t, peer.Options{})
	client, err := zk.Open(t.Context(), zk.Config{Servers: server.Addr(0), Timeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	life(t, client, root, func() string { return "on ZooKeeper" }, 20*time.Second)
}
