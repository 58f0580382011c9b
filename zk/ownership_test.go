package zk_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const ownTimeout = 16 * time.Second

// An owner records the calls of its methods.
type owner struct {
	nodes []string

	mu   sync.Mutex
	gone []string
	lost error
	at   time.Time
	cool time.Duration
}

func (o *owner) Nodes() []string { return o.nodes }

func (o *owner) Gone(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = append(o.gone, path)
}

func (o *owner) Lost(cause error, cooldown time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost, o.at, o.cool = cause, time.Now(), cooldown
}

func (o *owner) missed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.gone)
}

func (o *owner) told() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// A counter counts requests except pings.
type counter struct{ seen map[zktest.Op]int }

func (c *counter) decide(r zktest.Request) zktest.Fault {
	if r.Op != zktest.OpPing {
		c.seen[r.Op]++
	}
	return zktest.Pass
}

// owning runs f in a bubble with a session that has created a node, and with a counter of its requests since.
func owning(t *testing.T, f func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, ownTimeout)
		if _, err := sess.Create(t.Context(), "/own", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		c := &counter{seen: map[zktest.Op]int{}}
		srv.Control(c.decide)
		f(t, srv, sess, c)
		srv.Control(nil)
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func begin(t *testing.T, sess *zk.Session, o *owner) *zk.Ownership {
	t.Helper()
	if err := sess.Certify(t.Context(), o.nodes...); err != nil {
		t.Fatal(err)
	}
	own := sess.NewOwnership(o)
	own.Begin()
	return own
}

// Promise: 2
func TestSessionThatOwnsNothingProvesNothing(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
		time.Sleep(100 * ownTimeout)
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		own.End()
		time.Sleep(100 * ownTimeout)
		srv.Control(nil)
		if len(c.seen) != 1 || c.seen[zktest.OpMulti] != 1 {
			t.Errorf("requests %v, want one multi, which certifies", c.seen)
		}
		if err := sess.Err(); err != nil {
			t.Errorf("the session has ended: %v", err)
		}
	})
}

// Promise: 2
func TestOneProofServesAllOwnershipsOfASession(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
		o := &owner{nodes: []string{"/own"}}
		for range 50 {
			defer begin(t, sess, o).End()
		}
		const rounds = 100
		time.Sleep(rounds * ownTimeout)
		srv.Control(nil)
		if n := c.seen[zktest.OpMulti]; n < 8*rounds*9/10 || n > 8*rounds+1 {
			t.Errorf("%d proofs in %d session timeouts, want about 8 in each", n, rounds)
		}
		if err := o.told(); err != nil {
			t.Errorf("an ownership was lost: %v", err)
		}
		if left := time.Until(sess.Certain()); left < ownTimeout/4 || left > ownTimeout*3/4 {
			t.Errorf("certain for another %v", left)
		}
	})
}

// Promise: 2
func TestSessionThatWritesNeedsNoProof(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
		o := &owner{nodes: []string{"/own"}}
		defer begin(t, sess, o).End()
		for range 1000 {
			if _, err := sess.Set(t.Context(), "/own", nil, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(ownTimeout / 10)
		}
		srv.Control(nil)
		if c.seen[zktest.OpMulti] > 0 || c.seen[zktest.OpSync] > 0 || o.told() != nil {
			t.Errorf("requests %v, lost %v; want nothing but setData", c.seen, o.told())
		}
	})
}

