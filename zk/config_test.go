package zk_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 9
func TestBadConfigIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	cases := map[string]zk.Config{
		"no servers":       {},
		"empty entry":      {Servers: "a,,b"},
		"no host":          {Servers: ":2181"},
		"bad port":         {Servers: "a:port"},
		"port 0":           {Servers: "a:0"},
		"IPv6 as it is":    {Servers: "::1"},
		"bad chroot":       {Servers: "a/b//c"},
		"chroot too soon":  {Servers: "zk1:2181/app,zk2:2181"},
		"chroot with dots": {Servers: "a/../b"},
		"unix nowhere":     {Servers: "unix:"},
		"space in a host":  {Servers: "a b"},
		"negative timeout": {Servers: "a", Timeout: -1},
		"huge timeout":     {Servers: "a", Timeout: 1 << 62},
		"margin too large": {Servers: "a", Timeout: time.Second, Margin: time.Second},
		"small frames":     {Servers: "a", MaxFrame: 10},
		"SASL for nobody":  {Servers: "a", SASL: zk.DigestMD5{}},
		"auth for nothing": {Servers: "a", Auth: []zk.Auth{{}}},
	}
	for name, cfg := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := zk.Open(t.Context(), cfg)
			if err == nil {
				_ = c.Close()
				t.Fatal("was taken")
			}
			if !strings.HasPrefix(err.Error(), "zk: ") {
				t.Errorf("error %q does not say where it comes from", err)
			}
		})
	}
}

func TestOpenWithAContextThatHasEndedFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := zk.Open(ctx, zk.Config{Servers: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClientOutlivesTheContextOfOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		c, err := zk.Open(ctx, f.config())
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := c.Session(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOneBadNameIsNotFatal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var mu sync.Mutex
		asked := map[string]int{}
		cfg := f.config()
		cfg.Servers = "good,bad,worse"
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			asked[address]++
			mu.Unlock()
			if address != "good:2181" {
				return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
			}
			return f.Dial(ctx, network, address)
		}
		_, s := f.open(cfg)
		for range 3 { // the names are given to the dialer at every attempt, never an address from before
			after(s, f.cut)
			waitState(s, zk.Connected)
		}
		if asked["good:2181"] != 4 {
			t.Errorf("dialled %v, want the good one 4 times", asked)
		}
	})
}

func TestFailedAttemptsBackOffWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		cfg := zk.Config{Servers: "a", Dial: func(context.Context, string, string) (net.Conn, error) {
			times = append(times, time.Now())
			return nil, errors.New("no route")
		}}
		c, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_ = c.Close()
		if n := len(times); n < 30 || n > 80 {
			t.Errorf("%d attempts in a minute, want one every one or two seconds", n)
		}
		gaps := map[time.Duration]bool{}
		for i := range times[1:] {
			gaps[times[i+1].Sub(times[i])] = true
		}
		if len(gaps) < 10 {
			t.Errorf("only %d different gaps between attempts, want jitter", len(gaps))
		}
	})
}

func TestClientsOfAServerThatFailsComeBackOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients, spread = 50, 250 * time.Millisecond
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var mu sync.Mutex
		var times []time.Time
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Now())
			return f.Dial(ctx, network, address)
		}
		for range clients {
			f.open(cfg)
		}
		times = nil
		start := time.Now()
		f.cut()
		time.Sleep(spread)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		early := 0
		for _, at := range times {
			if at.Sub(start) < spread/2 {
				early++
			}
		}
		if len(times) != clients || early < clients/5 || early > clients*4/5 {
			t.Errorf("%d of %d clients came back, %d of them in the first half of %v; want all, and about half",
				len(times), clients, early, spread)
		}
	})
}

// An owner must learn quickly whether its session lives, so its client dials again without a timer. Nanoseconds do not
// matter, but synctest.Wait does not wait for timers.
func TestClientsThatOwnSomethingComeBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients = 20
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var dialled atomic.Int32
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return f.Dial(ctx, network, address)
		}
		for range clients {
			_, s := f.open(cfg)
			s.NewOwnership(new(owner)).Begin()
		}
		f.cut()
		synctest.Wait()
		if n := dialled.Load(); n != 2*clients {
			t.Errorf("%d of %d came back without any time passing", n-clients, clients)
		}
	})
}

func TestLoggerIsWarnedOnceThatNoServerCanBeReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c, err := zk.Open(t.Context(), zk.Config{
			Servers: "a:1,b:1", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") },
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		_ = c.Close()
		if n := strings.Count(log.String(), "no route"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%d lines, want one warning:\n%s", n, log.String())
		}
	})
}

// Promise: 7
func TestHooksTellWhatHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, s)
		}
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpDelete {
					p.answer(r, 1, wire.NoNode, nil)
				}
				return r.Op == wire.OpDelete
			})
		})
		cfg := f.config()
		cfg.Hooks = zk.Hooks{
			Request: func(_ context.Context, r zk.RequestDone) {
				note(strings.TrimSpace(r.Op + " " + r.Path))
				if (r.Err != nil) != (r.Op == "delete") {
					t.Errorf("request %s: error %v", r.Op, r.Err)
				}
			},
			State:        func(s zk.State) { note(s.String()) },
			Connected:    func(addr string) { note("to " + addr) },
			Disconnected: func(addr string, _ error) { note("from " + addr) },
		}
		c, s := f.open(cfg)
		_ = s.Delete(t.Context(), "/a", -1)
		b := s.Batch()
		future := b.Get("/b")
		b.Send()
		for range 2 {
			_, _ = future.Get(t.Context())
		}
		after(s, f.cut)
		waitState(s, zk.Connected)
		synctest.Wait()
		_ = c.Close()
		want := "to fake:2181|connected|delete /a|getData /b|from fake:2181|suspended|" +
			"to fake:2181|connected|from fake:2181|ended"
		if all := strings.Join(got, "|"); all != want {
			t.Errorf("hooks told %s, want %s", all, want)
		}
	})
}
