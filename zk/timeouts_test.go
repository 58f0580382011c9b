package zk_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A negotiator is a server that grants other timeouts at other connections. It answers everything.
type negotiator struct {
	grants []int32 // by connection; the last one from then on
	id     func(nth int, req wire.ConnectRequest) int64

	mu       sync.Mutex // guards what follows
	asked    []int32
	closed   int  // requests that close a session
	readOnly bool // from the second connection on
}

func (n *negotiator) serve(p *peer) {
	req, ok := p.connect()
	if !ok {
		return
	}
	n.mu.Lock()
	n.asked = append(n.asked, req.Timeout)
	resp := wire.ConnectResponse{
		Timeout: n.grants[min(p.nth, len(n.grants)-1)], SessionID: req.SessionID,
		Password: make([]byte, wire.PasswordLen), HasReadOnly: true, ReadOnly: n.readOnly && p.nth > 0,
	}
	n.mu.Unlock()
	switch {
	case n.id != nil:
		resp.SessionID = n.id(p.nth, req)
	case req.SessionID == 0:
		resp.SessionID = int64(100 + p.nth)
	}
	p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
	p.loop(func(r request) bool {
		switch r.Op {
		case wire.OpMulti:
			p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpCheck}}})
			return true
		case wire.OpCloseSession:
			n.mu.Lock()
			n.closed++
			n.mu.Unlock()
		}
		return false
	})
}

// requests returns the timeouts that the client has asked for.
func (n *negotiator) requests() []int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]int32(nil), n.asked...)
}

// negotiating runs f in a bubble with a client that asks for 10 s.
func negotiating(t *testing.T, n *negotiator, f func(t *testing.T, f *fake, c *zk.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fk := newFake(t, n.serve)
		f(t, fk, fk.client(fk.config()))
	})
}

func session(t *testing.T, c *zk.Client) *zk.Session {
	t.Helper()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A new leader counts with the timeout of the creation, whatever servers have granted since.
//
// Promise: 2
func TestLongerTimeoutOfALaterHandshakeIsNotCountedOn(t *testing.T) {
	t.Parallel()
	n := &negotiator{grants: []int32{4000, 30_000, 4000, 2147483647}}
	negotiating(t, n, func(t *testing.T, f *fake, c *zk.Client) {
		t.Helper()
		s := session(t, c)
		o := &owner{nodes: []string{"/own"}}
		own := begin(t, s, o)
		for range 3 {
			after(s, f.cut)
			waitState(s, zk.Connected)
			if _, err := s.Set(t.Context(), "/own", nil, -1); err != nil {
				t.Fatal(err)
			}
			if got := s.Timeout(); got != 4*time.Second {
				t.Errorf("got a timeout of %v, want that of the creation", got)
			}
			if left := time.Until(s.Deadline()); left > 3*time.Second {
				t.Errorf("got a deadline in %v, want 3s at most", left)
			}
			if left := time.Until(s.Certain()); left > 3*time.Second {
				t.Errorf("certain for %v, want 3s at most", left)
			}
		}
		f.refuse(errors.New("no route"))
		f.cut()
		cut := time.Now()
		time.Sleep(time.Minute)
		if own.Err() == nil || o.told() != nil && o.at.Sub(cut) > 3*time.Second {
			t.Errorf("got %v, told %v after the cut, want the end within 3s", own.Err(), o.at.Sub(cut))
		}
		for i, asked := range n.requests()[1:4] {
			if asked != 4000 {
				t.Errorf("handshake %d: asked for %d ms, want 4000, which the session has", i+1, asked)
			}
		}
	})
}

// The handshake may have shortened the server's clock long before its reply, or may do so again.
//
// Promise: 2
func TestServerThatGrantsLessEndsTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	for name, readOnly := range map[string]bool{"a server": false, "a read-only server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &negotiator{grants: []int32{10_000, 9999}, readOnly: readOnly}
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, n.serve)
				cfg := f.config()
				var log bytes.Buffer
				cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				cfg.ReadOnly = true
				c := f.client(cfg)
				s := session(t, c)
				own := begin(t, s, &owner{nodes: []string{"/own"}})
				lost := make(chan time.Time, 1)
				granted := make(chan time.Time, 1)
				go func() {
					<-s.Context().Done()
					lost <- time.Now()
				}()
				n.id = func(nth int, req wire.ConnectRequest) int64 {
					if nth == 1 {
						granted <- time.Now()
					}
					return max(req.SessionID, 100)
				}
				f.cut()
				wantCause(t, s, zk.ErrLost)
				if at, want := <-lost, <-granted; !at.Equal(want) {
					t.Errorf("lost %v after the reply, want at once", at.Sub(want))
				}
				if err := own.Err(); !errors.Is(err, zk.ErrLost) {
					t.Errorf("ownership: got %v, want ErrLost", err)
				}
				if next := session(t, c); next == s || next.Timeout() != 9999*time.Millisecond {
					t.Errorf("got %v with %v, want another session with its server's timeout", next, next.Timeout())
				}
				time.Sleep(4 * time.Second)
				if text := log.String(); !strings.Contains(text, "server=fake:2181") ||
					!strings.Contains(text, "grants a timeout of 9.999s") {
					t.Errorf("got the log %s, want one that names the server and its timeout", text)
				}
				if n.mu.Lock(); n.closed == 0 {
					t.Error("the session was not closed after its margin")
				}
				n.mu.Unlock()
			})
		})
	}
}

