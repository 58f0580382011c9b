package server

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// occupied makes the owner wait until the returned function is called, so that requests queue up.
func occupied(t *testing.T, s *Server) (release func()) {
	t.Helper()
	busy, begun := make(chan struct{}), make(chan struct{})
	go func() { _ = s.do(func(*owner) { close(begun); <-busy }) }()
	<-begun
	return func() { close(busy) }
}

// awaitQueue waits until the owner's queue has requests of conns connections.
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

func TestSmallRequestsAreServedBeforeWaitingLargeOnes(t *testing.T) {
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
						if _, err := small.create(fmt.Sprintf("/b/%s%d", strings.Repeat("n", 60), i), nil,
							0); err != nil {
							t.Fatal(err)
						}
					}
				}
				release := occupied(t, s)
				var clients []*rawClient
				for range many { // before, because the handshake would wait too
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
					b = wire.AppendRequest(b, 2, wire.OpCreate,
						&wire.CreateRequest{Path: fmt.Sprintf("/after-%d", i), ACL: openACL})
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
				if err := small.call(wire.OpCreate2, &wire.CreateRequest{Path: "/small", ACL: openACL},
					&first); err != nil {
					t.Fatal(err)
				}
				for _, c := range clients { // requests behind a large one wait with it
					for xid := range int32(2) {
						h, err := c.reply(nil)
						if err != nil || h.Err != wire.OK || h.Xid != xid+1 {
							t.Fatalf("got %+v %v, want the reply to %d", h, err, xid+1)
						}
						if h.Xid == 2 && h.Zxid < first.Stat.Czxid {
							t.Errorf("request behind a large one: got zxid %d, want it above the small one's %d",
								h.Zxid, first.Stat.Czxid)
						}
					}
				}
			})
		})
	}
}

