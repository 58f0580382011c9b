package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// wantRefused checks that a request is refused with a code and that the connection stays open.
func wantRefused(t *testing.T, c *rawClient, code wire.Code, op wire.Op, req wire.Record) {
	t.Helper()
	if err := c.call(op, req, nil); !errors.Is(err, codeError(code)) {
		t.Errorf("%v: got %v, want %v", op, err, code)
	}
	c.ping(t)
}

// wantHit checks how often mntr says that a limit was hit.
func wantHit(t *testing.T, s *Server, l limit, times int64) {
	t.Helper()
	var b strings.Builder
	w := newSurvey(&b)
	wordMntr(w, s)
	_ = w.Flush()
	for _, line := range []string{
		fmt.Sprintf("zk_limit_%s_hits\t%d\n", limitNames[l], times),
		fmt.Sprintf("zk_limit_%s\t%d\n", limitNames[l], s.cfg.limit(l)),
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("mntr: got no line %q", line)
		}
	}
}

func TestReplyAboveTheLimitIsRefusedBeforeItIsBuilt(t *testing.T) {
	t.Parallel()
	const limit = 3 << 20
	onEachStore(t, Config{Limits: Limits{Reply: limit}}, func(t *testing.T, s *Server) {
		t.Helper()
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.create("/b", make([]byte, 1<<20-200), 0); err != nil {
			t.Fatal(err)
		}
		reads := func(op wire.Op, path string, n int) *wire.MultiRequest {
			req := &wire.MultiRequest{Read: true}
			for range n {
				req.Ops = append(req.Ops, wire.SubRequest{Op: op, Request: &wire.PathWatchRequest{Path: path}})
			}
			return req
		}
		c.mustCall(t, wire.OpMultiRead, reads(wire.OpGetData, "/b", 2))
		wantRefused(t, c, wire.MarshallingError, wire.OpMultiRead, reads(wire.OpGetData, "/b", 2500))
		name := strings.Repeat("n", 1<<20-200)
		for i := range 4 { // the last one exceeds the limit
			if i > 0 {
				c.mustCall(t, wire.OpMultiRead, reads(wire.OpGetChildren, "/b", 1))
				c.mustCall(t, wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/b"})
			}
			if _, err := c.create(fmt.Sprintf("/b/%d%s", i, name), nil, wire.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
		}
		wantRefused(t, c, wire.MarshallingError, wire.OpMultiRead, reads(wire.OpGetChildren, "/b", 1))
		wantRefused(t, c, wire.MarshallingError, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/b", Watch: true})
		wantRefused(t, c, wire.MarshallingError, wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/b"})
		wantRefused(t, c, wire.MarshallingError, wire.OpGetEphemerals, &wire.EphemeralsRequest{})
		wantRefused(t, c, wire.NoWatcher, wire.OpCheckWatches,
			&wire.WatcherTypeRequest{Path: "/b", Type: wire.WatcherChildren})
		wantHit(t, s, limitReply, 5)
	})
}

func TestRequestOfTheLargestFrameIsServed(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{MaxFrame: 16 << 20}, func(t *testing.T, s *Server) {
		t.Helper()
		c := mustConnect(t, s, wire.ConnectRequest{})
		var b []byte
		sizes := []int{100, maxRequests - 500, 100, maxRequests + 1, 100}
		for i, n := range sizes {
			b = wire.AppendRequest(b, int32(i), wire.OpCreate,
				&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, n), ACL: openACL})
		}
		sent := make(chan error, 1)
		go func() { _, err := c.nc.Write(b); sent <- err }()
		for i := range sizes {
			if h, err := c.reply(nil); err != nil || h.Xid != int32(i) || h.Err != wire.OK {
				t.Fatalf("request %d of %d bytes: got %+v %v", i, sizes[i], h, err)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

func TestClientThatReadsNothingIsDisconnectedInTime(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{true, false} {
		t.Run(fmt.Sprintf("it has closed its session %t", closes), func(t *testing.T) {
			t.Parallel()
			s := serve(t, Config{Limits: Limits{SendTime: 5 * time.Second}}, disk{})
			c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
			if _, err := c.create("/b", make([]byte, 1<<20-200), 0); err != nil {
				t.Fatal(err)
			}
			for i := range int32(4) { // fewer than softBacklog bytes, which would delay the end of the session
				if err := c.send(i, wire.OpGetData, &wire.PathWatchRequest{Path: "/b"}); err != nil {
					t.Fatal(err)
				}
				other.ping(t)
			}
			for i := range int32(16) {
				if closes {
					_ = c.send(100, wire.OpCloseSession, &wire.Empty{})
					break
				}
				_ = c.send(i, wire.OpGetData, &wire.PathWatchRequest{Path: "/b"})
			}
			for s.openConns() > 1 {
				other.ping(t)
			}
			// else the system may have taken all, and it is the end of the connection that did not come in time
			if !closes {
				wantHit(t, s, limitSendTime, 1)
			}
			if data, _, err := other.get("/b"); err != nil || len(data) != 1<<20-200 {
				t.Errorf("the client that reads: got %d bytes, %v", len(data), err)
			}
		})
	}
}

// openConns returns how many connections are not closed, including those that are no longer listed.
func (s *Server) openConns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func TestClientsThatUseMostMemoryAreDisconnectedAtTheLimit(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{Limits: Limits{Memory: 24 << 20}}, func(t *testing.T, s *Server) {
		t.Helper()
		reader := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := reader.create("/b", make([]byte, 1<<20-200), 0); err != nil {
			t.Fatal(err)
		}
		var b []byte
		for i := range int32(20) {
			b = wire.AppendRequest(b, i, wire.OpGetData, &wire.PathWatchRequest{Path: "/b"})
		}
		for range 20 {
			c := mustConnect(t, s, wire.ConnectRequest{})
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, _, err := reader.get("/b"); err != nil {
				t.Fatalf("the client that reads: got %v", err)
			}
			if total, _ := s.memoryUse(); total > 24<<20+enforceAfter+8<<20 {
				t.Fatalf("got %d bytes in use, want at most 24 MiB and what comes between two checks", total)
			}
		}
		if s.stats.hits[limitMemory].Load() == 0 || s.openConns() < 2 {
			t.Errorf("got %d disconnected clients and %d left", s.stats.hits[limitMemory].Load(), s.openConns())
		}
	})
}

func TestIdentitiesOfAConnectionAreLimited(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ size, fit int }{"by number": {1, 5}, "by size": {3000, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Config{Limits: Limits{Identities: 5}}, disk{})
			c := mustConnect(t, s, wire.ConnectRequest{})
			auth := func(i int) *wire.AuthRequest {
				user := append(fmt.Append(nil, i), bytes.Repeat([]byte("u"), row.size)...)
				return &wire.AuthRequest{Scheme: "digest", Auth: append(user, ":pw"...)}
			}
			for i := range row.fit {
				c.mustCall(t, wire.OpAuth, auth(i))
			}
			if err := c.call(wire.OpAuth, auth(row.fit), nil); !errors.Is(err, codeError(wire.AuthFailed)) ||
				!c.ended() {
				t.Errorf("got %v, want %v and the end of the connection", err, wire.AuthFailed)
			}
			wantHit(t, s, limitIdentities, 1)
		})
	}
}

func TestWatchesOfAConnectionAreLimited(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{Limits: Limits{Watches: 10}}, func(t *testing.T, s *Server) {
		t.Helper()
		c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
		for i := range 9 {
			if err := c.call(wire.OpExists, &wire.PathWatchRequest{Path: fmt.Sprintf("/%d", i), Watch: true},
				nil); !errors.Is(err, codeError(wire.NoNode)) {
				t.Fatal(err)
			}
		}
		// two
		wantRefused(t, c, wire.BadArguments, wire.OpAddWatch,
			&wire.AddWatchRequest{Path: "/", Mode: wire.WatchPersistent})
		wantRefused(t, c, wire.BadArguments, wire.OpExists,
			&wire.PathWatchRequest{Path: "/" + strings.Repeat("n", 10*watchPath), Watch: true})
		c.mustCall(t, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.WatchPersistentRecursive})
		wantRefused(t, c, wire.BadArguments, wire.OpAddWatch,
			&wire.AddWatchRequest{Path: "/x", Mode: wire.WatchPersistentRecursive})
		wantRefused(t, c, wire.BadArguments, wire.OpGetData, &wire.PathWatchRequest{Path: "/zookeeper", Watch: true})
		c.mustCall(t, wire.OpGetData, &wire.PathWatchRequest{Path: "/zookeeper"})
		if _, err := other.create("/3", nil, 0); err != nil { // fires a watch
			t.Fatal(err)
		}
		c.mustCall(t, wire.OpGetData, &wire.PathWatchRequest{Path: "/zookeeper", Watch: true})
		c.mustCall(t, wire.OpRemoveWatches, &wire.WatcherTypeRequest{Path: "/", Type: wire.WatcherAny})
		c.mustCall(t, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/", Watch: true})

		// A client does not notice if the server refuses to restore watches after a reconnect.
		var many []string
		for i := range 11 {
			many = append(many, fmt.Sprintf("/m%d", i))
		}
		err := other.call(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: 1 << 40, Exist: many}, nil)
		if !errors.Is(err, codeError(wire.BadArguments)) || !other.ended() {
			t.Errorf("got %v, want the end of the connection", err)
		}
		wantHit(t, s, limitWatches, 5)
	})
}

