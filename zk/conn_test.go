package zk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestConnectSendsSASLThenAuthThenWatchesThenRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := make(chan wire.Op, 100)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			if !req.HasReadOnly {
				t.Error("connect request without the read-only byte")
			}
			p.grant(req)
			sasl := 0
			p.loop(func(r request) bool {
				if p.nth == 1 {
					order <- r.Op
				}
				if r.Op != wire.OpSASL {
					return false
				}
				sasl++
				p.answer(r, 0, wire.OK, &wire.SASLToken{Token: saslAnswer(sasl, r, "bob", "secret")})
				return true
			})
		})
		cfg := f.config()
		cfg.SASL = &zk.SASL{User: "bob", Password: "secret"}
		cfg.Auth = []zk.Auth{zk.Digest("a", "b"), zk.Digest("c", "d")}
		_, s := f.open(cfg)
		_, _, w, err := s.GetW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		b := s.Batch()
		queued := b.Sync("/")
		b.Send()
		f.refuse(nil)
		if _, err := queued.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Close()
		want := []wire.Op{wire.OpSASL, wire.OpSASL, wire.OpAuth, wire.OpAuth, wire.OpSetWatches, wire.OpSync}
		got := make([]wire.Op, len(want))
		for i := range got {
			got[i] = <-order
		}
		if !slices.Equal(got, want) {
			t.Errorf("order on the wire: %v, want %v", got, want)
		}
	})
}

func TestRefusedCredentialsEndTheClientForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			if r, ok := p.next(); ok {
				p.answer(r, 0, wire.AuthFailed, nil)
			}
		})
		cfg := f.config()
		cfg.Auth = []zk.Auth{{Scheme: "nonsense"}}
		c := f.client(cfg)
		_, err := c.Session(t.Context())
		if !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("Session: %v, want ErrAuthFailed", err)
		}
		time.Sleep(time.Minute)
		if f.dials != 1 {
			t.Errorf("%d connections, want 1", f.dials)
		}
	})
}

func TestAddedCredentialsAreSentOnEveryConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auths := make([]int, 10)
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpAuth {
					auths[p.nth]++
				}
				return false
			})
		})
		cfg := f.config()
		cfg.Auth = []zk.Auth{zk.Digest("a", "b")}
		_, s := f.open(cfg)
		if err := s.AddAuth(t.Context(), zk.Digest("c", "d")); err != nil {
			t.Fatal(err)
		}
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.AddAuth(t.Context(), zk.Digest("e", "f")); err != nil {
				t.Errorf("AddAuth while suspended: %v", err)
			}
		})
		synctest.Wait()
		f.refuse(nil)
		wg.Wait()
		if auths[0] != 2 || auths[1] != 3 {
			t.Errorf("credentials on the two connections: %v, want 2 and 3", auths[:2])
		}
		if len(cfg.Auth) != 1 {
			t.Error("AddAuth changed the caller's config")
		}
	})
}

func TestRefusedAddAuthEndsTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpAuth {
					p.answer(r, 0, wire.AuthFailed, nil)
				}
				return r.Op == wire.OpAuth
			})
		})
		_, s := f.open(f.config())
		if err := s.AddAuth(t.Context(), zk.Auth{Scheme: "nonsense"}); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("AddAuth: %v, want ErrAuthFailed", err)
		}
		wantCause(t, s, zk.ErrAuthFailed)
	})
}

func TestAnswerOutOfTurnDropsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if p.nth == 0 && r.Op == wire.OpGetData {
					r.Xid++
					p.plain(r)
					return true
				}
				return false
			})
		})
		_, s := f.open(f.config())
		_, _, err := s.Get(t.Context(), "/a")
		wantFailure(t, err, zk.ErrProtocol, zk.Unknown)
		wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Errorf("on the next connection: %v", err)
		}
	})
}

func TestMalformedFrameEndsTheConnectionNotTheProcess(t *testing.T) {
	t.Parallel()
	frames := map[string][]byte{
		"negative length":       {0xff, 0xff, 0xff, 0xff},
		"oversized":             {0x7f, 0xff, 0xff, 0xff},
		"empty":                 {0, 0, 0, 0},
		"short header":          {0, 0, 0, 3, 1, 2, 3},
		"cut off":               {0, 0, 0, 100, 1, 2, 3},
		"short event":           {0, 0, 0, 17, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		"ping that nobody sent": wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidPing}, nil),
		"watches nobody set":    wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidSetWatches}, nil),
		"answer nobody wants":   wire.AppendReply(nil, wire.ReplyHeader{Xid: 99}, nil),
		"data longer than the frame": wire.AppendReply(nil, wire.ReplyHeader{Xid: 1},
			&wire.SASLToken{Token: []byte{0x7f, 0xff, 0xff, 0xff}})[:24],
	}
	for name, frame := range frames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(p *peer) {
					p.open()
					if p.nth == 0 {
						p.next()
						p.raw(frame)
						return
					}
					p.loop(nil)
				})
				_, s := f.open(f.config())
				_, _, err := s.Get(t.Context(), "/a")
				wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
				if _, _, err := s.Get(t.Context(), "/a"); err != nil {
					t.Errorf("on the next connection: %v", err)
				}
			})
		})
	}
}

