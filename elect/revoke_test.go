package elect_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// revocation is what a Revoke in the background came to.
type revocation struct {
	list []lock.Revoked
	err  error
}

func (w *world) revoke(opts lock.RevokeOptions) <-chan revocation {
	w.t.Helper()
	ended, client := make(chan revocation, 1), w.Client(w.t, timeout)
	time.Sleep(time.Second) // leaders that have led for a while are the ones that hear
	go func() {
		list, err := lock.Revoke(w.t.Context(), client, path, opts)
		ended <- revocation{list, err}
	}()
	synctest.Wait()
	return ended
}

// A leader that is asked to resign stays the leader until it does: its node, its id and its value stay.
//
// Promise: 2
func TestRevokedLeaderLeadsUntilItResigns(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		if layout == elect.LeaderElectionSupport {
			continue // cannot be asked
		}
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.candidate("a", elect.Config{Layout: layout})
				l := win(t, c)
				if err := l.Proclaim(t.Context(), []byte("10.0.0.1\n80")); err != nil {
					t.Fatal(err)
				}
				next := campaign(t.Context(), w.candidate("b", elect.Config{Layout: layout}))
				ended := w.revoke(lock.RevokeOptions{Reason: "rack 7 moves", Grace: time.Hour})
				<-l.Context().Done()
				revoked, ok := errors.AsType[*elect.RevokedError](context.Cause(l.Context()))
				if !ok || !errors.Is(revoked, elect.ErrRevoked) || revoked.Revocation.Reason != "rack 7 moves" {
					t.Errorf("got cause %v", context.Cause(l.Context()))
				}
				waits(t, next)
				list, err := c.Participants(t.Context())
				if err != nil || len(list) != 2 || list[0].ID != "a" || string(list[0].Value) != "10.0.0.1\n80" {
					t.Errorf("got participants %+v, %v", list, err)
				}
				line, err := lock.Inspect(t.Context(), w.Client(t, timeout), path)
				if err != nil || len(line) != 2 || line[0].Revoked == nil || !line[0].Holder ||
					string(line[0].Data) != "a\n10.0.0.1\n80" || line[1].Revoked != nil {
					t.Errorf("got line %+v, %v", line, err)
				}
				if err := l.Resign(); err != nil {
					t.Errorf("it led until it resigned: %v", err)
				}
				if r := <-ended; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased {
					t.Errorf("got %+v", r)
				}
				resign(t, won(t, next))
			})
		})
	}
}

// OnRevoke may refuse, is asked once for each request, whatever is proclaimed, and again for the next.
//
// Promise: 2
func TestLeaderMayRefuseToResign(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asked := make(chan string, 10)
		var answer atomic.Bool
		l := win(t, w.candidate("a", elect.Config{OnRevoke: func(_ context.Context, r elect.Revocation) bool {
			asked <- r.Reason
			return answer.Load()
		}}))
		for i := range 2 {
			ended := w.revoke(lock.RevokeOptions{Reason: strconv.Itoa(i), Grace: time.Minute})
			for range 3 {
				if err := l.Proclaim(t.Context(), []byte("x")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if r := <-ended; !errors.Is(r.err, lock.ErrKept) {
				t.Errorf("got %+v, want lock.ErrKept", r)
			}
			if reason := <-asked; reason != strconv.Itoa(i) || len(asked) > 0 || l.Context().Err() != nil {
				t.Errorf("asked %q, and %d times more; context %v", reason, len(asked), l.Context().Err())
			}
		}
		// Curator's Revoker overwrites all that a node says, each time anew.
		for range 2 {
			if _, err := w.session().Set(t.Context(), l.Path(), []byte("__REVOKE__"), -1); err != nil {
				t.Fatal(err)
			}
			if reason := <-asked; reason != "" {
				t.Errorf("got reason %q", reason)
			}
		}
		answer.Store(true)
		w.revoke(lock.RevokeOptions{Reason: "now", Grace: time.Minute})
		<-l.Context().Done()
		if !errors.Is(context.Cause(l.Context()), elect.ErrRevoked) {
			t.Errorf("got cause %v", context.Cause(l.Context()))
		}
		resign(t, l)
	})
}