// withParked parks two large requests for each connection and then calls turn on the owner.
func withParked(
	t *testing.T, s *Server, clients []*rawClient, op wire.Op, req wire.Record, turn func(o *owner, conns []*conn),
) {
	t.Helper()
	err := s.do(func(o *owner) {
		var conns []*conn
		for _, client := range clients {
			c := o.sessions[client.session].conn
			it := item{kind: itemRequest, conn: c, op: op, req: req, size: 100}
			if tree.IsWrite(op) {
				it.size = largeSize + 1
			}
			c.parked = []item{it, it}
			conns = append(conns, c)
		}
		for _, c := range conns {
			o.line(op).add(c)
		}
		turn(o, conns)
		for _, c := range conns {
			c.parked = nil
		}
		o.large, o.largeWrites = nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Work for a large request that is refused in the end makes no bytes but must end the turn. Otherwise all waiting
// requests would be served in one turn, and other clients would wait for all of them.
func TestRefusedLargeRequestEndsTheTurn(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{MaxFrame: 2 * largeSize, Limits: Limits{Reply: 3 * largeSize}}, disk{})
	clients := clientsWithData(t, s, largeSize)
	var ops []wire.SubRequest
	for range 4 {
		ops = append(ops, wire.SubRequest{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/b"}})
	}
	withParked(t, s, clients, wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: ops},
		func(o *owner, conns []*conn) {
			o.serveLarge()
			if len(conns[0].parked) != 1 || len(conns[1].parked) != 2 {
				t.Errorf("after one turn: got %d and %d requests left, want 1 and 2",
					len(conns[0].parked), len(conns[1].parked))
			}
		})
}

// Requests of a closed connection are dropped: their replies make no bytes that would end a turn.
func TestRequestsOfAClosedConnectionAreDropped(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	clients := clientsWithData(t, s, 2*largeSize)
	read := wire.SubRequest{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/b"}}
	withParked(t, s, clients, wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: []wire.SubRequest{read}},
		func(o *owner, conns []*conn) {
			for _, c := range conns {
				c.kill()
			}
			before := o.cost
			o.serveLarge()
			if o.cost != before {
				t.Error("requests of closed connections were served")
			}
		})
}

// clientsWithData returns two clients of a server with a node /b of the given size.
func clientsWithData(t *testing.T, s *Server, size int) []*rawClient {
	t.Helper()
	clients := []*rawClient{mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})}
	if _, err := clients[0].create("/b", bytes.Repeat([]byte("x"), size), 0); err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestConnectionThatKeepsSendingGetsItsShareOfARound(t *testing.T) {
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
		if share := int64(maxGiven * readBatch); got.Stat.Czxid > first+share {
			t.Errorf("got the other client's request served %d after the first of the flood, want at most %d",
				got.Stat.Czxid-first,
				share)
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
		for i := range 20_000 { // about 4 MB
			req.Exist = append(req.Exist, fmt.Sprintf("/w%d", i))
		}
		before := s.stats.hits[limitMemory].Load()
		err := c.call(wire.OpSetWatches, req, nil)
		if err == nil {
			auth := &wire.AuthRequest{Scheme: "digest", Auth: bytes.Repeat([]byte("u"), 50_000)}
			err = c.call(wire.OpAuth, auth, nil)
		}
		if err != nil && s.stats.hits[limitMemory].Load() == before { // the client with most may be this one
			t.Fatalf("client %d: %v", k, err)
		}
		if total, _ := s.memoryUse(); total > limit+enforceAfter+8<<20 {
			t.Fatalf("got %d bytes in use, want at most 24 MiB and what comes between two checks", total)
		}
	}
	if s.stats.hits[limitMemory].Load() == 0 {
		t.Error("got no client disconnected, want some")
	}
}

func TestUnfinishedFramesCountAsMemory(t *testing.T) {
	t.Parallel()
	const limit = 24 << 20
	s := serve(t, Config{Limits: Limits{Memory: limit}}, disk{})
	frame := wire.AppendRequest(nil, 1, wire.OpCreate,
		&wire.CreateRequest{Path: "/b", Data: make([]byte, 1<<20-200), ACL: openACL})
	for i := 0; s.stats.hits[limitMemory].Load() == 0; i++ {
		if i > 200 {
			t.Fatal("got no client disconnected with 200 MB of unfinished frames, want some")
		}
		c := mustConnect(t, s, wire.ConnectRequest{})
		_, _ = c.nc.Write(frame[:len(frame)-1]) // fails if this client is the one disconnected
	}
	if total, _ := s.memoryUse(); total > limit+enforceAfter+8<<20 {
		t.Errorf("got %d bytes in use, want at most 24 MiB and what comes between two checks", total)
	}
	c := mustConnect(t, s, wire.ConnectRequest{})
	// a complete one is served and no longer counts
	if _, err := c.create("/b", make([]byte, 1<<20-200), 0); err != nil {
		t.Fatal(err)
	}
	c.ping(t)
	for _, sc := range s.allConns() {
		if sess := sc.sess.Load(); sess != nil && sess.id == c.session && sc.incoming.Load() != 0 {
			t.Errorf("served request: got %d bytes counted, want 0", sc.incoming.Load())
		}
	}
	if _, _, err := c.get("/nothing"); !errors.Is(err, codeError(wire.NoNode)) {
		t.Errorf("got %v", err)
	}
}

// setOf returns a write of n bytes.
func setOf(path string, n int) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: make([]byte, n), Version: -1}
}

func TestLargeRequestIsServedThoughSmallOnesFillEveryRound(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		const size = largeSize - 1000
		var sets [2][]*rawClient // they alternate: each sends again when the other's round is over
		for i := range sets {
			for range largeShare/size + 2 { // together more than a commit's share of large requests
				sets[i] = append(sets[i], mustConnect(t, s, wire.ConnectRequest{}))
			}
		}
		large := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := large.create("/a", nil, 0); err != nil {
			t.Fatal(err)
		}
		release := occupied(t, s)
		if err := large.send(1, wire.OpSetData, setOf("/a", 2*largeSize)); err != nil {
			t.Fatal(err)
		}
		awaitQueue(s, 1)
		waiting := 1 // in the queue; items without a connection count as one
		var last wire.ReplyHeader
		replies := func(set []*rawClient) {
			for _, c := range set {
				var err error
				if last, err = c.reply(nil); err != nil || last.Err != wire.OK {
					t.Fatalf("got %+v %v", last, err)
				}
			}
		}
		const rounds = 5
		for k := range rounds {
			next := make(chan func(), 1)
			go func() { next <- occupied(t, s) }()
			awaitQueue(s, waiting+1)
			for _, c := range sets[k%2] {
				if err := c.send(1, wire.OpSetData, setOf("/a", size)); err != nil {
					t.Fatal(err)
				}
			}
			awaitQueue(s, waiting+1+len(sets[k%2]))
			release()
			release, waiting = <-next, 0
			if k > 0 {
				replies(sets[(k-1)%2])
			}
		}
		release()
		replies(sets[(rounds-1)%2])
		if h, err := large.reply(nil); err != nil || h.Err != wire.OK || h.Zxid > last.Zxid {
			t.Errorf("large request: got %+v %v, want it served before the small ones of the last round, %d", h, err,
				last.Zxid)
		}
	})
}