func TestAnswerThatDoesNotDecodeFailsWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if p.nth == 0 {
					p.answer(r, 1, wire.OK, &wire.PathResponse{Path: "short"})
				}
				return p.nth == 0
			})
		})
		_, s := f.open(f.config())
		_, err := s.Set(t.Context(), "/a", nil, -1)
		wantFailure(t, err, zk.ErrProtocol, zk.Unknown)
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Errorf("on the next connection: %v", err)
		}
	})
}

func TestEveryCodeIsComparable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		codes := []zk.Code{
			zk.SystemError, zk.RuntimeInconsistency, zk.DataInconsistency, zk.MarshallingError, zk.OperationTimeout,
			zk.BadArguments, zk.UnknownSession, zk.NewConfigNoQuorum, zk.ReconfigInProgress, zk.NoNode, zk.NoAuth, zk.BadVersion,
			zk.NoChildrenForEphemerals, zk.NodeExists, zk.NotEmpty, zk.InvalidACL, zk.AuthFailed, zk.NotReadOnly,
			zk.EphemeralOnLocalSession, zk.NoWatcher, zk.RequestTimeout, zk.ReconfigDisabled, zk.SessionClosedRequireAuth,
			zk.QuotaExceeded, zk.ThrottledOp, zk.Unimplemented, zk.Code(-9999),
		}
		n := 0
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpDelete {
					p.answer(r, 1, wire.Code(codes[n]), nil)
					n++
				}
				return r.Op == wire.OpDelete
			})
		})
		_, s := f.open(f.config())
		for _, code := range codes {
			err := s.Delete(t.Context(), "/a", -1)
			wantFailure(t, err, code, zk.Refused)
			if code.Error() == "" {
				t.Errorf("code %d has no text", int32(code))
			}
		}
	})
}

func TestUnimplementedIsAnErrorNotTheEndOfTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpWhoAmI {
					p.answer(r, 1, wire.Unimplemented, nil)
					_ = p.conn.Close() // as servers do
				}
				return r.Op == wire.OpWhoAmI
			})
		})
		_, s := f.open(f.config())
		_, err := s.WhoAmI(t.Context())
		wantFailure(t, err, zk.Unimplemented, zk.Refused)
		waitState(s, zk.Suspended)
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Errorf("the next request: %v, want it answered on a new connection", err)
		}
	})
}

func TestContainersAndTTLNodesUseTheirOwnOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type create struct {
			op    wire.Op
			flags int32
			ttl   int64
		}
		var got []create
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				switch rec := r.record().(type) {
				case *wire.CreateRequest:
					got = append(got, create{r.Op, rec.Flags, 0})
				case *wire.CreateTTLRequest:
					got = append(got, create{r.Op, rec.Flags, rec.TTL})
				}
				p.answer(r, 1, wire.OK, &wire.Create2Response{Path: "/a-2147483648"})
				return true
			})
		})
		_, s := f.open(f.config())
		ctx := t.Context()
		for _, n := range []zk.Node{
			{Path: "/a", Mode: zk.Container},
			{Path: "/a", Mode: zk.PersistentTTL, TTL: time.Second},
			{Path: "/a/", Mode: zk.PersistentSequentialTTL, TTL: time.Minute},
			{Path: "/", Mode: zk.EphemeralSequential},
		} {
			created, err := s.CreateNode(ctx, n)
			if err != nil || created.Path != "/a-2147483648" {
				t.Errorf("create %+v: %q, %v; want the path of the answer", n, created.Path, err)
			}
		}
		want := []create{
			{wire.OpCreateContainer, 4, 0}, {wire.OpCreateTTL, 5, 1000}, {wire.OpCreateTTL, 6, 60000}, {wire.OpCreate2, 3, 0},
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

func TestMultiReadUnderstandsBothFormsOfAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := &wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpError, Err: wire.NoNode}, {Op: wire.OpGetData, Data: []byte("x")},
		}}
		short := long.Append(nil)
		short = append(short[:9:9], short[13:]...) // without the code after the header
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpMultiRead {
					p.answer(r, 1, wire.OK, [...]wire.Record{long, rawRecord(short)}[(r.Xid-1)%2])
				}
				return r.Op == wire.OpMultiRead
			})
		})
		_, s := f.open(f.config())
		for _, form := range []string{"with the code twice", "with the code once"} {
			got, err := s.MultiRead(t.Context(), zk.GetOp("/none"), zk.GetOp("/a"))
			if err != nil || len(got) != 2 || !errors.Is(got[0].Err, zk.NoNode) || string(got[1].Data) != "x" || got[1].Err != nil {
				t.Errorf("%s: %+v, %v", form, got, err)
			}
		}
	})
}

func TestFailedMultiSaysWhichOperationAndWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: []wire.MultiResult{
					{Op: wire.OpError, Err: wire.OK}, {Op: wire.OpError, Err: wire.BadVersion}, {Op: wire.OpError, Err: wire.RuntimeInconsistency},
				}})
				return true
			})
		})
		_, s := f.open(f.config())
		ops := []zk.Op{zk.CreateOp("/a", nil, zk.Persistent), zk.Check("/b", 3), zk.DeleteOp("/c", -1)}
		_, err := s.Multi(t.Context(), ops...)
		wantFailure(t, err, zk.BadVersion, zk.Refused)
		var multi *zk.MultiError
		if !errors.As(err, &multi) || multi.Index != 1 || multi.Path != "/b" || multi.Op != "check" || len(multi.Results) != 3 {
			t.Errorf("got %+v, want operation 1, check /b", multi)
		}
		b := s.Batch()
		future := b.Multi(ops...)
		b.Send()
		_, err = future.Get(t.Context())
		wantFailure(t, err, zk.BadVersion, zk.Refused)
	})
}

func TestBatchLeavesInOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var writes atomic.Int64
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := f.Dial(ctx, network, address)
			return countedConn{c, &writes}, err
		}
		_, s := f.open(cfg)
		before := writes.Load()
		b := s.Batch()
		created := b.Create("/a-", []byte("x"), zk.EphemeralSequential)
		children := b.Children("/")
		stat := b.Set("/a", nil, -1)
		exists := b.Exists("/a")
		deleted := b.Delete("/a", -1)
		bad := b.Delete("a//b", -1)
		if writes.Load() != before {
			t.Error("a batch was written before Send")
		}
		b.Send()
		ctx := t.Context()
		if c, err := created.Get(ctx); err != nil || c.Path != "/a-" {
			t.Errorf("create: %+v, %v", c, err)
		}
		if c, err := children.Get(ctx); err != nil || !slices.Equal(c.Names, []string{"a"}) {
			t.Errorf("children: %+v, %v", c, err)
		}
		if _, err := stat.Get(ctx); err != nil {
			t.Errorf("set: %v", err)
		}
		if e, err := exists.Get(ctx); err != nil || !e.Exists {
			t.Errorf("exists: %+v, %v", e, err)
		}
		if _, err := deleted.Get(ctx); err != nil {
			t.Errorf("delete: %v", err)
		}
		_, err := bad.Get(ctx)
		wantFailure(t, err, zk.BadArguments, zk.NotSent)
		if n := writes.Load() - before; n != 1 {
			t.Errorf("a batch of five took %d writes, want 1", n)
		}
		b.Send() // nothing
		again := b.Get("/a")
		b.Send()
		if _, err := again.Get(ctx); err != nil {
			t.Errorf("batch used again: %v", err)
		}
	})
}

func TestRequestsUnderLoadShareWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var writes atomic.Int64
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := f.Dial(ctx, network, address)
			return countedConn{c, &writes}, err
		}
		_, s := f.open(cfg)
		const callers, each = 64, 20
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range each {
					path := fmt.Sprintf("/%d", i)
					if c, err := s.Create(t.Context(), path, nil, zk.Persistent); err != nil || c.Path != path {
						t.Errorf("create %s: %q, %v", path, c.Path, err)
					}
				}
			})
		}
		wg.Wait()
		if n := writes.Load(); n > callers*each/2 {
			t.Errorf("%d writes for %d requests of %d callers, want them to share", n, callers*each, callers)
		}
	})
}

func TestRequestOutlivesNoDeadlineOfItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool { return r.Op == wire.OpGetData })
		})
		_, s := f.open(f.config())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := s.Get(ctx, "/a")
		wantFailure(t, err, context.DeadlineExceeded, zk.Unknown)
		if took := time.Since(start); took != time.Second {
			t.Errorf("returned after %v, want 1s", took)
		}
		_, _, err = s.Get(ctx, "/a")
		wantFailure(t, err, context.DeadlineExceeded, zk.NotSent)
	})
}

// countedConn counts writes.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}