// Whenever a server loses its quorum, the ownership ends before another session can acquire, and the session goes on.
//
// Promise: 2
func TestServerThatOnlyAnswersPingsDoesNotProlongOwnership(t *testing.T) {
	t.Parallel()
	for phase := time.Duration(0); phase < ownTimeout/4; phase += ownTimeout / 64 {
		owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
			o := &owner{nodes: []string{"/own"}}
			own := begin(t, sess, o)
			time.Sleep(2*ownTimeout + phase)
			srv.Control(zktest.WithoutQuorum(sess.ID()))
			isolated := time.Now()
			time.Sleep(ownTimeout)
			if err := own.Err(); !errors.Is(err, zk.ErrUncertain) || !errors.Is(o.told(), zk.ErrUncertain) {
				t.Fatalf("the ownership has ended with %v, the owner was told %v; want ErrUncertain", err, o.told())
			}
			if after := o.at.Sub(isolated); after < ownTimeout/4 || after > ownTimeout/2 {
				t.Errorf("told after %v, want between a quarter and half of %v", after, ownTimeout)
			}
			if certain := sess.Certain(); !o.at.Equal(certain) || o.cool != ownTimeout/4 {
				t.Errorf("told at %v, with %v to stop; want it at %v, with the margin", o.at, o.cool, certain)
			}
			if err := sess.Err(); err != nil {
				t.Errorf("the session has ended: %v", err)
			}
			srv.Control(nil)
			if err := sess.Certify(t.Context(), "/own"); err != nil {
				t.Errorf("the session is not certain again: %v", err)
			}
			clear(c.seen)
			srv.Control(c.decide)
			own.Begin()
			time.Sleep(ownTimeout)
			srv.Control(nil)
			if err := own.Err(); !errors.Is(err, zk.ErrUncertain) || len(c.seen) > 0 {
				t.Errorf("the ownership came back: %v, requests %v", err, c.seen)
			}
		})
	}
}

// The client leaves a server without a quorum for another while certainty lasts.
//
// Promise: 2
func TestSessionThatIsNotConfirmedTriesAnotherServer(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		o := &owner{nodes: []string{"/own"}}
		own := begin(t, sess, o)
		defer own.End()
		bad := 0
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && bad == 0 {
				bad = r.Conn
			}
			if r.Conn == bad && r.Op == zktest.OpMulti {
				return zktest.ReplyUntil(context.WithoutCancel(t.Context()))
			}
			return zktest.Pass
		})
		time.Sleep(10 * ownTimeout)
		if err := own.Err(); err != nil {
			t.Errorf("the ownership was lost: %v", err)
		}
		srv.Control(nil)
		if bad == 0 {
			t.Error("no proof was held up")
		}
	})
}

// Like a server that answers pings itself and has lost its leader.
//
// Promise: 2
func TestServerThatAnswersAllButProofsIsLeftForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpMulti && p.nth > 0 {
					p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpCheck}}})
				}
				return r.Op == wire.OpMulti
			})
		})
		cfg := f.config()
		cfg.Timeout = ownTimeout
		_, sess := f.open(cfg)
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		defer own.End()
		time.Sleep(10 * ownTimeout)
		if err := own.Err(); err != nil || f.dials != 2 {
			t.Errorf("%d connections, lost: %v; want the second to do", f.dials, err)
		}
	})
}

// A slow server has time to answer until certainty ends.
//
// Promise: 2
func TestServerThatIsSlowForOnceIsNotLeft(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		defer own.End()
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth == 20 {
				return zktest.DelayReply(ownTimeout * 5 / 32)
			}
			return zktest.Pass
		})
		before := srv.Traffic().Connections
		time.Sleep(10 * ownTimeout)
		if n := srv.Traffic().Connections; n != before || own.Err() != nil {
			t.Errorf("%d connections more, lost: %v; want the first to do", n-before, own.Err())
		}
	})
}

// Promise: 2
func TestReadOnlyServerIsNotAskedForProofs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			p.grantReadOnly(req, p.nth > 0)
			p.loop(func(r request) bool {
				if p.nth > 0 && (r.Op == wire.OpSync || r.Op == wire.OpMulti) {
					asked.Add(1)
				}
				return false
			})
		})
		cfg := f.config()
		cfg.Timeout, cfg.ReadOnly = ownTimeout, true
		_, sess := f.open(cfg)
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		after(sess, f.cut)
		time.Sleep(ownTimeout)
		if err := own.Err(); !errors.Is(err, zk.ErrUncertain) || asked.Load() > 0 {
			t.Errorf("lost: %v, %d requests; want ErrUncertain, and none", err, asked.Load())
		}
	})
}

