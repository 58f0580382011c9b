package server

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// rawBody is an encoded request body.
type rawBody []byte

func (r rawBody) Append(b []byte) []byte { return append(b, r...) }
func (rawBody) Decode(*jute.Decoder)     {}

// Promise: 9
func TestMalformedBodyIsRefusedAndTheConnectionStays(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	for _, op := range []wire.Op{
		wire.OpCreate, wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpGetACL, wire.OpSetACL,
		wire.OpGetChildren,
		wire.OpSync, wire.OpGetChildren2, wire.OpMulti, wire.OpCreate2, wire.OpCheckWatches, wire.OpRemoveWatches,
		wire.OpCreateContainer,
		wire.OpCreateTTL, wire.OpMultiRead, wire.OpSetWatches, wire.OpGetAllChildren, wire.OpSetWatches2,
		wire.OpAddWatch,
	} {
		for name, body := range map[string]rawBody{
			"empty": nil, "short": {0, 0},
			"null path": {0xff, 0xff, 0xff, 0xff}, "length of 2 GB": {0x7f, 0xff, 0xff, 0xff},
		} {
			if err := c.call(op, body, nil); !errors.Is(err, codeError(wire.MarshallingError)) {
				t.Errorf("%v, %s: got %v, want %v", op, name, err, wire.MarshallingError)
			}
		}
	}
	if _, err := c.create("/a", nil, 0); err != nil {
		t.Errorf("after malformed requests: got %v, want OK", err)
	}
}

func TestTrailingBytesAreIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	body := (&wire.PathWatchRequest{Path: "/"}).Append(nil)
	if err := c.call(wire.OpExists, rawBody(append(body, "more"...)), nil); err != nil {
		t.Error(err)
	}
}

func TestOperationsThatClientsMustNotSendEndTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	for _, op := range []wire.Op{
		10, 23, 42, 99, 108, -2, wire.OpNotification, wire.OpError, wire.OpCreateSession,
		wire.OpCheck, wire.OpDeleteContainer,
	} {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if err := c.call(op, &wire.CheckRequest{Path: "/zookeeper", Version: -1}, nil); !errors.Is(err,
			codeError(wire.Unimplemented)) {
			t.Errorf("%v: got %v, want %v", op, err, wire.Unimplemented)
		}
		if !c.ended() {
			t.Errorf("%v: the connection is still open", op)
		}
		if _, err := c.resume(s); err != nil {
			t.Errorf("%v: got %v, want the session", op, err)
		}
	}
}

func TestReconfigIsUnimplementedAndTheConnectionStays(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if err := c.call(wire.OpReconfig, &wire.ReconfigRequest{Leaving: "1", FromConfig: -1}, nil); !errors.Is(err,
		codeError(wire.Unimplemented)) {
		t.Errorf("got %v, want %v", err, wire.Unimplemented)
	}
	if _, err := c.create("/a", nil, 0); err != nil {
		t.Error(err)
	}
}

// Promise: 9
func TestBadFrameEndsTheConnectionNotTheSession(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{MaxFrame: 2048}, disk{})
	for name, b := range map[string][]byte{
		"too long for the limit": binary.BigEndian.AppendUint32(nil, 2049),
		"negative":               {0x80, 0, 0, 0},
		"no header":              {0, 0, 0, 0},
		"half a header":          {0, 0, 0, 4, 0, 0, 0, 1},
		"word":                   []byte("ruok"),
	} {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c.nc); err != nil || len(got) > 0 {
			t.Errorf("%s: got %q %v, want nothing", name, got, err)
		}
		if _, err := c.resume(s); err != nil {
			t.Errorf("%s: got %v, want the session", name, err)
		}
	}
	c := mustConnect(t, s, wire.ConnectRequest{})
	path := "/exactly"
	overhead := len((&wire.CreateRequest{Path: path, ACL: openACL, Data: []byte{}}).Append(nil)) + 8
	if _, err := c.create(path, make([]byte, 2048-overhead), 0); err != nil {
		t.Errorf("frame of exactly the limit: got %v, want OK", err)
	}
}

