package zk_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	zookeeper "github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestReadOnlyServerIsTakenOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan bool, 10)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			asked <- req.ReadOnly
			p.grantReadOnly(req, req.ReadOnly)
			p.loop(nil)
		})
		cfg := f.config()
		_, s := f.open(cfg)
		if state, _ := s.State(); <-asked || state != zk.Connected {
			t.Errorf("plain client: state %v, want connected", state)
		}
		if !s.Certain().After(time.Now()) {
			t.Error("plain client: a session that a quorum has made is not certain")
		}
		cfg.ReadOnly = true
		_, s = f.open(cfg)
		if state, _ := s.State(); !<-asked || state != zk.ConnectedReadOnly {
			t.Errorf("client that accepts read-only: state %v, want connected read-only", state)
		}
		if s.Certain().After(time.Now()) {
			t.Error("client that accepts read-only: its session is certain, and no quorum knows of it")
		}
	})
}

func TestReadOnlyServerIsLeftForOneThatWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			p.grantReadOnly(req, p.nth == 0)
			p.loop(nil)
		})
		var probed sync.Once
		cfg := f.config()
		cfg.Servers, cfg.ReadOnly = "reads,writes", true
		left := make(chan error, 2)
		cfg.Hooks.Disconnected = func(_ string, err error) { left <- err }
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			f.mu.Lock()
			first := f.dials == 0
			f.mu.Unlock()
			switch probe := false; {
			case address == "reads:2181" && !first, address == "writes:2181" && first:
				return nil, errors.New("no route")
			case address == "writes:2181":
				if probed.Do(func() { probe = true }); !probe {
					break
				}
				near, far := net.Pipe()
				f.wg.Go(func() {
					defer far.Close()
					word := make([]byte, 4)
					if _, err := io.ReadFull(far, word); err != nil || string(word) != "isro" {
						t.Errorf("probe sent %q, %v; want isro", word, err)
					}
					_, _ = far.Write([]byte("rw"))
				})
				return near, nil
			}
			return f.Dial(ctx, network, address)
		}
		_, s := f.open(cfg)
		if state, _ := s.State(); state != zk.ConnectedReadOnly {
			t.Errorf("state %v, want connected read-only", state)
		}
		waitState(s, zk.Connected)
		if err := <-left; !errors.Is(err, zk.ErrMoved) {
			t.Errorf("left the read-only server for %v, want zk.ErrMoved", err)
		}
	})
}

func TestReadOnlyServerIsLeftForAnotherAddressOfItsName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			p.grantReadOnly(req, p.nth == 0)
			p.loop(nil)
		})
		dials := 0
		cfg := f.config()
		cfg.ReadOnly = true
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials != 2 {
				return f.Dial(ctx, network, address)
			}
			near, far := net.Pipe()
			f.wg.Go(func() { // another server of that name
				defer far.Close()
				_, _ = io.ReadFull(far, make([]byte, 4))
				_, _ = far.Write([]byte("rw"))
			})
			return near, nil
		}
		_, s := f.open(cfg)
		waitState(s, zk.Connected)
	})
}

func TestServerThatMakesNoSessionsIsLeftForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := make(chan struct{})
		f := newFake(t, func(p *peer) {
			if p.nth == 0 {
				_, _ = p.connect()
				p.raw(wire.AppendReply(nil, wire.ReplyHeader{Zxid: 42, Err: wire.NotReadOnly}, nil))
				for range p.in {
				}
				close(refused)
				return
			}
			p.open()
			p.loop(nil)
		})
		c := f.client(f.config())
		<-refused
		synctest.Wait()
		if err := c.LastError(); !errors.Is(err, zk.NotReadOnly) || errors.Is(err, zk.ErrProtocol) {
			t.Errorf("got %v, want NotReadOnly and no protocol violation", err)
		}
		if _, err := c.Session(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Promise: 8
func TestApacheZooKeeperConfirmsTheEndOfASessionAndRefusesANewOneWithoutQuorum(t *testing.T) {
	t.Parallel()
	readOnly := map[string]string{"readonlymode.enabled": "true"}
	ensemble := zookeeper.Ensemble(t, 3, zookeeper.Options{Properties: readOnly})
	open := func(server int) *zk.Client {
		cfg := zk.Config{Servers: ensemble.Addr(server), Timeout: 20 * time.Second, ReadOnly: true}
		client, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	for i := range ensemble.Len() { // leader and followers answer all who leave
		for range 5 {
			client := open(i)
			if _, err := client.Session(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := client.Close(); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
		}
	}
	ensemble.Kill(1)
	ensemble.Kill(2)
	client := open(0)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !errors.Is(client.LastError(), zk.NotReadOnly) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // until the server has given up its quorum
	}
	if err := client.LastError(); !errors.Is(err, zk.NotReadOnly) {
		t.Errorf("a new session: %v, want NotReadOnly", err)
	}
}

// Promise: 8
func TestReadOnlyServerCannotConfirmTheEndOfASession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			req, _ := p.connect()
			p.grantReadOnly(req, true)
			p.loop(nil)
		})
		cfg := f.config()
		cfg.ReadOnly = true
		c, _ := f.open(cfg)
		if err := c.Close(); err == nil {
			t.Error("Close returned nil, though no quorum has heard of it")
		}
	})
}