// What was created with less than asked for is not lost for it.
func TestTimeoutIsThatOfTheCreation(t *testing.T) {
	t.Parallel()
	for granted, want := range map[int32]time.Duration{
		2000: 2 * time.Second, 10_000: 10 * time.Second, 60_000: time.Minute, 2147483647: 2147483647 * time.Millisecond,
	} {
		n := &negotiator{grants: []int32{granted}}
		negotiating(t, n, func(t *testing.T, f *fake, c *zk.Client) {
			t.Helper()
			s := session(t, c)
			for range 20 {
				after(s, f.cut)
				waitState(s, zk.Connected)
			}
			if err := s.Err(); err != nil || s.Timeout() != want {
				t.Errorf("granted %d ms: got %v, %v, want a session with %v", granted, s.Timeout(), err, want)
			}
			for i, asked := range n.requests() {
				if i > 0 && asked != granted {
					t.Errorf("handshake %d: asked for %d ms, want %d", i, asked, granted)
				}
			}
		})
	}
}

func TestServerThatGrantsNothingMakesNoSession(t *testing.T) {
	t.Parallel()
	for _, granted := range []int32{0, -1, -2147483648} {
		n := &negotiator{grants: []int32{granted}}
		negotiating(t, n, func(t *testing.T, f *fake, c *zk.Client) {
			t.Helper()
			time.Sleep(time.Minute)
			if err := c.LastError(); !errors.Is(err, zk.ErrProtocol) {
				t.Errorf("granted %d ms: got %v, want ErrProtocol", granted, err)
			}
			if tries := len(n.requests()); tries > 50 {
				t.Errorf("granted %d ms: got %d handshakes in a minute, want fewer and fewer", granted, tries)
			}
		})
	}
}

func TestAnswerOfAnotherKindOfServerIsAProtocolViolation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if _, ok := p.connect(); ok {
				_, _ = p.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) // it may close while this is written
			}
		})
		c := f.client(f.config())
		time.Sleep(time.Minute)
		if err := c.LastError(); !errors.Is(err, zk.ErrProtocol) || strings.Contains(err.Error(), "MaxFrame") {
			t.Errorf("got %v, want ErrProtocol, and nothing of a setting", err)
		}
	})
}

func TestResumedSessionThatIsGrantedNothingHasExpired(t *testing.T) {
	t.Parallel()
	for _, granted := range []int32{0, -1, -2147483648} {
		n := &negotiator{grants: []int32{10_000, granted, 10_000}}
		negotiating(t, n, func(t *testing.T, f *fake, c *zk.Client) {
			t.Helper()
			s := session(t, c)
			f.cut()
			wantCause(t, s, zk.ErrExpired)
			if next := session(t, c); next == s {
				t.Errorf("granted %d ms: got the same session", granted)
			}
		})
	}
}

