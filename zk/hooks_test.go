package zk_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A hookLog writes down what hooks are told.
type hookLog struct {
	mu       sync.Mutex // guards the fields below
	requests []zk.RequestDone
	proofs   []zk.ProofDone
	certain  []time.Time
	opened   []zk.SessionOpened
	ended    []error
	lines    []string // of sessions and connections
	bad      []string
}

func (l *hookLog) hooks() zk.Hooks {
	locked := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
	line := func(s string) { locked(func() { l.lines = append(l.lines, s) }) }
	return zk.Hooks{
		Request: func(_ context.Context, r zk.RequestDone) { locked(func() { l.requests = append(l.requests, r) }) },
		Proof:   func(p zk.ProofDone) { locked(func() { l.proofs = append(l.proofs, p) }) },
		Certain: func(until time.Time) { locked(func() { l.certain = append(l.certain, until) }) },
		Opened: func(s zk.SessionOpened) {
			line("opened")
			locked(func() { l.opened = append(l.opened, s) })
		},
		Ended: func(id int64, cause error) {
			line("ended")
			locked(func() {
				l.ended = append(l.ended, cause)
				if n := len(l.opened); n != len(l.ended) || l.opened[n-1].ID != id {
					l.bad = append(l.bad, "ended twice, or before it was opened")
				}
			})
		},
		Connected:    func(string) { line("connected") },
		Disconnected: func(_ string, err error) { line("disconnected") },
	}
}

// read returns what was told, once everything has come to rest, and forgets it.
func (l *hookLog) read() *hookLog {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := &hookLog{
		requests: l.requests, proofs: l.proofs, certain: l.certain, opened: l.opened, ended: l.ended, lines: l.lines,
		bad: l.bad,
	}
	l.requests, l.proofs, l.certain, l.lines = nil, nil, nil, nil
	return got
}

func (l *hookLog) ops() string {
	var ops []string
	for _, r := range l.requests {
		op := r.Op
		if r.Err != nil {
			op += " " + zk.OutcomeOf(r.Err).String()
		}
		ops = append(ops, op)
	}
	return strings.Join(ops, ", ")
}

// logged runs a test with a client whose hooks are logged.
func logged(t *testing.T, test func(t *testing.T, srv *zktest.Server, l *hookLog, c *zk.Client, s *zk.Session)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		l := new(hookLog)
		cfg := srv.Config(ownTimeout)
		cfg.Hooks = l.hooks()
		c, err := zk.Open(t.Context(), cfg)
		must(t, err)
		s, err := c.Session(t.Context())
		must(t, err)
		defer func() {
			srv.Control(nil)
			srv.Heal()
			_ = c.Close()
		}()
		test(t, srv, l, c, s)
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func (l *hookLog) wantOps(t *testing.T, want string) {
	t.Helper()
	if got := l.read().ops(); got != want {
		t.Errorf("told of %q, want %q", got, want)
	}
}

func TestOperationsOfBatchesAreReportedOnceWhoeverReadsThem(t *testing.T) {
	t.Parallel()
	logged(t, func(t *testing.T, srv *zktest.Server, l *hookLog, _ *zk.Client, s *zk.Session) {
		b := s.Batch()
		b.Create("/a", nil, zk.Persistent)
		read := b.Get("/a")
		b.Get("/none")
		b.Multi(zk.CheckOp("/none", -1))
		left := b.GetW("/a")
		late := b.GetW("/a")
		b.Send()
		l.wantOps(t, "create, getData, getData refused, multi refused, getData, getData")
		left.Abandon()
		late.Abandon()
		for range 3 {
			_, err := read.Get(t.Context())
			must(t, err)
		}
		l.wantOps(t, "")

		srv.Control(func(r zktest.Request) zktest.Fault { return zktest.DelayReply(3 * time.Second) })
		left = b.GetW("/a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.Send()
		if _, err := left.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		left.Abandon() // while the reply is under way
		l.wantOps(t, "")
		time.Sleep(5 * time.Second)
		got := l.read()
		if len(got.requests) == 0 || got.requests[0].Took != 3*time.Second || got.requests[0].Path != "/a" {
			t.Errorf("told of %+v, want one request that took 3s", got.requests)
		}
		srv.Control(nil)

		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpDelete {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		b.Delete("/a", -1)
		b.Send()
		time.Sleep(ownTimeout)
		srv.Control(nil)
		l.wantOps(t, "delete unknown")
		b.Get("no path")
		b.Send()
		l.wantOps(t, "getData not sent")
	})
}

func TestOperationsOfBatchesThatAreNeverSentOrEndWithTheSessionAreReported(t *testing.T) {
	t.Parallel()
	logged(t, func(t *testing.T, srv *zktest.Server, l *hookLog, c *zk.Client, s *zk.Session) {
		_, err := s.Create(t.Context(), "/a", nil, zk.Persistent)
		must(t, err)
		_, _, w, err := s.GetW(t.Context(), "/a")
		must(t, err)
		l.wantOps(t, "create, getData")
		b := s.Batch()
		b.Get("/a")
		b.SendOn(w)()
		l.wantOps(t, "getData not sent")
		b.Get("/a")
		b.SendOn(w)
		l.wantOps(t, "")
		srv.Mute()
		b.Delete("/a", -1)
		b.Send()
		l.wantOps(t, "")
		_ = c.Close()
		b.Children("/a")
		b.Send()
		got := l.read()
		slices.SortFunc(got.requests, func(a, b zk.RequestDone) int { return strings.Compare(a.Op, b.Op) })
		if ops := got.ops(); ops != "delete unknown, getChildren not sent, getData not sent" {
			t.Errorf("told of %q", ops)
		}
	})
}

// Close waits, so that the last figures are right.
func TestCloseWaitsForReports(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		n := 0
		cfg := srv.Config(ownTimeout)
		cfg.Hooks.Request = func(context.Context, zk.RequestDone) {
			time.Sleep(time.Millisecond) // it is slow
			n++
		}
		c, err := zk.Open(t.Context(), cfg)
		must(t, err)
		s, err := c.Session(t.Context())
		must(t, err)
		b := s.Batch()
		for range 100 {
			b.Exists("/")
		}
		b.Send()
		must(t, c.Close())
		if n != 100 {
			t.Errorf("told of %d requests, want 100", n)
		}
	})
}

func TestRequestsAreReportedOnceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for range soak.Pick(3, 30) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			logged(t, func(t *testing.T, srv *zktest.Server, l *hookLog, c *zk.Client, _ *zk.Session) {
				reportedOnce(t, srv, l, c, rand.Uint64())
			})
		})
	}
}

