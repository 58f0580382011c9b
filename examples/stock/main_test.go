package main

import (
	"sync"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 3
func TestEveryItemIsTakenOnce(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	var (
		takers sync.WaitGroup
		mu     sync.Mutex // guards seen
		seen   = make(map[int]bool)
	)
	for range 10 {
		takers.Go(func() {
			left, err := take(t.Context(), client, "/stock")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[left] {
				t.Errorf("two takers left %d", left)
			}
			seen[left] = true
		})
	}
	takers.Wait()
	if _, err := take(t.Context(), client, "/stock"); err == nil {
		t.Error("got an eleventh item out of a stock of ten")
	}
}
