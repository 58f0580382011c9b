package zk_test

// What a client sends by itself fits into servers' frames, however much it owns or watches.

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A scale notes the requests of a client, which all are answered with success.
type scale struct {
	mu      sync.Mutex // guards what follows
	longest int        // bytes of the longest request but its header
	checked map[string]int
}

func (sc *scale) serve(p *peer) {
	if !p.open() {
		return
	}
	p.loop(func(r request) bool {
		sc.mu.Lock()
		defer sc.mu.Unlock()
		sc.longest = max(sc.longest, r.body.Len())
		if r.Op != wire.OpMulti {
			return false
		}
		resp := new(wire.MultiResponse)
		for _, op := range r.record().(*wire.MultiRequest).Ops {
			sc.checked[op.Request.(*wire.CheckRequest).Path]++
			resp.Results = append(resp.Results, wire.MultiResult{Op: wire.OpCheck})
		}
		p.answer(r, 1, wire.OK, resp)
		return true
	})
}

// smallFrame is a jute.maxbuffer that operators set to keep nodes small.
const smallFrame = 64 << 10

// Proofs check a part of what is owned, and all of it in turn.
//
// Promise: 2
func TestProofsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ owners, each, length, limit, minutes int }{
		"sets of many nodes": {20, 1000, 40, smallFrame, 4},
		"long paths":         {3, 100, 10_000, smallFrame, 7},
		"longest paths":      {2, 3, 1_000_000, 1_010_000, 1},
		"middling paths":     {2, 600, 255, smallFrame, 3},
		"many owners":        {1500, 1, 100, smallFrame, 1},
		"owners of nothing":  {400, 0, 0, smallFrame, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sc := &scale{checked: make(map[string]int)}
				f := newFake(t, sc.serve)
				_, s := f.open(f.config())
				first := &owner{nodes: []string{"/first"}}
				owns := []*zk.Ownership{begin(t, s, first)}
				for i := range test.owners {
					o := new(owner)
					for j := range test.each {
						path := fmt.Sprintf("/%d-%d-", i, j)
						o.nodes = append(o.nodes, path+strings.Repeat("x", test.length-len(path)))
					}
					owns = append(owns, begin(t, s, o))
				}
				time.Sleep(time.Duration(test.minutes) * time.Minute)
				for _, own := range owns {
					if err := own.Err(); err != nil {
						t.Fatal(err)
					}
					own.End()
				}
				sc.mu.Lock()
				defer sc.mu.Unlock()
				if sc.longest > test.limit {
					t.Errorf("got a request of %d bytes, want %d at most", sc.longest, test.limit)
				}
				if got, want := len(sc.checked), test.owners*test.each+1; got != want {
					t.Errorf("got %d nodes checked, want all %d in turn", got, want)
				}
				least, most := 1<<30, 0
				for _, n := range sc.checked {
					least, most = min(least, n), max(most, n)
				}
				if most > 2*least+2 {
					t.Errorf("got nodes that were checked %d to %d times, want the same for all", least, most)
				}
			})
		})
	}
}

// A server cuts the connection at a request of more than jute.maxbuffer, and would do so at each reconnect.
func TestWatchesAreRestoredInFramesThatServersAccept(t *testing.T) {
	t.Parallel()
	const most = 1<<20 - 1 // by default
	for name, test := range map[string]struct{ watches, length, limit int }{
		"many":             {20_000, 500, smallFrame},
		"short after long": {2000, 1000, smallFrame},
		"longest":          {6, most - 100, most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				restored, frames, longest := 0, 0, 0
				f := newFake(t, func(p *peer) {
					if !p.open() {
						return
					}
					p.loop(func(r request) bool {
						if n := r.body.Len() + 8; n > test.limit {
							t.Errorf("got %v of %d bytes, want %d at most", r.Op, n, test.limit)
						}
						if r.Op == wire.OpSetWatches {
							longest = max(longest, r.body.Len())
							frames++
							restored += len(r.record().(*wire.SetWatchesRequest).Data)
							p.answer(r, 1, wire.OK, nil)
							return true
						}
						return false
					})
				})
				_, s := f.open(f.config())
				b := s.Batch()
				var watches []*zk.Future[zk.WatchedData]
				for i := range test.watches {
					path := fmt.Sprintf("/%d-", i)
					if i%2 == 1 || name != "short after long" {
						path += strings.Repeat("x", test.length-len(path))
					}
					watches = append(watches, b.GetW(path))
					if i%1000 == 999 {
						b.Send()
					}
				}
				b.Send()
				for _, w := range watches {
					if _, err := w.Get(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				after(s, f.cut)
				waitState(s, zk.Connected)
				if err := s.Sync(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
				if restored != test.watches {
					t.Errorf("got %d watches restored in %d frames, want %d", restored, frames, test.watches)
				}
			})
		})
	}
}