func reportedOnce(t *testing.T, srv *zktest.Server, l *hookLog, c *zk.Client, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	random, dice := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.CutAfter, zktest.Mute, zktest.DelayReply(time.Second),
	}
	srv.Control(func(zktest.Request) zktest.Fault {
		if i := dice.IntN(60); i < len(faults) {
			return faults[i]
		}
		return zktest.Pass
	})
	var mu sync.Mutex // guards sent
	sent := 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		sent += n
	}
	var wg sync.WaitGroup
	for range 6 {
		taste := rand.New(rand.NewPCG(seed, random.Uint64()))
		wg.Go(func() {
			for range 100 {
				s, err := c.Session(t.Context())
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(taste.IntN(300))*time.Millisecond)
				if taste.IntN(3) == 0 {
					count(1)
					_, _, _ = s.Exists(ctx, "/")
				}
				b := s.Batch()
				var futures []*zk.Future[zk.WatchedData]
				for range taste.IntN(5) {
					count(1)
					futures = append(futures, b.GetW("/"))
				}
				b.Send()
				for _, f := range futures {
					switch taste.IntN(3) {
					case 0:
						_, _ = f.Get(ctx)
					case 1:
						f.Abandon()
					}
				}
				time.Sleep(time.Duration(taste.IntN(300)) * time.Millisecond)
				cancel()
			}
		})
	}
	for range 10 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		for _, id := range srv.Sessions() {
			switch random.IntN(4) {
			case 0:
				srv.ExpireSession(id)
			case 1:
				srv.Drop(id)
			}
		}
	}
	wg.Wait()
	srv.Control(nil)
	srv.Heal()
	_ = c.Close()
	got := l.read()
	if len(got.requests) != sent {
		t.Errorf("told of %d requests, want %d", len(got.requests), sent)
	}
	if len(got.opened) != len(got.ended) || len(got.bad) > 0 {
		t.Errorf("%d sessions were opened, %d ended; %v", len(got.opened), len(got.ended), got.bad)
	}
	connected := false
	for _, line := range got.lines {
		if line == "connected" || line == "disconnected" {
			if connected == (line == "connected") {
				t.Errorf("%s twice: %v", line, got.lines)
			}
			connected = line == "connected"
		}
	}
	if connected {
		t.Error("connected at the end")
	}
}

