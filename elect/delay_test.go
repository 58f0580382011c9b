package elect_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const delay = 2 * time.Minute // longer than anything else in these tests takes

// lose loses the leadership as a crash does: its session falls silent and times out. It returns when its node went.
func (w *world) lose(l *elect.Leadership) time.Time {
	w.t.Helper()
	w.HalfOpen(l.Session().ID())
	_, there, watch, err := w.session().ExistsW(w.t.Context(), l.Path())
	if err != nil {
		w.t.Fatal(err)
	}
	defer watch.Close()
	if there {
		if _, err := watch.Next(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return time.Now()
}

func waited(t *testing.T, lost time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(lost); took < want || took > want+30*time.Second {
		t.Errorf("the next one led %v after the loss, want %v", took, want)
	}
}

// A leader with a Delay that is lost keeps the next one waiting; one that resigns does not.
//
// Promise: 2
func TestNobodyLeadsForTheDelayOfALostLeader(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		if layout == elect.LeaderElectionSupport {
			continue // it has no delay
		}
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				delayed := func(id string) *elect.Candidate {
					return w.candidate(id, elect.Config{Layout: layout, Delay: delay})
				}
				first := win(t, delayed("a"))
				waiting := campaign(t.Context(), delayed("b"))
				lost := w.lose(first)
				synctest.Wait()
				if _, err := delayed("c").TryCampaign(t.Context()); !errors.Is(err, elect.ErrLed) {
					t.Errorf("got %v, want elect.ErrLed", err)
				}
				second := won(t, waiting)
				waited(t, lost, delay)
				if second.Token() <= first.Token() {
					t.Errorf("got token %d after %d", second.Token(), first.Token())
				}

				next := campaign(t.Context(), delayed("d"))
				resigned := time.Now()
				resign(t, second)
				third := won(t, next)
				waited(t, resigned, 0)

				lost = w.lose(third) // the line is empty, and only the mark tells of the loss
				if _, err := delayed("e").TryCampaign(t.Context()); !errors.Is(err, elect.ErrLed) {
					t.Errorf("got %v, want elect.ErrLed", err)
				}
				resign(t, win(t, delayed("f")))
				waited(t, lost, delay)
				names, _, err := w.session().Children(t.Context(), elect.DelayPath(path))
				if err != nil && !errors.Is(err, zk.NoNode) || len(names) > 0 {
					t.Errorf("left behind: %v, %v", names, err)
				}
			})
		})
	}
}

// A leader that another client forces out has not resigned.
//
// Promise: 2
func TestNobodyLeadsForTheDelayOfALeaderThatWasForcedOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{Delay: delay})
		l := win(t, c)
		_, err := lock.Revoke(t.Context(), w.Client(t, timeout), path, lock.RevokeOptions{Grace: 1, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		lost := time.Now()
		<-l.Context().Done()
		_ = l.Resign() // comes too late
		resign(t, win(t, w.candidate("b", elect.Config{Delay: delay})))
		waited(t, lost, delay)
	})
}

// Every session of the candidate expires as soon as it stands in line.
func TestCampaignIsTriedAgainAsOftenAsRetrySays(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				l := win(t, w.candidate("a", elect.Config{Layout: layout}))
				again := elect.Forever(10 * time.Second).Times(2)
				c := w.candidate("b", elect.Config{Layout: layout, Retry: again})
				observer := w.candidate("", elect.Config{Layout: layout})
				begin, waiting := time.Now(), campaign(t.Context(), c)
				sessions := 0
				for len(waiting) == 0 && time.Since(begin) < time.Hour {
					synctest.Wait()
					list, err := observer.Participants(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if len(list) > 1 {
						sessions++
						w.ExpireSession(list[1].Session)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if r := <-waiting; !errors.Is(r.err, zk.ErrExpired) || sessions != 3 {
					t.Errorf("gave up after %d sessions with %v, want 3 and why the last was lost", sessions, r.err)
				}
				if took := time.Since(begin); took < 20*time.Second {
					t.Errorf("it gave up after %v, want two pauses of 10s", took)
				}
				resign(t, l)
			})
		})
	}
}
