package elect_test

// Deadlocks through elections.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/test/waiter"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// campaignInside stands for election at /leader, as a program that gives way.
func campaignInside(
	ctx context.Context, t *testing.T, client *zk.Client, layout elect.Layout, told chan<- elect.Event,
) (*elect.Leadership, error) {
	t.Helper()
	c, err := elect.NewCandidate(client, "/leader", "id", elect.Config{
		Layout: layout, OnDeadlock: lock.FailWait, Hooks: elect.Hooks{Deadlock: func(e elect.Event) { told <- e }},
	})
	if err != nil {
		t.Error(err)
		return nil, err
	}
	return c.Campaign(ctx)
}

func mutexAt(t *testing.T, client *zk.Client, path string) *lock.Mutex {
	t.Helper()
	m, err := lock.NewMutex(client, path, lock.Config{OnDeadlock: lock.FailWait})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Three processes: the leader wants /a, the holder of /a wants /b, and the holder of /b wants to lead.
func TestDeadlockThroughAnElectionEnds(t *testing.T) {
	t.Parallel()
	for _, layout := range []elect.Layout{
		elect.LeaderLatch, elect.LeaderSelector, elect.KazooElection, elect.Both, elect.LeaderElectionSupport,
	} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			told := make(chan elect.Event, 10)
			one, two := srv.Client(t, time.Minute), srv.Client(t, time.Minute)
			three := srv.Client(t, time.Minute)
			leader, err := campaignInside(t.Context(), t, one, layout, told)
			if err != nil {
				t.Fatal(err)
			}
			a, err := mutexAt(t, two, "/a").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b, err := mutexAt(t, three, "/b").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			results := make(chan error, 2)
			go func() {
				h, err := mutexAt(t, one, "/a").Lock(leader.Context())
				if err == nil {
					err = h.Unlock()
				}
				results <- errors.Join(err, leader.Resign())
			}()
			go func() {
				h, err := mutexAt(t, two, "/b").Lock(a.Context())
				if err == nil {
					err = h.Unlock()
				}
				results <- errors.Join(err, a.Unlock())
			}()
			waiter.Await(t, one, "/a")
			waiter.Await(t, two, "/b")
			_, err = campaignInside(b.Context(), t, three, layout, told) // the last that came
			var d *lock.DeadlockError
			if !errors.As(err, &d) || len(d.Steps) != 3 || d.Steps[0].Path != "/leader" ||
				d.Steps[0].Token != leader.Token() || d.Steps[1].Path != "/a" || d.Steps[2].Path != "/b" {
				t.Errorf("got %v", err)
			}
			if err := b.Unlock(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
			if e := <-told; e.Path != "/leader" || e.ID == 0 || !errors.Is(e.Err, lock.ErrDeadlock) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// Candidates whose layouts do not see each other do not wait for each other, so a circle through both of them is none.
func TestElectionsOfOtherLayoutsAreNoDeadlock(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	told := make(chan elect.Event, 10)
	one, two, three := srv.Client(t, time.Minute), srv.Client(t, time.Minute), srv.Client(t, time.Minute)
	latch, err := campaignInside(t.Context(), t, one, elect.LeaderLatch, told)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := campaignInside(t.Context(), t, three, elect.LeaderElectionSupport, told)
	if err != nil {
		t.Fatal(err)
	}
	a, err := mutexAt(t, two, "/a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	locked, elected := make(chan error, 1), make(chan error, 1)
	go func() {
		h, err := mutexAt(t, one, "/a").Lock(latch.Context())
		if err == nil {
			err = h.Unlock()
		}
		locked <- err
	}()
	waiter.Await(t, one, "/a")
	go func() { // inside of what the leader of the one layout waits for, it waits for the leader of the other
		l, err := campaignInside(a.Context(), t, two, elect.LeaderElectionSupport, told)
		if err == nil {
			err = l.Resign()
		}
		elected <- err
	}()
	for { // both waits are told, and looked at
		found, err := two.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if names, _, _ := found.Children(t.Context(), lock.DefaultWaitsPath); len(names) >= 2 {
			break
		}
		time.Sleep(time.Millisecond) // real: until the records are there
	}
	found, err := lock.Deadlocks(t.Context(), one, "")
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
	if err := errors.Join(offer.Resign(), <-elected, a.Unlock(), <-locked); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("told of %+v", <-told)
	}
}
