package zk_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 9
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

// Promise: 9
func TestMalformedFrameEndsTheConnectionNotTheProcess(t *testing.T) {
	t.Parallel()
	frames := map[string][]byte{
		"negative length":             {0xff, 0xff, 0xff, 0xff},
		"oversized":                   {0x7f, 0xff, 0xff, 0xff},
		"empty":                       {0, 0, 0, 0},
		"short header":                {0, 0, 0, 3, 1, 2, 3},
		"cut off":                     {0, 0, 0, 100, 1, 2, 3},
		"short event":                 {0, 0, 0, 17, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		"reply to a ping never sent":  wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidPing}, nil),
		"reply to watches never set":  wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidSetWatches}, nil),
		"reply without a request":     wire.AppendReply(nil, wire.ReplyHeader{Xid: 99}, nil),
		"oversized unrequested reply": {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
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

// Repeating such a request yields the same reply again; requests behind it on the connection may be repeated.
func TestAnswerThatIsTooLargeIsTheErrorOfItsRequestAlone(t *testing.T) {
	t.Parallel()
	lists := map[string]func(ctx context.Context, s *zk.Session) error{
		"list": func(ctx context.Context, s *zk.Session) error {
			_, _, err := s.Children(ctx, "/big")
			return err
		},
		"list with a watch": func(ctx context.Context, s *zk.Session) error {
			_, _, _, err := s.ChildrenW(ctx, "/big")
			return err
		},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				large := &wire.Children2Response{Children: slices.Repeat([]string{"0123456789abcdef"}, 1000)}
				f := newFake(t, func(p *peer) {
					p.open()
					p.loop(func(r request) bool {
						if r.Op != wire.OpGetChildren2 {
							return false
						}
						p.next() // what comes behind it has been sent, too
						p.answer(r, 1, wire.OK, large)
						return true
					})
				})
				cfg := f.config()
				cfg.MaxFrame = 16 << 10
				_, s := f.open(cfg)
				behind := make(chan error)
				go func() {
					synctest.Wait()
					_, _, err := s.Get(t.Context(), "/small")
					behind <- err
				}()
				err := list(t.Context(), s)
				wantFailure(t, err, zk.ErrReplyTooLarge, zk.Refused)
				if errors.Is(err, zk.ErrProtocol) {
					t.Errorf("%v blames the server, which did what it was asked", err)
				}
				if errors.Is(err, zk.ErrConnectionLost) {
					t.Errorf("%v is a lost connection, which callers ask again after", err)
				}
				text := err.Error()
				if !strings.Contains(text, "20088 bytes, limit 16384") || !strings.Contains(text, "Config.MaxFrame") {
					t.Errorf("%q does not say how large the answer is, how large it may be, and who says so", text)
				}
				err = <-behind
				wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
				if errors.Is(err, zk.ErrReplyTooLarge) {
					t.Errorf("%v, of a request that had no answer", err)
				}
				if _, _, err := s.Get(t.Context(), "/small"); err != nil {
					t.Errorf("on the next connection: %v", err)
				}
			})
		})
	}
}

// Promise: 9
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
			zk.BadArguments, zk.UnknownSession, zk.NewConfigNoQuorum, zk.ReconfigInProgress,
			zk.NoNode, zk.NoAuth, zk.BadVersion,
			zk.NoChildrenForEphemerals, zk.NodeExists, zk.NotEmpty, zk.InvalidACL, zk.AuthFailed, zk.NotReadOnly,
			zk.EphemeralOnLocalSession, zk.NoWatcher, zk.RequestTimeout, zk.ReconfigDisabled,
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
		after(s, func() {
			_, err := s.WhoAmI(t.Context())
			wantFailure(t, err, zk.Unimplemented, zk.Refused)
		})
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Errorf("the next request: %v, want it answered on a new connection", err)
		}
	})
}

// An old server closes the connection at each.
func TestMultiReadIsAskedOfOldServersOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpMultiRead {
					asked.Add(1)
					p.answer(r, 1, wire.Unimplemented, nil)
					_ = p.conn.Close()
				}
				return r.Op == wire.OpMultiRead
			})
		})
		_, s := f.open(f.config())
		_, err := s.MultiRead(t.Context(), zk.GetOp("/a"))
		wantFailure(t, err, zk.Unimplemented, zk.Refused)
		_, err = s.MultiRead(t.Context(), zk.GetOp("/a"))
		wantFailure(t, err, zk.Unimplemented, zk.NotSent)
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
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
			{wire.OpCreateContainer, 4, 0},
			{wire.OpCreateTTL, 5, 1000},
			{wire.OpCreateTTL, 6, 60000},
			{wire.OpCreate2, 3, 0},
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
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