// Promise: 2
func TestProofWhoseSyncIsRefusedEndsThere(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
		defer begin(t, sess, &owner{nodes: []string{"/own"}}).End()
		srv.Control(func(r zktest.Request) zktest.Fault {
			if c.decide(r); r.Op == zktest.OpSync {
				return zktest.Answer(zk.NotReadOnly)
			}
			return zktest.Pass
		})
		time.Sleep(ownTimeout)
		srv.Control(nil)
		if c.seen[zktest.OpSync] == 0 || c.seen[zktest.OpMulti] > 0 {
			t.Errorf("requests %v, want syncs alone", c.seen)
		}
	})
}

// A write after a long silence makes the session certain for only a quarter of its timeout.
//
// Promise: 2
func TestProofFollowsSoonOnACertificateThatBroughtLittle(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		time.Sleep(10 * ownTimeout)
		defer begin(t, sess, &owner{nodes: []string{"/own"}}).End()
		began := time.Now()
		var proved time.Duration
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSync && proved == 0 {
				proved = time.Since(began)
			}
			return zktest.Pass
		})
		time.Sleep(ownTimeout)
		srv.Control(nil)
		if proved == 0 || proved > ownTimeout/16 {
			t.Errorf("the first proof came after %v, want it within %v", proved, ownTimeout/16)
		}
	})
}

// Promise: 2
func TestProofsCheckTheNodesOfManyOwnersInTurn(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, c *counter) {
		const owners = 600 // more than two proofs check
		first, rest := &owner{nodes: []string{"/first"}}, &owner{nodes: []string{"/own"}}
		if _, err := sess.Create(t.Context(), "/first", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		owns := []*zk.Ownership{begin(t, sess, first)}
		for range owners - 1 {
			owns = append(owns, begin(t, sess, rest))
		}
		time.Sleep(ownTimeout)
		if err := srv.Session(t, time.Minute).Delete(t.Context(), "/first", -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ownTimeout)
		if len(first.missed()) == 0 || len(rest.missed()) > 0 || first.told() != nil {
			t.Errorf("told of %v and %v, lost: %v; want the first one's node alone to be gone",
				first.missed(), rest.missed(), first.told())
		}
		for _, i := range rand.Perm(owners) {
			owns[i].End()
		}
		time.Sleep(ownTimeout)
		srv.Control(nil)
		clear(c.seen)
		srv.Control(c.decide)
		time.Sleep(ownTimeout)
		srv.Control(nil)
		if len(c.seen) > 0 {
			t.Errorf("requests %v after the last ownership has ended", c.seen)
		}
	})
}

// Promise: 2
func TestProofDoesNotCheckWhatWasGivenUpMeanwhile(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		defer begin(t, sess, &owner{nodes: []string{"/own"}}).End()
		o := &owner{nodes: []string{"/other"}}
		if _, err := sess.Create(t.Context(), "/other", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		own := begin(t, sess, o)
		ctx, proceed := context.WithCancel(t.Context())
		var checked []zktest.Part
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && checked == nil {
				checked = r.Parts
			}
			if r.Op == zktest.OpSync && r.Nth == 1 {
				return zktest.ReplyUntil(ctx)
			}
			return zktest.Pass
		})
		time.Sleep(ownTimeout / 7) // the sync of a proof is on its way
		own.End()
		proceed()
		time.Sleep(ownTimeout / 7)
		srv.Control(nil)
		if len(checked) != 1 || checked[0].Path != "/own" || len(o.missed()) > 0 {
			t.Errorf("checked %v, told of %v; want /own alone", checked, o.missed())
		}
	})
}

