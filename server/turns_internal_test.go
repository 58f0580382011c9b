package server

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// occupied makes the owner wait until the function that it returns is called, so that requests come together.
func occupied(t *testing.T, s *Server) (release func()) {
	t.Helper()
	busy, begun := make(chan struct{}), make(chan struct{})
	go func() { _ = s.do(func(*owner) { close(begun); <-busy }) }()
	<-begun
	return func() { close(busy) }
}

// awaitQueue waits until the owner's queue has requests of so many connections.
func awaitQueue(s *Server, conns int) {
	for waiting := 0; waiting < conns; runtime.Gosched() {
		s.queue.mu.Lock()
		seen := make(map[*conn]bool)
		for i := range s.queue.items {
			seen[s.queue.items[i].conn] = true
		}
		s.queue.mu.Unlock()
		waiting = len(seen)
	}
}

func TestSmallRequestsComeBeforeLargeOnesThatWait(t *testing.T) {
	t.Parallel()
	const many = 5
	data := bytes.Repeat([]byte("x"), 4*largeSize)
	read := wire.SubRequest{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/b"}}
	reads := &wire.MultiRequest{Read: true, Ops: []wire.SubRequest{read}}
	for name, row := range map[string]struct {
		op  wire.Op
		req wire.Record
	}{
		"writes":     {wire.OpSetData, &wire.SetDataRequest{Path: "/b", Data: data, Version: -1}},
		"reads":      {wire.OpGetData, &wire.PathWatchRequest{Path: "/b"}},
		"multiReads": {wire.OpMultiRead, reads},
		"lists":      {wire.OpGetChildren, &wire.PathWatchRequest{Path: "/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, Config{}, func(t *testing.T, s *Server) {
				t.Helper()
				small := mustConnect(t, s, wire.ConnectRequest{})
				if _, err := small.create("/b", data, 0); err != nil {
					t.Fatal(err)
				}
				if name == "lists" {
					for i := range 2 * largeSize / 64 {
						if _, err := small.create(fmt.Sprintf("/b/%s%d", strings.Repeat("n", 60), i), nil, 0); err != nil {
							t.Fatal(err)
						}
					}
				}
				release := occupied(t, s)
				var clients []*rawClient
				for range many { // the handshake would wait, too
					clients = append(clients, dial(t, s))
				}
				release()
				for _, c := range clients {
					if _, err := c.handshake(&wire.ConnectRequest{Timeout: 600_000}); err != nil {
						t.Fatal(err)
					}
				}
				release = occupied(t, s)
				for i, c := range clients {
					sent := make(chan error, 1)
					b := wire.AppendRequest(nil, 1, row.op, row.req)
					b = wire.AppendRequest(b, 2, wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/after-%d", i), ACL: openACL})
					go func() { _, err := c.nc.Write(b); sent <- err }()
					awaitQueue(s, i+1)
					if err := <-sent; err != nil {
						t.Fatal(err)
					}
				}
				go func() {
					awaitQueue(s, many+1)
					release()
				}()
				var first wire.Create2Response
				if err := small.call(wire.OpCreate2, &wire.CreateRequest{Path: "/small", ACL: openACL}, &first); err != nil {
					t.Fatal(err)
				}
				for _, c := range clients { // what comes behind a large request waits with it
					for xid := range int32(2) {
						h, err := c.reply(nil)
						if err != nil || h.Err != wire.OK || h.Xid != xid+1 {
							t.Fatalf("got %+v %v, want the reply to %d", h, err, xid+1)
						}
						if h.Xid == 2 && h.Zxid < first.Stat.Czxid {
							t.Errorf("what came behind a large request was served before the small one: zxid %d, %d", h.Zxid, first.Stat.Czxid)
						}
					}
				}
			})
		})
	}
}

func TestConnectionThatSendsWithoutAPauseHasItsShareOfARound(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		flood, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
		release := occupied(t, s)
		const n = 10 * readBatch
		var b []byte
		for i := range int32(n) {
			b = wire.AppendRequest(b, i, wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: openACL})
		}
		if _, err := flood.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		awaitQueue(s, 1)
		go func() {
			awaitQueue(s, 2)
			release()
		}()
		var got wire.Create2Response
		if err := other.call(wire.OpCreate2, &wire.CreateRequest{Path: "/other", ACL: openACL}, &got); err != nil {
			t.Fatal(err)
		}
		var first int64
		for i := range int32(n) {
			h, err := flood.reply(nil)
			if err != nil || h.Xid != i || h.Err != wire.OK {
				t.Fatalf("request %d: got %+v %v", i, h, err)
			}
			if i == 0 {
				first = h.Zxid
			}
		}
		if got.Stat.Czxid > first+readBatch {
			t.Errorf("the other one's request came %d after the flood's first, want at most %d", got.Stat.Czxid-first, readBatch)
		}
	})
}

func TestWatchesAndIdentitiesOfAllClientsCountAsMemory(t *testing.T) {
	t.Parallel()
	const limit = 24 << 20
	s := serve(t, Config{Limits: Limits{Memory: limit}}, disk{})
	for k := range 20 {
		c := mustConnect(t, s, wire.ConnectRequest{})
		req := &wire.SetWatchesRequest{RelativeZxid: 1 << 40}
		for i := range 20_000 { // some 4 MB
			req.Exist = append(req.Exist, fmt.Sprintf("/w%d", i))
		}
		if err := c.call(wire.OpSetWatches, req, nil); err != nil {
			t.Fatalf("client %d: %v", k, err)
		}
		if err := c.call(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: bytes.Repeat([]byte("u"), 50_000)}, nil); err != nil {
			t.Fatalf("client %d: %v", k, err)
		}
		if total, _ := s.weights(); total > limit+weighAfter+8<<20 {
			t.Fatalf("%d bytes are kept, want 24 MiB and what one look lets pass", total)
		}
	}
	if s.stats.hits[limitMemory].Load() == 0 {
		t.Error("nobody was disconnected")
	}
}

func TestFramesThatDoNotEndCountAsMemory(t *testing.T) {
	t.Parallel()
	const limit = 24 << 20
	s := serve(t, Config{Limits: Limits{Memory: limit}}, disk{})
	frame := wire.AppendRequest(nil, 1, wire.OpCreate, &wire.CreateRequest{Path: "/b", Data: make([]byte, 1<<20-200), ACL: openACL})
	for i := 0; s.stats.hits[limitMemory].Load() == 0; i++ {
		if i > 200 {
			t.Fatal("nobody was disconnected, with 200 MB of frames that do not end")
		}
		c := mustConnect(t, s, wire.ConnectRequest{})
		_, _ = c.nc.Write(frame[:len(frame)-1]) // fails if it is the one that is disconnected
	}
	if total, _ := s.weights(); total > limit+weighAfter+8<<20 {
		t.Errorf("%d bytes are kept, want 24 MiB and what one look lets pass", total)
	}
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/b", make([]byte, 1<<20-200), 0); err != nil { // one that ends is served, and counts no more
		t.Fatal(err)
	}
	c.ping(t)
	for _, sc := range s.allConns() {
		if sess := sc.sess.Load(); sess != nil && sess.id == c.session && sc.coming.Load() != 0 {
			t.Errorf("a request that is served counts %d bytes still", sc.coming.Load())
		}
	}
	if _, _, err := c.get("/nothing"); !errors.Is(err, codeError(wire.NoNode)) {
		t.Errorf("got %v", err)
	}
}
