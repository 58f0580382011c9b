package zk_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

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
			resp := wire.ConnectResponse{Timeout: req.Timeout, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: req.ReadOnly}
			p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
			p.loop(nil)
		})
		cfg := f.config()
		_, s := f.open(cfg)
		if state, _ := s.State(); <-asked || state != zk.Connected {
			t.Errorf("plain client: state %v, want connected", state)
		}
		cfg.ReadOnly = true
		_, s = f.open(cfg)
		if state, _ := s.State(); !<-asked || state != zk.ConnectedReadOnly {
			t.Errorf("client that accepts read-only: state %v, want connected read-only", state)
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
			resp := wire.ConnectResponse{Timeout: req.Timeout, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: p.nth == 0}
			p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
			p.loop(nil)
		})
		var probed sync.Once
		cfg := f.config()
		cfg.Servers, cfg.ReadOnly = "reads,writes", true
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
	})
}