func TestRepliesEchoXidsAndPingsCarryTheirOwn(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir()}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	sent := []struct {
		xid  int32
		op   wire.Op
		req  wire.Record
		want int32
	}{
		{7, wire.OpCreate, &wire.CreateRequest{Path: "/x", ACL: openACL}, 7},
		{-2, wire.OpPing, &wire.Empty{}, -2},
		{7, wire.OpExists, &wire.PathWatchRequest{Path: "/x"}, 7},
		{0, wire.OpSync, &wire.PathRequest{Path: "/x"}, 0},
		{5, wire.OpPing, &wire.Empty{}, -2},
		{-4, wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte("u:p")}, -4},
		{-8, wire.OpSetWatches, &wire.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}, -8},
		{3, wire.OpDelete, &wire.DeleteRequest{Path: "/x", Version: -1}, 3},
	}
	var b []byte
	for _, r := range sent {
		b = wire.AppendRequest(b, r.xid, r.op, r.req)
	}
	if _, err := c.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	for _, r := range sent {
		h, err := c.reply(nil)
		if err != nil || h.Xid != r.want || h.Err != wire.OK {
			t.Fatalf("%v: got %+v %v, want xid %d", r.op, h, err, r.want)
		}
		if r.op == wire.OpAuth && h.Zxid != 0 {
			t.Errorf("auth: got zxid %d, want 0", h.Zxid)
		}
	}
}

func TestRefusedWritesUseAZxidAndReadsDoNot(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			c := mustConnect(t, s, wire.ConnectRequest{}) // zxid 1
			steps := []struct {
				op   wire.Op
				req  wire.Record
				want int64
			}{
				{wire.OpDelete, &wire.DeleteRequest{Path: "/no", Version: -1}, 2},
				{wire.OpExists, &wire.PathWatchRequest{Path: "/no"}, 2},
				{wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL}, 3},
				{wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL}, 4},
				{wire.OpPing, &wire.Empty{}, 4},
				{wire.OpSync, &wire.PathRequest{Path: "/"}, 4},
				{wire.OpMulti, &wire.MultiRequest{Ops: []wire.SubRequest{
					{Op: wire.OpDelete, Request: &wire.DeleteRequest{Path: "/a", Version: -1}},
					{Op: wire.OpCheck, Request: &wire.CheckRequest{Path: "/no", Version: -1}},
				}}, 5},
				{wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}, 5},
				{wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}, 6},
			}
			for i, step := range steps {
				if err := c.send(int32(i), step.op, step.req); err != nil {
					t.Fatal(err)
				}
				if h, err := c.reply(nil); err != nil || h.Zxid != step.want {
					t.Errorf("step %d, %v: got zxid %d %v, want %d", i, step.op, h.Zxid, err, step.want)
				}
			}
		})
	}
}

func TestCloseSessionIsAnsweredThenTheConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			other := mustConnect(t, s, wire.ConnectRequest{})
			c := mustConnect(t, s, wire.ConnectRequest{})
			if _, err := c.create("/e", nil, wire.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
			b := wire.AppendRequest(nil, 8, wire.OpCloseSession, &wire.Empty{})
			b = wire.AppendRequest(b, 9, wire.OpExists, &wire.PathWatchRequest{Path: "/"})
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			if h, err := c.reply(nil); err != nil || h.Xid != 8 || h.Err != wire.OK {
				t.Errorf("got %+v %v, want the reply to closeSession", h, err)
			}
			if _, _, err := c.next(); err == nil {
				t.Error("got a reply after that to closeSession")
			}
			if _, _, err := other.get("/e"); !errors.Is(err, codeError(wire.NoNode)) {
				t.Errorf("ephemeral node after closeSession: got %v, want none", err)
			}
			if _, err := c.resume(s); !errors.Is(err, errGone) {
				t.Errorf("resuming a closed session: got %v, want session expired", err)
			}
		})
	}
}

func TestEventComesBeforeTheReplyThatShowsTheChange(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			watcher, writer := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
			if _, err := writer.create("/a", nil, 0); err != nil {
				t.Fatal(err)
			}
			for i := range 200 {
				for _, c := range []*rawClient{watcher, writer} {
					c.events = nil
					if err := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}, nil); err != nil {
						t.Fatal(err)
					}
				}
				if err := writer.set("/a", []byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
				data, _, err := watcher.get("/a")
				if err != nil || data[0] != byte(i) {
					t.Fatalf("round %d: got %v %v, want the acknowledged write", i, data, err)
				}
				if len(watcher.events) != 1 || len(writer.events) != 1 {
					t.Fatalf("round %d: got %v and %v before the replies, want one event each", i, watcher.events,
						writer.events)
				}
			}
		})
	}
}