// Promise: 2
func TestProofsAndCertaintyAreReported(t *testing.T) {
	t.Parallel()
	logged(t, func(t *testing.T, srv *zktest.Server, l *hookLog, _ *zk.Client, s *zk.Session) {
		_, err := s.Create(t.Context(), "/own", nil, zk.Ephemeral)
		must(t, err)
		time.Sleep(10 * ownTimeout)
		if got := l.read(); len(got.proofs) > 0 || len(got.certain) > 0 {
			t.Errorf("told of %v and %v while nothing is owned", got.proofs, got.certain)
		}
		o := &owner{nodes: []string{"/own"}}
		own := begin(t, s, o)
		time.Sleep(10 * ownTimeout)
		got := l.read()
		if n := len(got.proofs); n < 70 || n > 81 {
			t.Errorf("told of %d proofs in 10 session timeouts, want 80", n)
		}
		for _, p := range got.proofs {
			if p.Nodes != 1 || p.Err != nil || p.Took < 0 {
				t.Errorf("told of the proof %+v", p)
			}
		}
		if n := len(got.certain); n < 70 || n > 161 || !slices.IsSortedFunc(got.certain, time.Time.Compare) {
			t.Errorf("told %d times of certainty, want at most 16 times in a session timeout: %v", n, got.certain)
		}
		if last := got.certain[len(got.certain)-1]; !last.Equal(s.Certain()) {
			t.Errorf("told that it is certain until %v, want %v", last, s.Certain())
		}
		own.End()
		time.Sleep(ownTimeout)
		if got := l.read(); len(got.certain) != 1 || !got.certain[0].IsZero() {
			t.Errorf("told of %v, want the zero time", got.certain)
		}

		_, err = s.Create(t.Context(), "/gone", nil, zk.Ephemeral)
		must(t, err)
		own = begin(t, s, &owner{nodes: []string{"/gone"}})
		must(t, s.Delete(t.Context(), "/gone", -1))
		time.Sleep(ownTimeout)
		if got := l.read(); len(got.proofs) == 0 || !errors.Is(got.proofs[0].Err, zk.NoNode) {
			t.Errorf("told of %v, want a proof that misses a node", got.proofs)
		}
		own.End()

		own = begin(t, s, o)
		time.Sleep(ownTimeout)
		l.read()
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSync || r.Op == zktest.OpMulti {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		for own.Err() == nil {
			time.Sleep(time.Second)
		}
		srv.Control(nil)
		got = l.read()
		if len(got.proofs) == 0 || slices.ContainsFunc(got.proofs, func(p zk.ProofDone) bool {
			return !errors.Is(p.Err, zk.ErrConnectionLost) && !errors.Is(p.Err, zk.ErrLost)
		}) {
			t.Errorf("told of %v, want failed proofs", got.proofs)
		}
		time.Sleep(ownTimeout)
		certain := slices.Concat(got.certain, l.read().certain)
		if len(certain) == 0 || !certain[len(certain)-1].IsZero() {
			t.Errorf("told of %v, want the zero time in the end", certain)
		}
	})
}

func TestSessionsAreReportedWithTheirEnds(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		l := new(hookLog)
		cfg := srv.Config(2 * time.Minute) // more than the server grants
		cfg.Hooks = l.hooks()
		c, err := zk.Open(t.Context(), cfg)
		must(t, err)
		s, err := c.Session(t.Context())
		must(t, err)
		want := zk.SessionOpened{ID: s.ID(), Requested: 2 * time.Minute, Granted: time.Minute}
		if got := l.read(); len(got.opened) != 1 || got.opened[0] != want {
			t.Errorf("told of %+v, want %+v", got.opened, want)
		}
		srv.Drop()
		time.Sleep(time.Second)
		srv.ExpireSession(s.ID())
		<-s.Context().Done()
		s, err = c.Session(t.Context())
		must(t, err)
		srv.Cut()
		<-s.Context().Done()
		srv.Heal()
		_, err = c.Session(t.Context())
		must(t, err)
		must(t, c.Close())
		got := l.read()
		if len(got.opened) != 3 || len(got.ended) != 3 || !errors.Is(got.ended[0], zk.ErrExpired) ||
			!errors.Is(got.ended[1], zk.ErrLost) || !errors.Is(got.ended[2], zk.ErrClosed) || len(got.bad) > 0 {
			t.Errorf("%d sessions were opened and ended for %v; %v", len(got.opened), got.ended, got.bad)
		}
		const lines = "disconnected connected disconnected ended " +
			"opened connected disconnected ended opened connected disconnected ended"
		if all := strings.Join(got.lines, " "); all != lines {
			t.Errorf("told %s", all)
		}
		srv.Cut() // no server makes the next one
		c, err = zk.Open(t.Context(), cfg)
		must(t, err)
		time.Sleep(time.Minute)
		must(t, c.Close())
		if got := l.read(); len(got.lines) > 0 {
			t.Errorf("told %s of a client without a session", got.lines)
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func TestDisconnectsAreReportedWithTheirReasons(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		reasons := make(chan error, 9)
		cfg := srv.Config(ownTimeout)
		cfg.Hooks.Disconnected = func(_ string, err error) { reasons <- err }
		c, err := zk.Open(t.Context(), cfg)
		must(t, err)
		defer c.Close()
		s, err := c.Session(t.Context())
		must(t, err)
		want := func(what string, want error) {
			t.Helper()
			if err := <-reasons; !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
			srv.Control(nil)
			srv.Heal()
			waitState(s, zk.Connected)
		}
		srv.HalfOpen()
		want("the server is silent", zk.ErrNoReply)
		_, err = s.Create(t.Context(), "/own", nil, zk.Ephemeral)
		must(t, err)
		own := begin(t, s, &owner{nodes: []string{"/own"}})
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSync || r.Op == zktest.OpMulti {
				return zktest.DelayReply(time.Minute)
			}
			return zktest.Pass
		})
		want("no quorum answers", zk.ErrNoReply)
		own.End()
		must(t, c.Close())
		for err := range reasons {
			if errors.Is(err, zk.ErrClosed) {
				break
			}
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}
