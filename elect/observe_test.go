package elect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// observe collects what an observer is told, until the context ends: the ids and values, and what ended it.
func observe(ctx context.Context, c *elect.Candidate) (told <-chan string, ended <-chan error) {
	ch, end := make(chan string, 1000), make(chan error, 1)
	go func() {
		for l, err := range c.Observe(ctx) {
			switch {
			case err != nil:
				end <- err
			case l.Nobody():
				ch <- "nobody"
			default:
				ch <- strings.TrimSuffix(fmt.Sprintf("%s %s", l.ID, l.Value), " ")
			}
		}
		close(ch)
	}()
	synctest.Wait()
	return ch, end
}

// tells checks what an observer has been told by now, all of it.
func tells(t *testing.T, told <-chan string, want ...string) {
	t.Helper()
	time.Sleep(time.Second)
	var got []string
	for len(told) > 0 {
		got = append(got, <-told)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the observer was told %q, want %q", got, want)
	}
}

func TestObserverIsToldNowAndAfterEveryChange(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				cfg := elect.Config{Layout: layout}
				ctx, cancel := context.WithCancelCause(t.Context())
				told, ended := observe(ctx, w.candidate("", cfg))
				tells(t, told, "nobody")
				a := win(t, w.candidate("a", cfg))
				tells(t, told, "a")
				waiting := campaign(t.Context(), w.candidate("b", cfg))
				tells(t, told)
				if layout != elect.LeaderElectionSupport { // there, nothing is proclaimed
					for _, value := range []string{"10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:81\nmore"} {
						if err := a.Proclaim(t.Context(), []byte(value)); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second)
					}
					tells(t, told, "a 10.0.0.1:80", "a 10.0.0.1:81\nmore")
				}
				resign(t, a)
				b := won(t, waiting)
				tells(t, told, "b")
				resign(t, b)
				tells(t, told, "nobody")
				resign(t, win(t, w.candidate("c", cfg)))
				time.Sleep(10 * time.Minute) // the path goes, where it is a container
				for len(told) > 0 {
					<-told // c may have been too quick to be seen
				}
				d := win(t, w.candidate("d", cfg))
				tells(t, told, "d")
				why := errors.New("enough")
				cancel(why)
				if err := <-ended; !errors.Is(err, why) {
					t.Errorf("ended with %v, want the context's cause", err)
				}
				resign(t, d)
				time.Sleep(time.Second)
				w.NoWatches(t)
			})
		})
	}
}

func TestObserverSurvivesReconnectsAndSessions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := w.Client(t, timeout)
		told, _ := observe(ctx, candidate(t, client, "", elect.Config{}))
		tells(t, told, "nobody")
		sess, err := client.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.Cut(sess.ID())
		a := win(t, w.candidate("a", elect.Config{}))
		tells(t, told)
		w.Heal(sess.ID())
		time.Sleep(5 * time.Second)
		tells(t, told, "a")
		w.Cut(sess.ID())
		resign(t, a)
		b := win(t, w.candidate("b", elect.Config{}))
		time.Sleep(2 * timeout)
		w.Heal()
		time.Sleep(10 * time.Second)
		tells(t, told, "b")
		if sess.Err() == nil {
			t.Error("the observer's session has not ended")
		}
		resign(t, b)
		tells(t, told, "nobody")
	})
}

func TestSlowObserverMissesChangesButNotTheLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var got []string
		busy, free := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(busy)
			for l, err := range w.candidate("", elect.Config{}).Observe(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				if got = append(got, l.ID); l.ID == "last" {
					return
				}
				<-free
			}
		}()
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			resign(t, win(t, w.candidate(id, elect.Config{})))
		}
		last := win(t, w.candidate("last", elect.Config{}))
		close(free)
		<-busy
		if fmt.Sprint(got) != "[ last]" {
			t.Errorf("got %q, want nobody and then the last", got)
		}
		resign(t, last)
	})
}

func TestObserverEndsWithItsClient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		_, ended := observe(t.Context(), candidate(t, client, "", elect.Config{}))
		_ = client.Close()
		if err := <-ended; !errors.Is(err, zk.ErrClosed) {
			t.Errorf("got %v, want zk.ErrClosed", err)
		}
	})
}

// A right that is missing at one moment ends no observation. What is seen after it is told, also if it is the same.
func TestObserverOutlivesARefusal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		defer resign(t, leader)
		setACL := func(acl []zk.ACL) {
			t.Helper()
			if _, err := w.session().SetACL(t.Context(), path, acl, -1); err != nil {
				t.Fatal(err)
			}
		}
		client := w.Client(t, timeout)
		var told []string
		for l, err := range candidate(t, client, "", elect.Config{}).Observe(t.Context()) {
			switch {
			case errors.Is(err, zk.NoAuth):
				told = append(told, "refused")
				setACL(zk.OpenACL())
				continue
			case err != nil:
				t.Fatal(err)
			}
			if told = append(told, l.ID); len(told) > 1 {
				break
			}
			setACL([]zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}})
			sess, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.ExpireSession(sess.ID())
		}
		if fmt.Sprint(told) != "[a refused a]" {
			t.Errorf("got %q, want the leader, a refusal, and the leader again", told)
		}
	})
}