func TestSessionsAreLimitedAndEndedOnesDoNotCount(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Limits: Limits{Sessions: 6}}, disk{})
	for range 3 {
		var open []*rawClient
		for range 3 { // half of them, because they come from one address
			open = append(open, mustConnect(t, s, wire.ConnectRequest{}))
		}
		if c, err := s.connect(wire.ConnectRequest{}); err == nil {
			t.Errorf("got session %d above the limit", c.session)
		}
		again, err := open[0].resume(s)
		if err != nil {
			t.Fatalf("resume a session at the limit: got %v, want the session", err)
		}
		open[0] = again
		for _, c := range open {
			c.mustCall(t, wire.OpCloseSession, &wire.Empty{})
			_ = c.nc.Close()
		}
	}
	wantHit(t, s, limitSessionsPerAddress, 3)
}

func TestConnectionsOfAllAddressesAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Limits: Limits{Conns: 2}, MaxClientConns: Unlimited}, disk{})
	mustConnect(t, s, wire.ConnectRequest{})
	mustConnect(t, s, wire.ConnectRequest{})
	if c, err := s.connect(wire.ConnectRequest{}); err == nil {
		t.Errorf("got session %d on a connection above the limit", c.session)
	}
	wantHit(t, s, limitConns, 1)
}

func TestEveryLimitIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range limitNames {
		if !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("docs/limits.md: got no row for %s", name)
		}
	}
}