func TestTurnIsBoundedThoughMuchWaitsBehindALargeRequest(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		const size, many = largeSize - 1000, 40
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.create("/a", nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.do(func(o *owner) {
			sc := o.sessions[c.session].conn
			for i := range int32(many) {
				n := size
				if i == 0 {
					n = 2 * largeSize
				}
				it := item{kind: itemRequest, conn: sc, op: wire.OpSetData, xid: i, size: n, req: setOf("/a", n)}
				sc.admit([]item{it})
				sc.parked = append(sc.parked, it)
			}
			start := o.cost
			o.resume(sc, true)
			if got := o.cost - start; got < largeShare || got > largeShare+2*largeSize {
				t.Errorf("got %d bytes served in one turn, want about %d", got, largeShare)
			}
			if n := len(o.largeWrites); n != 1 || o.largeWrites[0] != sc {
				t.Errorf("got %d connections waiting for a turn, want the one whose turn has ended", n)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for i := range int32(many) {
			if h, err := c.reply(nil); err != nil || h.Err != wire.OK || h.Xid != i {
				t.Fatalf("got %+v %v, want the reply to %d", h, err, i)
			}
		}
	})
}

func TestConnectionClosedBeforeItsTurnLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		const many = 5
		stays := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := stays.create("/a", nil, 0); err != nil {
			t.Fatal(err)
		}
		var leave []*rawClient
		for range many {
			leave = append(leave, mustConnect(t, s, wire.ConnectRequest{}))
		}
		release := occupied(t, s)
		for i, c := range leave {
			b := wire.AppendRequest(nil, 1, wire.OpSetData, setOf("/a", 2*largeSize))
			b = wire.AppendRequest(b, 2, wire.OpSetData, setOf("/a", 1))
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			awaitQueue(s, i+1)
			_ = c.nc.Close()
		}
		for gone := 0; gone < many; runtime.Gosched() {
			gone = 0
			s.queue.mu.Lock()
			for i := range s.queue.items {
				if s.queue.items[i].kind == itemGone {
					gone++
				}
			}
			s.queue.mu.Unlock()
		}
		release()
		if err := stays.set("/a", make([]byte, 3*largeSize)); err != nil { // waits for all turns
			t.Fatal(err)
		}
		if _, stat, err := stays.get("/a"); err != nil || stat.Version != 1 {
			t.Errorf("got version %d %v, want 1: a connection closed before its turn must not write", stat.Version, err)
		}
		if err := s.do(func(o *owner) {
			if n := len(o.large) + len(o.largeWrites); n > 0 {
				t.Errorf("got %d connections waiting for a turn, want 0", n)
			}
		}); err != nil {
			t.Fatal(err)
		}
		resumed, err := leave[0].resume(s)
		if err != nil {
			t.Fatal(err)
		}
		_ = resumed.nc.Close()
	})
}

// The number of clients whose large writes queueLarge sends, and the size of a write.
const manyLarge, sizeOfLarge = 20, 8 * largeSize

// queueLarge makes clients send large writes while the disk waits until open is called.
func queueLarge(t *testing.T, s *Server, g *gate) (others []*rawClient, open func()) {
	t.Helper()
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/a", nil, 0); err != nil {
		t.Fatal(err)
	}
	for range manyLarge {
		others = append(others, mustConnect(t, s, wire.ConnectRequest{}))
	}
	open = g.shut(t)
	for _, other := range others {
		if err := other.send(1, wire.OpSetData, setOf("/a", sizeOfLarge)); err != nil {
			t.Fatal(err)
		}
	}
	for waiting := 0; waiting < manyLarge-1; runtime.Gosched() {
		if err := s.do(func(o *owner) { waiting = len(o.largeWrites) }); err != nil {
			t.Fatal(err)
		}
	}
	return others, open
}

func TestCloseEndsWhileLargeRequestsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, g)
	_, open := queueLarge(t, s, g)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-s.stopping
	open()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A request counts until it is answered, and its reply until it is sent, whatever the outcome.