// Promise: 2
func TestProofTellsOfANodeThatIsGone(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		lasting, gone := &owner{nodes: []string{"/own"}}, &owner{nodes: []string{"/other"}}
		if _, err := sess.Create(t.Context(), "/other", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		defer begin(t, sess, lasting).End()
		own := begin(t, sess, gone)
		if err := srv.Session(t, time.Minute).Delete(t.Context(), "/other", -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ownTimeout / 4)
		gone.mu.Lock()
		n := len(gone.gone)
		gone.mu.Unlock()
		if n == 0 {
			t.Error("the owner was not told that its node is gone")
		}
		own.End()
		time.Sleep(10 * ownTimeout)
		if err := lasting.told(); err != nil || len(lasting.gone) > 0 {
			t.Errorf("the other owner was told %v and of %v", err, lasting.gone)
		}
		if err := sess.Certify(t.Context(), "/own"); err != nil {
			t.Error(err)
		}
	})
}

func TestCertifyTellsThatANodeIsGone(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, _ *zktest.Server, sess *zk.Session, _ *counter) {
		time.Sleep(10 * ownTimeout)
		if err := sess.Certify(t.Context(), "/none"); !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want NoNode", err)
		}
	})
}

// Promise: 2
func TestCertifyProvesASessionOfWhichLittleCertaintyIsLeft(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, _ *zktest.Server, sess *zk.Session, c *counter) {
		for left, want := range map[time.Duration]int{ownTimeout * 3 / 16: 0, ownTimeout*3/16 - time.Millisecond: 1} {
			if _, err := sess.Set(t.Context(), "/own", nil, -1); err != nil { // certain for a while
				t.Fatal(err)
			}
			time.Sleep(time.Until(sess.Certain()) - left)
			before := c.seen[zktest.OpMulti]
			if err := sess.Certify(t.Context(), "/own"); err != nil {
				t.Fatal(err)
			}
			if got := c.seen[zktest.OpMulti] - before; got != want {
				t.Errorf("%d proofs with %v of certainty left, want %d", got, left, want)
			}
		}
	})
}

// Promise: 2
func TestCertifyGoesOnAfterWhatPasses(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"a lost answer":               zktest.DropReply,
		"a lost request":              zktest.CutBefore,
		"a session that has moved":    zktest.Answer(zk.SessionMoved),
		"a server without quorum":     zktest.Answer(zk.NotReadOnly),
		"a write that took too long":  zktest.Answer(zk.OperationTimeout),
		"a server that is overloaded": zktest.Answer(zk.ThrottledOp),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
				time.Sleep(10 * ownTimeout)
				srv.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpMulti && r.Nth == 1 {
						return fault
					}
					return zktest.Pass
				})
				if err := sess.Certify(t.Context(), "/own"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Promise: 2
func TestCertifyEndsWithItsContextAndWithTheSession(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		time.Sleep(10 * ownTimeout)
		srv.Control(zktest.WithoutQuorum(sess.ID()))
		ctx, cancel := context.WithTimeout(t.Context(), ownTimeout/4)
		defer cancel()
		if err := sess.Certify(ctx, "/own"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		time.AfterFunc(ownTimeout/4, func() { srv.ExpireSession(sess.ID()) })
		if err := sess.Certify(t.Context(), "/own"); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("got %v, want the session's end", err)
		}
	})
}

func TestNoCertificatesWritesNothing(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := srv.Config(ownTimeout)
		cfg.NoCertificates, cfg.Margin = true, ownTimeout/2
		client, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), "/own", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		c := &counter{seen: map[zktest.Op]int{}}
		srv.Control(c.decide)
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		time.Sleep(10 * ownTimeout)
		srv.Control(nil)
		if len(c.seen) > 0 || own.Err() != nil {
			t.Errorf("requests %v, lost %v; want pings alone to do", c.seen, own.Err())
		}
		own.End()
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func TestOwnershipThatBeginsAfterTheSessionsEndIsNeverToldOfAnother(t *testing.T) {
	t.Parallel()
	owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
		srv.ExpireSession(sess.ID())
		<-sess.Context().Done()
		o := &owner{nodes: []string{"/own"}}
		own := sess.NewOwnership(o)
		own.Begin()
		time.Sleep(10 * ownTimeout)
		if err := own.Err(); !errors.Is(err, zk.ErrExpired) || o.told() != nil {
			t.Errorf("ended with %v, the owner was told %v; want the session's end alone", err, o.told())
		}
	})
}

