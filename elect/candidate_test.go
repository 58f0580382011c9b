package elect_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	path    = "/app/leader"
	timeout = 20 * time.Second
)

// world is a server, and time, that belong to one test: nothing here takes real time, and what waits is known to wait.
type world struct {
	*zktest.Server
	t   *testing.T
	net *zktest.Net
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		test(t, &world{zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute)), t, &net})
	})
}

// candidate returns a candidate with a client of its own.
func (w *world) candidate(id string, cfg elect.Config) *elect.Candidate {
	w.t.Helper()
	return candidate(w.t, w.Client(w.t, timeout), id, cfg)
}

func candidate(t *testing.T, client *zk.Client, id string, cfg elect.Config) *elect.Candidate {
	t.Helper()
	c, err := elect.NewCandidate(client, path, id, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) session() *zk.Session {
	w.t.Helper()
	return w.Session(w.t, timeout)
}

// ids returns who stands for election, the leader first.
func (w *world) ids() []string {
	w.t.Helper()
	list, err := w.candidate("", elect.Config{}).Participants(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for i, p := range list {
		if p.Leads != (i == 0) {
			w.t.Errorf("participant %d: leads is %t", i, p.Leads)
		}
		ids = append(ids, p.ID)
	}
	return ids
}

func win(t *testing.T, c *elect.Candidate) *elect.Leadership {
	t.Helper()
	l, err := c.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// result is what a Campaign in the background came to.
type result struct {
	leadership *elect.Leadership
	err        error
}

// campaign campaigns in the background and returns when the candidate stands in line, or leads.
func campaign(ctx context.Context, c *elect.Candidate) <-chan result {
	won := make(chan result, 1)
	go func() {
		l, err := c.Campaign(ctx)
		won <- result{l, err}
	}()
	synctest.Wait()
	return won
}

func won(t *testing.T, c <-chan result) *elect.Leadership {
	t.Helper()
	r := <-c
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.leadership
}

func waits(t *testing.T, c <-chan result) {
	t.Helper()
	synctest.Wait()
	if len(c) > 0 {
		r := <-c
		t.Fatalf("it does not wait: %+v, %v", r.leadership, r.err)
	}
}

func resign(t *testing.T, l *elect.Leadership) {
	t.Helper()
	if err := l.ResignWait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Promise: 5
func TestCandidatesLeadInTheOrderOfTheirArrival(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var waiting []<-chan result
		for _, id := range []string{"a", "b", "c", "d"} {
			waiting = append(waiting, campaign(t.Context(), w.candidate(id, elect.Config{})))
		}
		if got := w.ids(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("got participants %v", got)
		}
		var last elect.Token
		for i, c := range waiting {
			l := won(t, c)
			if l.Token() <= last {
				t.Errorf("leader %d has token %d after %d", i, l.Token(), last)
			}
			last = l.Token()
			for _, later := range waiting[i+1:] {
				waits(t, later)
			}
			resign(t, l)
			if cause := context.Cause(l.Context()); !errors.Is(cause, elect.ErrResigned) {
				t.Errorf("got cause %v, want elect.ErrResigned", cause)
			}
		}
		w.NoNodes(t, path)
	})
}

// A candidate that leaves the middle promotes no other: that a predecessor is gone is not a reason to lead.
func TestWaiterThatLeavesTheMiddleElectsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		ctx, cancel := context.WithCancelCause(t.Context())
		middle := campaign(ctx, w.candidate("b", elect.Config{}))
		last := campaign(t.Context(), w.candidate("c", elect.Config{}))
		why := errors.New("enough")
		cancel(why)
		if r := <-middle; !errors.Is(r.err, why) {
			t.Errorf("got %v, want the context's cause", r.err)
		}
		time.Sleep(time.Minute)
		waits(t, last)
		if got := w.ids(); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("got participants %v, want a and c", got)
		}
		resign(t, leader)
		resign(t, won(t, last))
	})
}