func TestAnsweredRequestsNoLongerCount(t *testing.T) {
	t.Parallel()
	cfg := Config{Limits: Limits{Reply: 2 << 20, Watches: 10, Identities: 1}}
	onEachStore(t, cfg, func(t *testing.T, s *Server) {
		t.Helper()
		long := strings.Repeat("w", 2*largeSize)
		var reads, sets wire.MultiRequest
		reads.Read = true
		for range 3 * 1024 {
			read := &wire.PathWatchRequest{Path: "/b"}
			reads.Ops = append(reads.Ops, wire.SubRequest{Op: wire.OpGetData, Request: read})
		}
		for range 3 {
			sets.Ops = append(sets.Ops, wire.SubRequest{Op: wire.OpSetData, Request: setOf("/none", largeSize)})
		}
		steps := []struct {
			op   wire.Op
			req  wire.Record
			want wire.Code
			ends bool
		}{
			{
				wire.OpCreate, &wire.CreateRequest{Path: "/b", Data: make([]byte, 2*largeSize), ACL: openACL}, wire.OK,
				false,
			},
			{wire.OpGetData, &wire.PathWatchRequest{Path: "/b"}, wire.OK, false},
			{wire.OpSetData, setOf("/none", 2*largeSize), wire.NoNode, false},
			{wire.OpSetData, setOf("/none", 2), wire.NoNode, false},
			{wire.OpMulti, &sets, wire.OK, false},
			{wire.OpMultiRead, &reads, wire.MarshallingError, false},
			{wire.OpGetData, &wire.SASLToken{Token: []byte(long)}, wire.MarshallingError, false}, // truncated
			{wire.OpGetData, &wire.PathWatchRequest{Path: "/" + long, Watch: true}, wire.NoNode, false},
			{wire.OpExists, &wire.PathWatchRequest{Path: "/" + long, Watch: true}, wire.BadArguments, false},
			{wire.OpSetWatches, &wire.SetWatchesRequest{Exist: []string{"/" + long}}, wire.BadArguments, true},
			{wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(long)}, wire.AuthFailed, true},
			{wire.OpAuth, &wire.AuthRequest{Scheme: long}, wire.AuthFailed, true},
			{wire.OpSASL, &wire.SASLToken{Token: []byte(long)}, wire.OK, false},
			{wire.OpCheck, &wire.CheckRequest{Path: "/" + long}, wire.Unimplemented, true},
			{wire.OpCloseSession, &wire.Empty{}, wire.OK, true},
		}
		c := mustConnect(t, s, wire.ConnectRequest{})
		for _, step := range steps {
			if err := c.send(1, step.op, step.req); err != nil {
				t.Fatal(err)
			}
			if h, err := c.reply(nil); err != nil || h.Err != step.want {
				t.Fatalf("%v: got %+v %v, want %v", step.op, h, err, step.want)
			}
			if step.ends {
				_ = c.nc.Close()
				c = mustConnect(t, s, wire.ConnectRequest{})
			}
			for total := -1; total != 0; runtime.Gosched() { // sent bytes stop counting shortly after
				if total, _ = s.memoryUse(); total < 0 {
					t.Fatalf("%v: got %d bytes in use", step.op, total)
				}
			}
			for _, sc := range s.allConns() {
				sc.outbox.mu.Lock()
				if sc.pending != 0 || sc.bytes != 0 {
					t.Errorf("%v: got %d requests of %d bytes counted, want none", step.op, sc.pending, sc.bytes)
				}
				sc.outbox.mu.Unlock()
			}
		}
	})
}

func TestAnnouncedLengthOfAFrameDoesNotCount(t *testing.T) {
	t.Parallel()
	const limit, many = 24 << 20, 200
	s := serve(t, Config{Limits: Limits{Memory: limit}}, disk{})
	behaves := mustConnect(t, s, wire.ConnectRequest{})
	req := &wire.SetWatchesRequest{RelativeZxid: 1 << 40}
	for i := range 10_000 { // about 2 MB
		req.Exist = append(req.Exist, fmt.Sprintf("/w%d", i))
	}
	behaves.mustCall(t, wire.OpSetWatches, req)
	for range many {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.nc.Write([]byte{0, 0x0f, 0xff, 0xff, 0}); err != nil {
			t.Fatal(err)
		}
	}
	for coming := 0; coming < many && s.stats.hits[limitMemory].Load() == 0; runtime.Gosched() {
		coming = 0
		for _, sc := range s.allConns() {
			if sc.incoming.Load() > 0 {
				coming++
			}
		}
	}
	s.enforceMemory()
	if n := s.stats.hits[limitMemory].Load(); n > 0 {
		t.Errorf("got %d clients disconnected because others announced large frames, want 0", n)
	}
	behaves.ping(t)
}