// Promise: 6
func TestObserversAreNotWokenByCandidatesBehindTheLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leader := win(t, w.candidate("a", elect.Config{}))
		for range 10 {
			observe(ctx, w.candidate("", elect.Config{}))
		}
		time.Sleep(time.Second)
		before := w.Traffic().Events
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			waiting := campaign(ctx, w.candidate("b", elect.Config{}))
			cancel()
			<-waiting
			time.Sleep(time.Second)
		}
		if n := w.Traffic().Events - before; n != 0 {
			t.Errorf("ten candidates that came and went made %d watch events", n)
		}
		resign(t, leader)
	})
}

func TestProclaimingIsForTheLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := win(t, w.candidate("a", elect.Config{}))
		if err := l.Proclaim(t.Context(), make([]byte, 1<<20)); err == nil || l.Context().Err() != nil {
			t.Errorf("a mebibyte: got %v; the leadership: %v", err, context.Cause(l.Context()))
		}
		if err := l.Proclaim(t.Context(), make([]byte, 1<<19)); err != nil {
			t.Errorf("half of it: %v", err)
		}
		resign(t, l)
		if err := l.Proclaim(t.Context(), []byte("x")); !errors.Is(err, elect.ErrResigned) {
			t.Errorf("after Resign: got %v, want elect.ErrResigned", err)
		}
		l = win(t, w.candidate("c", elect.Config{}))
		if err := w.session().Delete(t.Context(), l.Path(), -1); err != nil {
			t.Fatal(err)
		}
		if err := l.Proclaim(t.Context(), []byte("x")); !errors.Is(err, elect.ErrDeleted) {
			t.Errorf("without its node: got %v, want elect.ErrDeleted", err)
		}
		_ = l.Resign()
		l = win(t, w.candidate("b", elect.Config{}))
		w.ExpireSession(l.Session().ID())
		<-l.Context().Done()
		if err := l.Proclaim(t.Context(), []byte("x")); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("after the session's end: got %v, want zk.ErrExpired", err)
		}
	})
}

func TestProclaimedValueIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		l := win(t, c)
		for _, value := range []string{"", "v", "\n\n"} {
			if err := l.Proclaim(t.Context(), []byte(value)); err != nil {
				t.Fatal(err)
			}
			list, err := c.Participants(t.Context())
			if err != nil || len(list) != 1 || list[0].ID != "a" || string(list[0].Value) != value ||
				list[0].Value == nil || list[0].Token != l.Token() {
				t.Errorf("value %q: got %+v, %v", value, list, err)
			}
		}
		if n := w.Traffic().Requests[zktest.OpSetData]; n != 3 {
			t.Errorf("three values took %d writes", n)
		}
		resign(t, l)
	})
}

// The server of a new connection may be behind the one that was asked before, so an observer asks each of them to
// catch up first.
func TestObserverAsksEachServerToCatchUpFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		resign(t, win(t, w.candidate("a", elect.Config{})))
		c := w.candidate("", elect.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var asked []zktest.Op
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq > 0 {
				asked = append(asked, r.Op)
			}
			return zktest.Pass
		})
		told, ended := observe(ctx, c)
		tells(t, told, "nobody")
		if len(asked) < 2 || asked[0] != zktest.OpSync || asked[1] != zktest.OpGetChildren {
			t.Errorf("asked for %v, want a sync before everything else", asked)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

// A server that is overloaded for a while does not end the observation.
//
// Promise: 4
func TestRefusalThatPassesEndsNoObservation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		resign(t, win(t, w.candidate("a", elect.Config{})))
		for step, reached := 1, true; reached; step++ {
			c := w.candidate("", elect.Config{})
			reached = false
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Seq != step {
					return zktest.Pass
				}
				reached = true
				return zktest.Answer(zk.ThrottledOp)
			})
			ctx, cancel := context.WithCancel(t.Context())
			told, ended := observe(ctx, c)
			tells(t, told, "nobody")
			w.Control(nil)
			leader := win(t, w.candidate("a", elect.Config{}))
			tells(t, told, "a")
			resign(t, leader)
			tells(t, told, "nobody")
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("step %d: got %v, want context.Canceled", step, err)
			}
		}
	})
}

// So many candidates are read in several requests, and told in the order in which they will lead.
func TestThousandsOfParticipantsAreToldInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 3000
		resign(t, win(t, w.candidate("", elect.Config{}))) // makes the path
		sess := w.session()
		b := sess.Batch()
		made := make([]*zk.Future[zk.Created], n)
		want := make([]string, n)
		for i := range made {
			want[i] = fmt.Sprintf("host-%04d", i)
			name := fmt.Sprintf("%s/_c_%08x-0000-4000-8000-000000000000-latch-", path, n-i)
			made[i] = b.CreateNode(zk.Node{Path: name, Data: []byte(want[i]), Mode: zk.EphemeralSequential})
		}
		b.Send()
		for _, f := range made {
			if _, err := f.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.ids(); !slices.Equal(got, want) {
			t.Errorf("got %d participants, want %d in the order of their numbers", len(got), n)
		}
	})
}
