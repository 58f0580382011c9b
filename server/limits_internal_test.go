package server

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func TestRequestsOfAClientThatDoesNotReadWait(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
			big := bytes.Repeat([]byte("x"), 1_000_000)
			if _, err := c.create("/big", big, 0); err != nil {
				t.Fatal(err)
			}
			const n = 30
			var b []byte
			for i := range int32(n) {
				b = wire.AppendRequest(b, i, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
			}
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			var backlog int64
			for range 200 { // other clients are served meanwhile
				if _, err := other.create("/p", nil, wire.FlagSequential); err != nil {
					t.Fatal(err)
				}
				for _, sc := range s.allConns() {
					backlog = max(backlog, sc.backlog.Load())
				}
			}
			if limit := int64(softBacklog + 3*len(big)); backlog > limit {
				t.Errorf("got %d bytes of unread replies, want at most %d", backlog, limit)
			}
			for i := range int32(n) {
				var resp wire.DataResponse
				if h, err := c.reply(&resp); err != nil || h.Xid != i || !bytes.Equal(resp.Data, big) {
					t.Fatalf("reply %d: got %+v, %d bytes, %v", i, h, len(resp.Data), err)
				}
			}
		})
	}
}

func TestClientThatDoesNotReadItsEventsIsDisconnected(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c, writer := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	if err := c.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.WatchPersistentRecursive},
		nil); err != nil {
		t.Fatal(err)
	}
	path := "/" + string(bytes.Repeat([]byte("n"), 500_000))
	if _, err := writer.create(path, nil, 0); err != nil {
		t.Fatal(err)
	}
	for i := 0; len(s.allConns()) == 2; i++ {
		if err := writer.set(path, nil); err != nil {
			t.Fatal(err)
		}
		if i > 1000 {
			t.Fatal("the client is still connected with 500 MB of unread events")
		}
	}
}

func TestConnectionsPerAddressAreLimitedAndClosedOnesDoNotCount(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{MaxClientConns: 3}, disk{})
	for range 5 {
		var open []*rawClient
		for range 3 {
			open = append(open, mustConnect(t, s, wire.ConnectRequest{}))
		}
		extra := dial(t, s)
		if _, err := extra.handshake(&wire.ConnectRequest{Timeout: 5000}); err == nil {
			t.Error("connection above the limit: got a reply, want the end of the connection")
		}
		for _, c := range open {
			_ = c.nc.Close()
		}
		for len(s.allConns()) > 0 {
			s.Sessions() // gives the readers time to see the end
		}
	}
}

func TestManyRequestsAtOnceAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			c := mustConnect(t, s, wire.ConnectRequest{})
			const n = 5000 // more than a connection may have unanswered
			go func() {
				var b []byte
				for i := range int32(n) {
					switch i % 3 {
					case 0:
						b = wire.AppendRequest(b, i, wire.OpCreate,
							&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: openACL})
					case 1:
						b = wire.AppendRequest(b, i, wire.OpGetData,
							&wire.PathWatchRequest{Path: fmt.Sprintf("/n%d", i-1)})
					case 2:
						b = wire.AppendRequest(b, i, wire.OpExists, &wire.PathWatchRequest{Path: "/zookeeper"})
					}
				}
				_, _ = c.nc.Write(b)
			}()
			var zxid int64
			for i := range int32(n) {
				h, err := c.reply(nil)
				if err != nil || h.Xid != i || h.Err != wire.OK {
					t.Fatalf("reply %d: got %+v %v", i, h, err)
				}
				if h.Zxid < zxid {
					t.Fatalf("reply %d: got zxid %[3]d after %[2]d, want no decrease", i, zxid, h.Zxid)
				}
				zxid = h.Zxid
			}
		})
	}
}