func TestReplyForAnotherSessionDoesNotResumeOne(t *testing.T) {
	t.Parallel()
	for _, granted := range []int32{1000, 10_000, 100_000} {
		n := &negotiator{grants: []int32{10_000, granted}}
		n.id = func(nth int, req wire.ConnectRequest) int64 { return int64(7 + nth) }
		negotiating(t, n, func(t *testing.T, f *fake, c *zk.Client) {
			t.Helper()
			s := session(t, c)
			f.cut()
			wantCause(t, s, zk.ErrLost)
			if got := s.Timeout(); got != 10*time.Second {
				t.Errorf("got a timeout of %v, want 10s, whatever others were granted", got)
			}
		})
	}
}

// Servers with equal limits grant the same at each handshake.
//
// Promise: 2
func TestReconnectsDoNotEndAnOwnershipWhereLimitsAreEqual(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]time.Duration{
		"within the limits": 8 * time.Second, "below": time.Second, "above": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var net zktest.Net
				srv := zktest.Run(t, zktest.On(&net), zktest.Durable(), zktest.Tick(time.Second),
					zktest.SessionTimeouts(4*time.Second, 16*time.Second))
				s := srv.Session(t, asked)
				if _, err := s.Create(t.Context(), "/own", nil, zk.Ephemeral); err != nil {
					t.Fatal(err)
				}
				own := begin(t, s, &owner{nodes: []string{"/own"}})
				defer own.End()
				for i := range 60 {
					switch i % 3 {
					case 0:
						srv.Drop()
					case 1:
						srv.Restart()
					default:
						srv.Control(func(r zktest.Request) zktest.Fault {
							if r.Op == zktest.OpConnect {
								return zktest.DropReply
							}
							return zktest.Pass
						})
						srv.Drop()
						time.Sleep(200 * time.Millisecond)
						srv.Control(nil)
						srv.Drop()
					}
					time.Sleep(2 * time.Second)
				}
				if err := own.Err(); err != nil {
					t.Errorf("got %v, want the ownership to last", err)
				}
			})
		})
	}
}

// Such a server must not be asked for one session after the other.
func TestServerThatGrantsSessionsAndHangsUpIsAskedLessAndLess(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(p *peer, req wire.ConnectRequest){
		"and has forgotten each": func(p *peer, _ wire.ConnectRequest) { p.expire() },
		"and shortens each":      func(p *peer, req wire.ConnectRequest) { p.grantAs(req.SessionID, req.Timeout-1) },
		"and grants a moment":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sessions atomic.Int32
				f := newFake(t, func(p *peer) {
					req, ok := p.connect()
					switch {
					case ok && resume == nil:
						sessions.Add(1)
						p.grantAs(int64(1+p.nth), 1)
						p.next()
					case ok && req.SessionID != 0:
						resume(p, req)
					case ok:
						sessions.Add(1)
						p.grantAs(int64(1+p.nth), req.Timeout)
					}
				})
				f.client(f.config())
				time.Sleep(time.Minute)
				first := sessions.Swap(0)
				time.Sleep(10 * time.Minute)
				if later := sessions.Load() / 10; first > 100 || later > 60 {
					t.Errorf("got %d sessions in the first minute, then %d a minute", first, later)
				}
			})
		})
	}
}

// One that serves again is used at once.
func TestBackOffEndsWithAConnectionThatLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const early = 40
		var resumed atomic.Int32
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			switch {
			case ok && p.nth < early && req.SessionID != 0:
				p.expire()
			case ok:
				p.grant(req)
				if p.nth >= early {
					resumed.Add(1)
					p.loop(nil)
				}
			}
		})
		c := f.client(f.config())
		for resumed.Load() == 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		s := session(t, c)
		start := time.Now()
		after(s, f.cut)
		waitState(s, zk.Connected)
		if waited := time.Since(start); waited > time.Second/4 {
			t.Errorf("connected again %v after a connection that lasted, want at once", waited)
		}
	})
}
