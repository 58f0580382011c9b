package zk_test

import (
	"errors"
	"slices"
	"sync"
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
		cfg.SASL = zk.DigestMD5{User: "bob", Password: "secret"}
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

// A server that requires a login refuses the first request of a connection and closes the connection. Trying again
// would not help.
func TestServerThatWantsALoginEndsTheClientForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		f := newFake(t, func(p *peer) {
			if !p.open() {
				return
			}
			connections++
			if r, ok := p.next(); ok {
				p.answer(r, 0, wire.SessionClosedRequireAuth, nil)
			}
			_ = p.conn.Close()
		})
		client, s := f.open(f.config())
		b := s.Batch()
		first, second := b.Sync("/"), b.Sync("/")
		b.Send()
		for i, asked := range []*zk.Future[struct{}]{first, second} {
			_, err := asked.Get(t.Context())
			wantFailure(t, err, zk.ErrAuthFailed, []zk.Outcome{zk.Refused, zk.Unknown}[i])
			wantFailure(t, err, zk.SessionClosedRequireAuth, []zk.Outcome{zk.Refused, zk.Unknown}[i])
		}
		if _, err := client.Session(t.Context()); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("client: got %v, want zk.ErrAuthFailed", err)
		}
		synctest.Wait()
		if connections != 1 {
			t.Errorf("got %d connections, want 1", connections)
		}
	})
}