// Each attempt may take a part of the remaining certainty, so that the client reaches a server that answers in time.
//
// Promise: 2
func TestSilentServersDoNotEndAnOwnershipWhileAnotherAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if p.nth > 0 && p.nth < 4 {
				for range p.in {
				}
				return
			}
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpMulti {
					p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpCheck}}})
				}
				return r.Op == wire.OpMulti
			})
		})
		cfg := f.config()
		cfg.Timeout = ownTimeout
		_, sess := f.open(cfg)
		own := begin(t, sess, &owner{nodes: []string{"/own"}})
		defer own.End()
		time.Sleep(2 * ownTimeout)
		f.cut()
		time.Sleep(2 * ownTimeout)
		if err := own.Err(); err != nil || f.dials != 5 {
			t.Errorf("lost after %d connections: %v", f.dials, err)
		}
	})
}

func TestMarginBeyondAQuarterNeedsNoCertificates(t *testing.T) {
	t.Parallel()
	cfg := zk.Config{Servers: "a", Timeout: 10 * time.Second, Margin: 3 * time.Second}
	if _, err := zk.Open(t.Context(), cfg); err == nil {
		t.Error("a margin of three tenths was accepted")
	}
	cfg.NoCertificates = true
	client, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
}

// The last reply before a disconnect may be what makes a client an owner. Then it connects again at once, and learns
// whether its session lives: clients that own nothing take their time, so that not all come at once.
func TestOwnerThatBeginsWhileItIsDisconnectedConnectsAtOnce(t *testing.T) {
	t.Parallel()
	for _, owns := range []bool{false, true} {
		owning(t, func(t *testing.T, srv *zktest.Server, sess *zk.Session, _ *counter) {
			o := &owner{nodes: []string{"/own"}}
			begin(t, sess, o).End()
			time.Sleep(time.Minute) // the connection is not one that breaks early
			if err := sess.Certify(t.Context(), "/own"); err != nil {
				t.Fatal(err)
			}
			srv.Drop(sess.ID())
			synctest.Wait()
			began := time.Now()
			own := sess.NewOwnership(o)
			if owns {
				own.Begin()
			}
			for state := range sess.States(t.Context()) {
				if state == zk.Connected {
					break
				}
			}
			if took := time.Since(began); (took == 0) != owns {
				t.Errorf("it has connected after %v; it owns something: %t", took, owns)
			}
			own.End()
		})
	}
}

// More results than a proof has operations are a violation of the protocol, whatever they say.
func TestProofThatIsAnsweredInPartTellsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, results := range [][]wire.MultiResult{
			{{Op: wire.OpCheck}, {Op: wire.OpError, Err: wire.NoNode}},
			{{Op: wire.OpError, Err: wire.NoNode}, {Op: wire.OpCheck}},
		} {
			f := newFake(t, func(p *peer) {
				p.open()
				p.loop(func(r request) bool {
					if r.Op == wire.OpMulti {
						p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: results})
					}
					return r.Op == wire.OpMulti
				})
			})
			cfg := f.config()
			cfg.Timeout = ownTimeout
			broken := make(chan error, 10)
			cfg.Hooks.Disconnected = func(_ string, err error) { broken <- err }
			_, s := f.open(cfg)
			o := &owner{nodes: []string{"/own"}}
			begin(t, s, o)
			if err := <-broken; !errors.Is(err, zk.ErrProtocol) {
				t.Errorf("got %v, want ErrProtocol", err)
			}
			synctest.Wait()
			if missed := o.missed(); len(missed) > 0 {
				t.Errorf("told that %q are gone", missed)
			}
		}
	})
}