// A request that the leader has not seen is not lost when it proclaims a value at the same time.
//
// Promise: 2
func TestProclamationKeepsARequestToResign(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := win(t, w.candidate("a", elect.Config{})) // so fresh that its node is not watched
		client := w.Client(t, timeout)
		ended := make(chan error, 1)
		go func() {
			_, err := lock.Revoke(t.Context(), client, path, lock.RevokeOptions{Grace: time.Hour})
			ended <- err
		}()
		for range 20 {
			if err := l.Proclaim(t.Context(), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the request is there now, and the leader has not looked
		if err := l.Proclaim(t.Context(), []byte("y")); err != nil {
			t.Fatal(err)
		}
		line, err := lock.Inspect(t.Context(), client, path)
		if err != nil || len(line) != 1 || line[0].Revoked == nil {
			t.Fatalf("got %+v, %v, want a leader that is asked to resign", line, err)
		}
		<-l.Context().Done()
		resign(t, l)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The request to resign comes between the look at the node and the write of the value.
func TestProclamationDoesNotOverwriteARequestToResign(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refuse := func(context.Context, lock.Revocation) bool { return false }
		l := win(t, w.candidate("a", elect.Config{OnRevoke: refuse}))
		held, release := context.WithCancel(t.Context())
		reached := make(chan struct{}, 1)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == l.Session().ID() && r.Op == zktest.OpSetData && r.Path == l.Path() {
				reached <- struct{}{}
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		proclaimed := make(chan error, 1)
		go func() { proclaimed <- l.Proclaim(t.Context(), []byte("x")) }()
		<-reached
		w.Control(nil)
		client := w.Client(t, timeout)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = lock.Revoke(ctx, client, path, lock.RevokeOptions{Grace: time.Hour}) // it is not obeyed
		release()
		if err := <-proclaimed; err != nil {
			t.Fatal(err)
		}
		line, err := lock.Inspect(t.Context(), client, path)
		if err != nil || len(line) != 1 || line[0].Revoked == nil {
			t.Errorf("got %+v, %v, want a leader that is asked to resign", line, err)
		}
		resign(t, l)
	})
}

// Run stands for election again after a revocation, behind the others.
//
// Promise: 2
func TestRunCampaignsAgainAfterARevocation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var lost []error
		hooks := elect.Hooks{Resigned: func(e elect.Event) {
			if e.Err != nil { // the second time it resigns by itself
				lost = append(lost, e.Err)
			}
		}}
		c := w.candidate("a", elect.Config{Hooks: hooks})
		terms, ended := make(chan *elect.Leadership, 2), make(chan error, 1)
		go func() {
			ended <- c.Run(t.Context(), func(ctx context.Context, l *elect.Leadership) error {
				terms <- l
				if len(lost) > 0 {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		<-terms
		next := campaign(t.Context(), w.candidate("b", elect.Config{}))
		w.revoke(lock.RevokeOptions{Grace: time.Hour})
		resign(t, won(t, next))
		<-terms
		if err := <-ended; err != nil || len(lost) != 1 || !errors.Is(lost[0], elect.ErrRevoked) {
			t.Errorf("got %v; lost %v", err, lost)
		}
	})
}

// Nothing is ever written to a candidate's node: a candidate in Java watches for any change of the one ahead, once, and
// would not hear of its deletion.
func TestNoNodeOfLeaderElectionSupportIsWrittenTo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := win(t, w.candidate("a", elect.Config{Layout: elect.LeaderElectionSupport}))
		_, there, changed, err := w.session().ExistsW(t.Context(), l.Path()) // as Java does
		if err != nil || !there {
			t.Fatal(there, err)
		}
		defer changed.Close()
		if err := l.Proclaim(t.Context(), []byte("x")); err == nil {
			t.Error("a value was proclaimed")
		}
		r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Record: true})
		if !errors.Is(r.err, lock.ErrKept) || len(r.list) != 1 {
			t.Errorf("got %+v, want lock.ErrKept", r)
		}
		if ev, fired := changed.Poll(); fired {
			t.Errorf("got event %v", ev)
		}
		r = <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true})
		if r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v", r)
		}
		if ev, err := changed.Next(t.Context()); err != nil || ev.Type != zk.EventDeleted {
			t.Errorf("got event %v, %v", ev, err)
		}
		<-l.Context().Done()
	})
}

// Promise: 2
func TestRequestFromBeforeTheWatchIsHeardByTheLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := win(t, w.candidate("a", elect.Config{}))
		leaving, leave := context.WithCancel(t.Context())
		second := campaign(leaving, w.candidate("b", elect.Config{}))
		third := campaign(t.Context(), w.candidate("c", elect.Config{}))
		line, err := lock.Inspect(t.Context(), w.Client(t, timeout), path)
		if err != nil || len(line) != 3 {
			t.Fatalf("got %+v, %v", line, err)
		}
		if _, err := w.session().Set(t.Context(), line[2].Path, []byte("__REVOKE__"), -1); err != nil {
			t.Fatal(err)
		}
		leave()
		<-second
		synctest.Wait()
		resign(t, first)
		l := won(t, third)
		time.Sleep(time.Second)
		synctest.Wait()
		if cause := context.Cause(l.Context()); !errors.Is(cause, elect.ErrRevoked) {
			t.Errorf("got %v, want elect.ErrRevoked", cause)
		}
		resign(t, l)
	})
}

// An id may be JSON, also with the fields of a lock owner's record.
func TestLeaderWhoseIDIsJSONIsAskedAndKeepsItsID(t *testing.T) {
	t.Parallel()
	for _, layout := range []elect.Layout{elect.LeaderLatch, elect.LeaderSelector} {
		t.Run(fmt.Sprint(layout), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const id = `{"host":"10.0.0.1","port":8080,"pid":7}`
				c := w.candidate(id, elect.Config{Layout: layout})
				l := win(t, c)
				ended := w.revoke(lock.RevokeOptions{Grace: 10 * time.Second})
				time.Sleep(time.Second) // in a bubble
				list, err := c.Participants(t.Context())
				if l.Context().Err() == nil || err != nil || len(list) != 1 || list[0].ID != id {
					t.Errorf("%v: asked: %v; participants are %+v, %v", layout, l.Context().Err(), list, err)
				}
				resign(t, l)
				if r := <-ended; r.err != nil || r.list[0].Ending != lock.EndingReleased {
					t.Errorf("%v: %+v, %v", layout, r.list, r.err)
				}
			})
		})
	}
}
