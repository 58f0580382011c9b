package zktest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// injectFault injects a fault into a random session and heals it after a while. It never makes the server expire a
// session early, because a client that cannot be reached at that moment cannot learn of the loss in time.
func injectFault(srv *zktest.Server, random *rand.Rand) {
	ids := srv.Connected()
	if len(ids) == 0 {
		srv.Heal()
		return
	}
	id := ids[random.IntN(len(ids))]
	if random.IntN(10) == 0 {
		id = 0 // every session
	}
	var sessions []int64
	if id != 0 {
		sessions = []int64{id}
	}
	switch random.IntN(7) {
	case 0:
		srv.Drop(sessions...)
	case 1:
		srv.Cut(sessions...)
	case 2:
		srv.HalfOpen(sessions...)
	case 3:
		srv.Mute(sessions...)
	case 4:
		srv.Freeze(sessions...)
	case 5:
		srv.Delay(time.Duration(random.IntN(2000))*time.Millisecond, sessions...)
	case 6:
		srv.HoldWatches(sessions...)
	}
	time.AfterFunc(time.Duration(random.IntN(15_000))*time.Millisecond, func() {
		srv.Heal(sessions...)
		srv.ReleaseWatches(sessions...)
	})
}

// TestLockInChaos runs clients that acquire and release a lock while their connections suffer. All clocks are exact
// and the same, so two holders at once mean that the earlier one did not learn of its loss in time.
func TestLockInChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { lockInChaos(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func lockInChaos(t *testing.T, random *rand.Rand) {
	t.Helper()
	const clients, uses = 5, 5
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	var n zktest.Net
	srv := zktest.Run(t, zktest.On(&n), zktest.Tick(500*time.Millisecond))
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.CutAfter, zktest.Mute, zktest.DelayReply(time.Second),
	}
	dice := rand.New(rand.NewPCG(random.Uint64(), 0)) // of the control function only
	srv.Control(func(zktest.Request) zktest.Fault {
		if i := dice.IntN(200); i < len(faults) {
			return faults[i]
		}
		return zktest.Pass
	})
	shared := resource{pause: time.Millisecond}
	var wg sync.WaitGroup
	for range clients {
		timeout := time.Duration(2000+random.IntN(20_000)) * time.Millisecond
		m, err := lock.NewMutex(srv.Client(t, timeout), "/lock", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		taste := rand.New(rand.NewPCG(random.Uint64(), 1))
		wg.Go(func() {
			for range uses {
				useOnce(ctx, t, &shared, m, time.Duration(taste.IntN(int(2*timeout))))
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	for over := false; !over; {
		select {
		case <-finished:
			over = true
		case <-time.After(time.Duration(random.IntN(8000)) * time.Millisecond):
			injectFault(srv, random)
		}
	}
	srv.Control(nil)
	srv.Heal()
	srv.ReleaseWatches()
	<-time.After(time.Minute) // for sessions that only the server still knows
	srv.NoNodes(t, "/lock")
	srv.NoWatches(t)
}