func TestCampaignCalledOffWhileItsCreationIsOnItsWayLeavesNoNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		resign(t, win(t, c)) // makes the parents
		held, answer := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate {
				return zktest.ReplyUntil(held)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithCancel(t.Context())
		waiting := campaign(ctx, c)
		cancel()
		if r := <-waiting; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", r.err)
		}
		answer()
		time.Sleep(time.Second)
		w.NoNodes(t, path)
	})
}

// Promise: 4
func TestReplyLostAfterCreateMakesOneNode(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := w.candidate("a", elect.Config{Layout: layout})
				resign(t, win(t, c))
				w.Control(func(r zktest.Request) zktest.Fault {
					if (r.Op == zktest.OpCreate || r.Op == zktest.OpMulti) && r.Nth <= 3 {
						return zktest.DropReply
					}
					return zktest.Pass
				})
				l := win(t, c)
				nodes := len(l.Guards())
				if names, _, err := w.session().Children(t.Context(), path); err != nil || len(names) != nodes {
					t.Errorf("got nodes %v, %v, want %d", names, err, nodes)
				}
				resign(t, l)
				w.NoNodes(t, path)
			})
		})
	}
}

// Latches that started anew with every reconnect have made millions of nodes.
func TestReconnectsMakeNoNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		var waiting []<-chan result
		for range 5 {
			waiting = append(waiting, campaign(t.Context(), w.candidate("b", elect.Config{})))
		}
		before, places := w.Traffic().Requests, w.ids()
		for range 20 {
			w.Drop()
			time.Sleep(5 * time.Second)
		}
		after := w.Traffic().Requests
		writes := func(n map[zktest.Op]int) int { return n[zktest.OpCreate] + n[zktest.OpDelete] }
		if n := writes(after) - writes(before); n != 0 {
			t.Errorf("20 reconnects of 6 candidates made and deleted %d nodes", n)
		}
		if got := w.ids(); !slices.Equal(got, places) || leader.Context().Err() != nil {
			t.Errorf("the line changed from %v to %v; the leader: %v", places, got, context.Cause(leader.Context()))
		}
		resign(t, leader)
		for _, c := range waiting {
			resign(t, won(t, c))
		}
	})
}

// The node of a session that has ended here may be in the line for a while yet. No candidate leads by it, neither its
// maker nor another.
//
// Promise: 1
func TestNodeOfTheFormerSessionElectsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		former := win(t, c)
		dark := time.Now()
		w.HalfOpen(former.Session().ID())
		<-former.Context().Done()
		again := campaign(t.Context(), c) // by another session, over another connection
		for time.Since(dark) < timeout-time.Second {
			if got := w.ids(); len(got) != 2 {
				t.Fatalf("after %v: got participants %v, want the former node and the new one", time.Since(dark), got)
			}
			waits(t, again)
			time.Sleep(500 * time.Millisecond)
		}
		l := won(t, again)
		if l.Session() == former.Session() || l.Path() == former.Path() || l.Token() <= former.Token() {
			t.Errorf("got %s, token %d after %s, %d", l.Path(), l.Token(), former.Path(), former.Token())
		}
		resign(t, l)
	})
}

// Promise: 2
func TestLeaderIsToldBeforeAnybodyElseCanLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		next := campaign(t.Context(), w.candidate("b", elect.Config{}))
		w.HalfOpen(leader.Session().ID())
		dark := time.Now()
		<-leader.Context().Done()
		told := time.Since(dark)
		if cause := context.Cause(leader.Context()); !errors.Is(cause, zk.ErrLost) {
			t.Errorf("got cause %v, want zk.ErrLost", cause)
		}
		waits(t, next)
		resign(t, won(t, next))
		if in := time.Since(dark); told > timeout*3/4 || in-told < timeout/4 {
			t.Errorf("told after %v, next leader after %v, with a timeout of %v", told, in, timeout)
		}
		if err := leader.Resign(); !errors.Is(err, zk.ErrLost) {
			t.Errorf("Resign of a lost leadership: got %v, want zk.ErrLost", err)
		}
	})
}

func TestCampaignGoesOnAfterThePathWasDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		next := campaign(t.Context(), w.candidate("b", elect.Config{}))
		time.Sleep(time.Second)
		sess := w.session()
		names, _, err := sess.Children(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		// All in one transaction, so that no candidate comes in between. Both candidates join again.
		ops := []zk.Op{}
		for _, name := range names {
			ops = append(ops, zk.DeleteOp(path+"/"+name, -1))
		}
		if _, err := sess.Multi(t.Context(), append(ops, zk.DeleteOp(path, -1))...); err != nil {
			t.Fatal(err)
		}
		l := won(t, next)
		<-leader.Context().Done()
		if cause := context.Cause(leader.Context()); !errors.Is(cause, elect.ErrDeleted) {
			t.Errorf("got cause %v, want elect.ErrDeleted", cause)
		}
		if err := leader.Resign(); !errors.Is(err, elect.ErrDeleted) {
			t.Errorf("Resign: got %v, want elect.ErrDeleted", err)
		}
		resign(t, l)
	})
}

func TestCampaignWithoutAServerWinsWhenThereIsOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Cut()
		waiting := campaign(t.Context(), w.candidate("a", elect.Config{}))
		time.Sleep(10 * time.Second)
		waits(t, waiting)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.candidate("b", elect.Config{}).Campaign(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want the deadline, and of what election", err)
		}
		w.Heal()
		resign(t, won(t, waiting))
	})
}

func TestSessionThatEndsWhileWaitingJoinsAgainUnderTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		client := w.Client(t, timeout)
		waiting := campaign(t.Context(), candidate(t, client, "b", elect.Config{}))
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.ExpireSession(sess.ID())
		time.Sleep(time.Second)
		if got := w.ids(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got participants %v, want a and b", got)
		}
		waits(t, waiting)
		resign(t, leader)
		resign(t, won(t, waiting))
	})
}

func TestClosedClientEndsCampaignAndLeadership(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.Client(t, timeout), w.Client(t, timeout)
		leader := win(t, candidate(t, first, "a", elect.Config{}))
		waiting := campaign(t.Context(), candidate(t, second, "b", elect.Config{}))
		_ = second.Close()
		if r := <-waiting; !errors.Is(r.err, zk.ErrClosed) {
			t.Errorf("got %v, want zk.ErrClosed", r.err)
		}
		_ = first.Close()
		if cause := context.Cause(leader.Context()); !errors.Is(cause, zk.ErrClosed) {
			t.Errorf("got cause %v, want zk.ErrClosed", cause)
		}
		w.NoNodes(t, path)
	})
}

func TestCandidateWithoutAccessIsToldAndDoesNotLoop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.session()
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/app", ACL: zk.ReadOnlyACL()}); err != nil {
			t.Fatal(err)
		}
		_, err := w.candidate("a", elect.Config{}).Campaign(t.Context())
		if !errors.Is(err, zk.NoAuth) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want zk.NoAuth, and of what election", err)
		}
	})
}

func TestGuardRefusesTheWritesOfAFormerLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.session()
		if _, err := sess.Create(t.Context(), "/stock", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		l := win(t, w.candidate("a", elect.Config{}))
		if _, err := l.Session().Multi(t.Context(), l.Guard(), zk.SetOp("/stock", []byte("1"), -1)); err != nil {
			t.Errorf("the leader's write: %v", err)
		}
		resign(t, l)
		_, err := l.Session().Multi(t.Context(), l.Guard(), zk.SetOp("/stock", []byte("2"), -1))
		if !errors.Is(err, zk.NoNode) {
			t.Errorf("the former leader's write: got %v, want zk.NoNode", err)
		}
	})
}

// The next in line leads as soon as one message has gone from the leader to the server and one from the server to the
// next.
//
// Promise: 6
func TestHandOverTakesOneRoundTrip(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const way = 50 * time.Millisecond
		leader := win(t, w.candidate("a", elect.Config{}))
		next := campaign(t.Context(), w.candidate("b", elect.Config{}))
		last := campaign(t.Context(), w.candidate("c", elect.Config{}))
		time.Sleep(time.Second)
		w.Delay(way)
		before, events, begin := w.Traffic().Requests[zktest.OpGetChildren], w.Traffic().Events, time.Now()
		if err := leader.Resign(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("Resign waited for %v", took)
		}
		l := won(t, next)
		if took := time.Since(begin); took > 2*way {
			t.Errorf("the hand-over took %v with %v each way", took, way)
		}
		time.Sleep(time.Minute)
		if n := w.Traffic().Requests[zktest.OpGetChildren] - before; n != 0 {
			t.Errorf("the hand-over listed the line %d times", n)
		}
		if n := w.Traffic().Events - events; n != 1 {
			t.Errorf("the hand-over made %d watch events, want 1", n)
		}
		waits(t, last)
		resign(t, l)
		resign(t, won(t, last))
	})
}

func TestResigningTwiceIsResigningOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		l := win(t, c)
		resign(t, l)
		other := win(t, w.candidate("b", elect.Config{}))
		resign(t, l)
		if err := other.Context().Err(); err != nil {
			t.Errorf("the second Resign ended another's leadership: %v", context.Cause(other.Context()))
		}
		resign(t, other)
	})
}

func TestTwoCampaignsOfOneCandidateExcludeEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		l := win(t, c)
		second := campaign(t.Context(), c)
		time.Sleep(time.Minute)
		waits(t, second)
		resign(t, l)
		resign(t, won(t, second))
	})
}

func TestBadInputIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		for _, path := range []string{
			"", "app", "/", "/zookeeper", "/zookeeper/quota", "/a//b", "/a/", "/a/./b", "/a\x00",
			"/" + strings.Repeat("x", 1<<20),
		} {
			if _, err := elect.NewCandidate(client, path, "a", elect.Config{}); err == nil {
				t.Errorf("path %.20q is taken", path)
			}
		}
		for _, id := range []string{"a\nb", "\xff", strings.Repeat("x", 2000)} {
			if _, err := elect.NewCandidate(client, path, id, elect.Config{}); err == nil {
				t.Errorf("id %.20q is taken", id)
			}
		}
		for _, layout := range []elect.Layout{-1, elect.LeaderElectionSupport + 1} {
			if _, err := elect.NewCandidate(client, path, "a", elect.Config{Layout: layout}); err == nil {
				t.Errorf("%v is taken", layout)
			}
		}
		agree := func(context.Context, elect.Revocation) bool { return true }
		for _, cfg := range []elect.Config{
			{Retry: lock.Forever(-1)},
			{Retry: lock.Exponential(time.Second, time.Millisecond)},
			{Delay: -1},
			{Delay: 1, Layout: elect.LeaderElectionSupport},
			{OnRevoke: agree, Layout: elect.LeaderElectionSupport},
		} {
			if _, err := elect.NewCandidate(client, path, "a", cfg); err == nil {
				t.Errorf("%+v is taken", cfg)
			}
		}
		if _, err := elect.NewCandidate(nil, path, "a", elect.Config{}); err == nil {
			t.Error("no client is taken")
		}
	})
}

// Each request of a campaign, a wait and a resignation is refused in turn, for a reason that passes.
//
// Promise: 4
func TestRefusalThatPassesEndsNoCampaign(t *testing.T) {
	t.Parallel()
	for _, code := range []zk.Code{zk.SessionMoved, zk.ThrottledOp} {
		t.Run(code.Error(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step, reached := 1, true; reached; step++ {
					first, second := w.candidate("a", elect.Config{}), w.candidate("b", elect.Config{})
					reached = false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return zktest.Answer(code)
					})
					leader := win(t, first)
					waiting := campaign(t.Context(), second)
					time.Sleep(5 * time.Second)
					waits(t, waiting)
					resign(t, leader)
					resign(t, won(t, waiting))
					time.Sleep(5 * time.Second)
					w.Control(nil)
					if ids := w.ids(); len(ids) != 0 {
						t.Fatalf("step %d: left behind: %v", step, ids)
					}
				}
			})
		})
	}
}

func TestResignWaitAfterResignWaitsUnderTheLeadershipsOwnContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("a", elect.Config{})
		for range 20 {
			l := win(t, c)
			if err := l.Resign(); err != nil {
				t.Fatal(err)
			}
			if err := l.ResignWait(l.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