// A commit's share of large writes is bounded, so that a small write does not wait for all of them.
func TestCommitHasFewLargeWrites(t *testing.T) {
	t.Parallel()
	s := startWith(t, newGate())
	clients := clientsWithData(t, s, 1)
	for len(clients) < 2*largeShare/largeSize {
		clients = append(clients, mustConnect(t, s, wire.ConnectRequest{}))
	}
	withParked(t, s, clients, wire.OpSetData, setOf("/b", largeSize), func(o *owner, _ []*conn) {
		for range clients {
			o.serveLarge()
		}
		if n := o.open.large; n < largeShare || n > largeShare+2*largeSize {
			t.Errorf("got %d bytes of large writes in one commit, want about %d", n, largeShare)
		}
	})
}

// A small write waits for at most one large write that was there before it.
func TestOneLargeWriteIsCommittedAtATime(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, g)
	small := mustConnect(t, s, wire.ConnectRequest{})
	others, open := queueLarge(t, s, g)
	if err := small.send(1, wire.OpCreate, &wire.CreateRequest{Path: "/small", ACL: openACL}); err != nil {
		t.Fatal(err)
	}
	for served := false; !served; runtime.Gosched() {
		if err := s.do(func(o *owner) {
			n := len(o.largeWrites)
			if served = o.seq-o.durable.seq.Load() > 1; served && n != manyLarge-1 {
				t.Errorf("got %d waiting large writes, want %d, as one is being committed", n, manyLarge-1)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	h, err := small.reply(nil)
	if err != nil || h.Err != wire.OK {
		t.Fatalf("got %+v %v", h, err)
	}
	before := 0
	for i, other := range others {
		got, err := other.reply(nil)
		if err != nil || got.Err != wire.OK {
			t.Errorf("request %d: got %+v %v", i, got, err)
		}
		if got.Zxid < h.Zxid {
			before++
		}
	}
	if before != 1 {
		t.Errorf("got %d large writes before a small one, want 1", before)
	}
	err = s.do(func(o *owner) {
		if o.largeNext.IsZero() {
			t.Error("got no pause between large writes though a small one came, want one")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Large replies are encoded only when earlier ones have been sent, but nothing may overtake them.
func TestLargeRepliesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
		data := [2][]byte{bytes.Repeat([]byte("a"), 2*bulkSize), bytes.Repeat([]byte("b"), 3*bulkSize)}
		if _, err := c.create("/b", data[0], 0); err != nil {
			t.Fatal(err)
		}
		get := &wire.PathWatchRequest{Path: "/b", Watch: true}
		for xid, op := range []wire.Op{wire.OpExists, wire.OpGetData, wire.OpExists, wire.OpGetData} {
			if err := c.send(int32(xid), op, get); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.send(99, wire.OpExists, &wire.PathWatchRequest{Path: "/", Watch: true}); err != nil {
			t.Fatal(err)
		}
		c.awaitWatches(t, s, 2) // the last request sets the second one, so those before it were served
		set := &wire.SetDataRequest{Path: "/b", Data: data[1], Version: -1}
		if err := other.call(wire.OpSetData, set, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.send(4, wire.OpGetData, get); err != nil {
			t.Fatal(err)
		}
		c.wantReply(t, 0, nil)
		c.wantReply(t, 1, data[0])
		c.wantReply(t, 2, nil)
		c.wantReply(t, 3, data[0])
		c.wantReply(t, 99, nil)
		c.wantReply(t, wire.XidNotification, nil)
		c.wantReply(t, 4, data[1])

		// A read that sees what is not durable yet waits with it, and so does an event.
		long := "/" + strings.Repeat("n", 2*bulkSize)
		b := wire.AppendRequest(nil, 5, wire.OpSetData, &wire.SetDataRequest{Path: "/b", Data: data[0], Version: -1})
		b = wire.AppendRequest(b, 6, wire.OpGetData, get)
		var sets wire.MultiRequest
		for range bulkSize / 10 {
			set := &wire.SetDataRequest{Path: "/b", Data: data[1][:1], Version: -1}
			sets.Ops = append(sets.Ops, wire.SubRequest{Op: wire.OpSetData, Request: set})
		}
		b = wire.AppendRequest(b, 7, wire.OpMulti, &sets)
		b = wire.AppendRequest(b, 8, wire.OpAddWatch, &wire.AddWatchRequest{Path: long, Mode: wire.WatchPersistent})
		b = wire.AppendRequest(b, 9, wire.OpCreate, &wire.CreateRequest{Path: long, ACL: openACL})
		go func() { _, _ = c.nc.Write(b) }()
		c.wantReply(t, wire.XidNotification, nil)
		c.wantReply(t, 5, nil)
		c.wantReply(t, 6, data[0])
		c.wantReply(t, wire.XidNotification, nil)
		c.wantReply(t, 7, nil)
		c.wantReply(t, 8, nil)
		c.wantReply(t, wire.XidNotification, nil)
		if e := c.events[len(c.events)-1]; e.Path != long {
			t.Errorf("got an event with a path of %d bytes, want %d", len(e.Path), len(long))
		}
		c.wantReply(t, 9, nil)
		for total := -1; total != 0; runtime.Gosched() { // sent bytes stop counting shortly after
			_ = s.do(func(o *owner) { total = int(o.sessions[c.session].conn.backlog.Load()) })
		}
	})
}

// wantReply reads the next frame. It must be the reply xid, or an event, and have the data, if that is not nil.
func (c *rawClient) wantReply(t *testing.T, xid int32, data []byte) {
	t.Helper()
	h, d, err := c.next()
	var got wire.DataResponse
	if err == nil && data != nil {
		got.Decode(d)
	}
	if err != nil || h.Xid != xid || h.Err != wire.OK || !bytes.Equal(got.Data, data) {
		t.Fatalf("got %+v with %d bytes %.3q, %v, want xid %d with %d %.3q",
			h, len(got.Data), got.Data, err, xid, len(data), data)
	}
}

// awaitWatches waits until the server has set so many watches, without reading a reply.
func (c *rawClient) awaitWatches(t *testing.T, s *Server, n int) {
	t.Helper()
	for set := 0; set < n; runtime.Gosched() {
		if err := s.do(func(o *owner) { _, _, set = o.tree.WatchSummary() }); err != nil {
			t.Fatal(err)
		}
	}
}

// Watches are set and removed in pieces, because a client with many would otherwise keep all others waiting.
func TestManyWatchesAreSetAndRemovedInPieces(t *testing.T) {
	t.Parallel()
	const all = 5 * watchesAtOnce
	s := serve(t, Config{}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	watches := func(o *owner) int {
		_, _, n := o.tree.WatchSummary()
		return n
	}
	set := &wire.SetWatchesRequest{RelativeZxid: 1 << 40}
	for i := range all / 5 {
		set.Exist = append(set.Exist, fmt.Sprintf("/e%d", i), fmt.Sprintf("/f%d", i), fmt.Sprintf("/g%d", i))
		set.PersistentRecur = append(set.PersistentRecur, fmt.Sprintf("/r%d", i), fmt.Sprintf("/s%d", i))
	}
	err := s.do(func(o *owner) {
		conn := o.sessions[c.session].conn
		conn.parked = []item{{kind: itemRequest, conn: conn, op: wire.OpSetWatches2, req: set, xid: 7}}
		o.large = append(o.large, conn)
		for turn := 1; len(conn.parked) > 0; turn++ {
			before := watches(o)
			if o.serveLarge(); watches(o)-before != watchesAtOnce {
				t.Errorf("turn %d: got %d more watches, want %d", turn, watches(o)-before, watchesAtOnce)
				return
			}
		}
		if watches(o) != all {
			t.Errorf("got %d watches, want %d", watches(o), all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := c.reply(nil); err != nil || h.Xid != 7 || h.Err != wire.OK {
		t.Fatalf("got %+v %v", h, err)
	}
	err = s.do(func(o *owner) {
		o.detach(o.sessions[c.session].conn)
		for left := all; left > 0; o.removeWatches() {
			if left -= watchesAtOnce; watches(o) != left {
				t.Errorf("got %d watches, want %d", watches(o), left)
				return
			}
		}
		if len(o.unwatching) > 0 {
			t.Error("got watches left to remove, want none")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A connection with much to send is closed by a goroutine of its own, and what it had to send is dropped.
func TestConnectionWithMuchToSendIsClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := clientsWithData(t, s, 8*bulkSize)[0]
	get := &wire.PathWatchRequest{Path: "/b"}
	for xid := range int32(20) {
		if err := c.send(xid, wire.OpGetData, get); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.do(func(o *owner) {
		conn := o.sessions[c.session].conn
		conn.backlog.Add(bulkSize)
		for range 20 {
			conn.put(&frame{large: &large{body: &wire.DataResponse{}}}, nil, 0)
		}
		conn.kill()
		conn.outbox.mu.Lock()
		defer conn.outbox.mu.Unlock()
		if len(conn.out) > 0 || len(conn.bulk) > 0 {
			t.Errorf("got %d bytes and %d large frames left to send, want none", len(conn.out), len(conn.bulk))
		}
	}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := c.next(); err != nil {
			return
		}
	}
}

// A large read, and with it the later requests and the pings of its client, waits for no write, and for no disk.
func TestLargeReadDoesNotWaitForLargeWrites(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, g)
	reader := mustConnect(t, s, wire.ConnectRequest{})
	others, open := queueLarge(t, s, g)
	set := &wire.SetWatchesRequest{RelativeZxid: 1 << 40}
	for i := range 3 * watchesAtOnce {
		set.Exist = append(set.Exist, fmt.Sprint("/", i))
	}
	if err := reader.send(1, wire.OpSetWatches, set); err != nil {
		t.Fatal(err)
	}
	if h, err := reader.reply(nil); err != nil || h.Err != wire.OK {
		t.Fatalf("got %+v %v", h, err)
	}
	open()
	for _, other := range others {
		if h, err := other.reply(nil); err != nil || h.Err != wire.OK {
			t.Errorf("got %+v %v", h, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Clients that connect, set watches and leave must not set them faster than they are removed.
func TestWatchesAreRemovedFasterThanOthersAreSet(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	leaves, stays := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	if err := s.do(func(o *owner) {
		watch := func(c *rawClient, from, to int) {
			for i := from; i < to; i++ {
				req := &wire.PathWatchRequest{Path: fmt.Sprint("/", i), Watch: true}
				o.tree.Read(&o.sessions[c.session].conn.caller, wire.OpExists, req)
			}
		}
		watch(leaves, 0, 5000)
		o.removeWatches()
		o.detach(o.sessions[leaves.session].conn)
		for set, left := 0, o.tree.WatchCount(); len(o.unwatching) > 0; left = o.tree.WatchCount() {
			watch(stays, set, set+1000)
			set += 1000
			if o.removeWatches(); o.tree.WatchCount() > left-1000 && len(o.unwatching) > 0 {
				t.Errorf("%d watches became %d when 1,000 were set", left, o.tree.WatchCount())
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// While the disk is slow, writes that are not large, but many, do not fill the memory.
func TestBatchTakesWritesUpToALimit(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, g)
	// Each client sends more than all commits under way and the next batch can hold, so that every one comes to wait.
	const size = largeSize - 1000
	const each = (maxInFlight + 2) * (maxBatch + largeSize) / size
	var clients []*rawClient
	for i := range 4 {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.create(fmt.Sprint("/", i), nil, 0); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	open := g.shut(t)
	var sending sync.WaitGroup
	for i, c := range clients {
		sending.Go(func() {
			for xid := range int32(each) {
				if err := c.send(xid+1, wire.OpSetData, setOf(fmt.Sprint("/", i), size)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for full := 0; full < len(clients)-1; runtime.Gosched() { // the reader of one may wait for the disk itself
		if err := s.do(func(o *owner) {
			full = len(o.full)
			if o.open != nil && o.open.bytes > maxBatch+largeSize {
				t.Errorf("got %d bytes in a batch, want at most about %d", o.open.bytes, maxBatch)
				full = len(clients)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	open()
	for _, c := range clients {
		for xid := range int32(each) {
			if h, err := c.reply(nil); err != nil || h.Err != wire.OK || h.Xid != xid+1 {
				t.Fatalf("got %+v %v, want the reply to %d", h, err, xid+1)
			}
		}
	}
	sending.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