// Each packet that the server has answered shows that it is alive.
func TestSessionOutlivesTheTimeThatItsWatchesTakeToBeRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if !p.open() {
				return
			}
			p.loop(func(r request) bool {
				if r.Op != wire.OpSetWatches {
					return false
				}
				time.Sleep(time.Second)
				p.answer(r, 1, wire.OK, nil)
				return true
			})
		})
		_, s := f.open(f.config())
		const packets = 30
		for i := range packets {
			path := fmt.Sprintf("/%d-%s", i, strings.Repeat("x", 100<<10))
			if _, _, _, err := s.GetW(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		after(s, f.cut)
		waitState(s, zk.Connected)
		start := time.Now()
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < packets*time.Second {
			t.Errorf("restored within %v, want a second for each of %d packets", took, packets)
		}
	})
}

// It would cut each connection that restores it.
func TestWatchThatCannotBeRestoredIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if p.open() {
				p.loop(nil)
			}
		})
		_, s := f.open(f.config())
		path := "/" + strings.Repeat("x", 1<<20-20)
		_, _, _, get := s.GetW(t.Context(), path)
		_, _, _, exists := s.ExistsW(t.Context(), path)
		_, _, _, children := s.ChildrenW(t.Context(), path)
		_, watch := s.Watch(t.Context(), path)
		_, recursive := s.WatchRecursive(t.Context(), path)
		b := s.Batch()
		_, batch := b.GetW(path).Get(t.Context())
		_, list := b.ChildrenW(path).Get(t.Context())
		for i, err := range []error{get, exists, children, watch, recursive, batch, list} {
			if !errors.Is(err, zk.BadArguments) || zk.OutcomeOf(err) != zk.NotSent {
				t.Errorf("%d: got %v (%v), want BadArguments, not sent", i, err, zk.OutcomeOf(err))
			}
		}
	})
}

// Such a credential would be sent on each connection, and cut it.
func TestCredentialThatNoServerAcceptsIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if p.open() {
				p.loop(nil)
			}
		})
		long := zk.Auth{Scheme: "digest", Data: make([]byte, 1<<20)}
		_, s := f.open(f.config())
		err := s.AddAuth(t.Context(), long)
		wantFailure(t, err, zk.BadArguments, zk.NotSent)
		if err := s.AddAuth(t.Context(), zk.Auth{Data: []byte("a:b")}); !errors.Is(err, zk.BadArguments) {
			t.Errorf("without a scheme: got %v, want BadArguments", err)
		}
		after(s, f.cut)
		waitState(s, zk.Connected)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		cfg := f.config()
		cfg.Auth = []zk.Auth{long}
		if _, err := zk.Open(t.Context(), cfg); err == nil {
			t.Error("Open accepts a credential that no server accepts")
		}
	})
}

// A real server, whose limit is a mebibyte, ends no connection.
//
// Promise: 2
func TestSessionThatOwnsAndWatchesMuchKeepsItsConnection(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		s := srv.Session(t, ownTimeout)
		ctx := t.Context()
		o := new(owner)
		b := s.Batch()
		for i := range 1200 { // more than a mebibyte of paths
			o.nodes = append(o.nodes, fmt.Sprintf("/%d-%s", i, strings.Repeat("x", 1000)))
			b.Create(o.nodes[i], nil, zk.Ephemeral)
			b.GetW(o.nodes[i])
		}
		b.Send()
		if err := s.Sync(ctx, "/"); err != nil { // or the first fault would lose some of the requests
			t.Fatal(err)
		}
		own := begin(t, s, o)
		defer own.End()
		for range 3 {
			srv.Drop()
			time.Sleep(ownTimeout)
		}
		if err := own.Err(); err != nil || len(o.missed()) > 0 {
			t.Errorf("got %v, nodes gone: %d", err, len(o.missed()))
		}
		_, changed := s.State()
		time.Sleep(ownTimeout)
		select {
		case <-changed:
			t.Error("got another connection, want the last one to stay")
		default:
		}
		if _, _, err := s.Exists(ctx, "/"); err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}
