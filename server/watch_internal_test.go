package server

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// onEachStore runs a test on a server in memory and on one with a disk.
func onEachStore(t *testing.T, cfg Config, f func(t *testing.T, s *Server)) {
	t.Helper()
	for name, d := range map[string]disk{"in memory": {}, "on disk": {fs: vfs.NewMem()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			if d.fs != nil {
				cfg.Data = "data"
			}
			f(t, serve(t, cfg, d))
		})
	}
}

// mustCall sends a request that must succeed.
func (c *rawClient) mustCall(t *testing.T, op wire.Op, req wire.Record) {
	t.Helper()
	if err := c.call(op, req, nil); err != nil {
		t.Fatalf("%v: got %v, want OK", op, err)
	}
}

// told returns the events of c after all earlier changes in the server's order.
func (c *rawClient) told(t *testing.T) []wire.Event {
	t.Helper()
	c.mustCall(t, wire.OpSync, &wire.PathRequest{Path: "/"})
	return c.events
}

func changed(kind wire.EventType, path string) []wire.Event {
	return []wire.Event{{Type: kind, State: wire.StateSyncConnected, Path: path}}
}

// In each case x and b watch the children of /g, x first, and a watches the node that is created or deleted. The
// connection x is closing.
func TestWatchersGetTheirEventsWhileAnotherOneCloses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		leave func(t *testing.T, s *Server, x, writer *rawClient)
		kind  wire.EventType // of /g/n
		path  string
	}{
		"its session expires": {
			leave: func(t *testing.T, s *Server, x, _ *rawClient) {
				t.Helper()
				if !s.ExpireSession(x.session) {
					t.Fatal("the session is still alive")
				}
			},
			kind: wire.EventDeleted, path: "/g/x",
		},
		"it has closed only its session": {
			leave: func(t *testing.T, _ *Server, x, writer *rawClient) {
				t.Helper()
				x.mustCall(t, wire.OpCloseSession, &wire.Empty{})
				if _, err := writer.create("/g/n", nil, 0); err != nil {
					t.Fatal(err)
				}
			},
			kind: wire.EventCreated, path: "/g/n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, Config{}, func(t *testing.T, s *Server) {
				t.Helper()
				a, b, x, writer := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{}),
					mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
				if _, err := writer.create("/g", nil, 0); err != nil {
					t.Fatal(err)
				}
				if row.kind == wire.EventDeleted {
					if _, err := x.create(row.path, nil, wire.FlagEphemeral); err != nil {
						t.Fatal(err)
					}
				}
				x.mustCall(t, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/g", Watch: true})
				b.mustCall(t, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/g", Watch: true})
				if err := a.call(wire.OpExists, &wire.PathWatchRequest{Path: row.path, Watch: true},
					nil); err != nil && row.kind == wire.EventDeleted {
					t.Fatal(err)
				}
				row.leave(t, s, x, writer)
				if diff := cmp.Diff(changed(row.kind, row.path), a.told(t)); diff != "" {
					t.Errorf("watcher of the node: %s", diff)
				}
				if diff := cmp.Diff(changed(wire.EventChildrenChanged, "/g"), b.told(t)); diff != "" {
					t.Errorf("watcher of the children: %s", diff)
				}
			})
		})
	}
}

func TestWatchIsShownUntilTheWriteThatFiredItIsDurable(t *testing.T) {
	t.Parallel()
	for _, op := range []wire.Op{wire.OpCheckWatches, wire.OpRemoveWatches} {
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			g := newGate()
			s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
			writer, c := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
			for _, path := range []string{"/a", "/b"} {
				if _, err := writer.create(path, nil, 0); err != nil {
					t.Fatal(err)
				}
				c.mustCall(t, wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: true})
			}
			open := g.shut(t)
			if err := writer.send(100, wire.OpSetData,
				&wire.SetDataRequest{Path: "/a", Data: []byte("new"), Version: -1}); err != nil {
				t.Fatal(err)
			}
			<-g.waits
			c.mustCall(t, op, &wire.WatcherTypeRequest{Path: "/b", Type: wire.WatcherData})
			if err := c.send(100, op, &wire.WatcherTypeRequest{Path: "/a", Type: wire.WatcherData}); err != nil {
				t.Fatal(err)
			}
			for s.held(c.session) == 0 {
				if n := s.answeredTo(c.session); n > 4 { // handshake, two reads and the request for /b
					t.Fatal("got an answer that shows a write that could still be lost")
				}
			}
			open()
			if h, err := c.reply(nil); err != nil || h.Err != wire.NoWatcher || len(c.events) != 1 {
				t.Errorf("got %+v %v, events %v, want the event and then no watch", h, err, c.events)
			}
		})
	}
}

// answeredTo returns how many requests of a session have been answered.
func (s *Server) answeredTo(session int64) (n int64) {
	for _, c := range s.allConns() {
		if sess := c.sess.Load(); sess != nil && sess.id == session {
			c.outbox.mu.Lock()
			n = c.sentN
			c.outbox.mu.Unlock()
		}
	}
	return n
}
