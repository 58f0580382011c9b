package server

import (
	"testing"
	"testing/synctest"
)

// Waiting for a client that has caught up already would last forever.
func TestOwnerDoesNotWaitForAClientThatHasCaughtUp(t *testing.T) {
	t.Parallel()
	for backlog, want := range map[int64]bool{
		0: false, softBacklog / 2: false, softBacklog/2 + 1: true, softBacklog + 1: true,
	} {
		var o outbox
		o.backlog.Store(backlog)
		if got := o.park(); got != want || o.parked != want {
			t.Errorf("%d bytes unread: got %t, %t, want %t", backlog, got, o.parked, want)
		}
	}
}

func TestUnansweredRequestsOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		size   int // of each request
		fit    int
		beyond int
	}{
		"bounded by number":   {1, maxPending, maxPending / 2},
		"bounded by bytes":    {maxRequests / 4, 4, 2},
		"one above the bound": {2 * maxRequests, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &conn{done: make(chan struct{})}
				c.room = make(chan struct{}, 1)
				request := []item{{size: row.size}}
				for range row.fit {
					if !c.admit(request) {
						t.Fatal("admit: got false, want true")
					}
				}
				admitted := make(chan bool, 1)
				go func() { admitted <- c.admit(request) }()
				left := row.fit
				for ; left > row.beyond; left-- {
					synctest.Wait()
					if len(admitted) > 0 {
						t.Fatalf("admitted one more request with %d unanswered, want it to wait", left)
					}
					c.outbox.mu.Lock()
					c.answered(row.size)
					c.outbox.mu.Unlock()
				}
				if !<-admitted || c.pending != left+1 || c.bytes != (left+1)*row.size {
					t.Errorf("got %d requests of %d bytes, want %d requests", c.pending, c.bytes, left+1)
				}
			})
		})
	}
}
