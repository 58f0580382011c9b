package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func mustConnect(t *testing.T, s *Server, req wire.ConnectRequest) *rawClient {
	t.Helper()
	c, err := s.connect(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.nc.Close() })
	return c
}

func dial(t *testing.T, s *Server) *rawClient {
	t.Helper()
	c, err := s.dialRaw()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.nc.Close() })
	return c
}

func TestHandshakeReplyHasReadOnlyByteIfTheRequestHas(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	for _, has := range []bool{false, true} {
		c := dial(t, s)
		req := &wire.ConnectRequest{Timeout: 30_000, HasReadOnly: has}
		if _, err := c.nc.Write(appendFrame(nil, req)); err != nil {
			t.Fatal(err)
		}
		body, err := wire.ReadFrame(c.nc, 100, nil)
		want := 36
		if has {
			want = 37
		}
		if err != nil || len(body) != want {
			t.Errorf("read-only byte sent %t: got %d bytes %v, want %d", has, len(body), err, want)
		}
	}
}

func TestTimeoutIsNegotiatedOnEveryConnect(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{TickTime: time.Second, MinSessionTimeout: 3 * time.Second}, disk{})
	for _, row := range []struct{ asked, want int32 }{
		{0, 3000},
		{-5, 3000},
		{1, 3000},
		{7500, 7500},
		{1 << 30, 20_000},
	} {
		c := dial(t, s)
		resp, err := c.handshake(&wire.ConnectRequest{Timeout: row.asked})
		if err != nil || resp.Timeout != row.want {
			t.Errorf("asked for %d ms: got %d %v, want %d", row.asked, resp.Timeout, err, row.want)
		}
	}
	c := mustConnect(t, s, wire.ConnectRequest{Timeout: 10_000})
	again := dial(t, s)
	resp, err := again.handshake(&wire.ConnectRequest{Timeout: 5000, SessionID: c.session, Password: c.password})
	if err != nil || resp.Timeout != 5000 || resp.SessionID != c.session || !bytes.Equal(resp.Password, c.password) {
		t.Errorf("resumed with 5000 ms: got %+v %v, want the same session with that timeout", resp, err)
	}
}

func TestLongerTimeoutSurvivesCrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := serve(t, Config{Data: "data"}, disk{fs: mem})
	c := mustConnect(t, s, wire.ConnectRequest{Timeout: 5000})
	resp, err := dial(t, s).handshake(&wire.ConnectRequest{Timeout: 9000, SessionID: c.session, Password: c.password})
	if err != nil || resp.Timeout != 9000 {
		t.Fatalf("got %+v %v", resp, err)
	}
	s = serve(t, Config{Data: "data"}, disk{fs: mem.CrashClone(vfs.CrashCloneCfg{})})
	sessions := s.Sessions()
	if len(sessions) != 1 || sessions[0].ID != c.session || sessions[0].Timeout != 9*time.Second {
		t.Errorf("got %+v, want the session with a timeout of 9s", sessions)
	}
}

func TestClientThatHasSeenALaterZxidIsDisconnected(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := dial(t, s)
	if _, err := c.handshake(&wire.ConnectRequest{Timeout: 5000, LastZxidSeen: 1000}); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

func TestHandshakeReplyOfAnEndedSessionIsZero(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	live := mustConnect(t, s, wire.ConnectRequest{})
	wrong := bytes.Clone(live.password)
	wrong[3] ^= 1
	for name, req := range map[string]*wire.ConnectRequest{
		"unknown session": {Timeout: 5000, SessionID: 12345, Password: live.password, HasReadOnly: true},
		"wrong password":  {Timeout: 5000, SessionID: live.session, Password: wrong, HasReadOnly: true},
		"no password":     {Timeout: 5000, SessionID: live.session, HasReadOnly: true},
		"session -1":      {Timeout: 5000, SessionID: -1, Password: make([]byte, 16), HasReadOnly: true},
	} {
		c := dial(t, s)
		resp, err := c.handshake(req)
		if err != nil || resp.Timeout != 0 || resp.SessionID != 0 || !bytes.Equal(resp.Password, make([]byte, 16)) ||
			resp.ReadOnly {
			t.Errorf("%s: got %+v %v, want zeros", name, resp, err)
		}
		if !c.ended() {
			t.Errorf("%s: the connection is still open", name)
		}
	}
	if err := live.call(wire.OpPing, &wire.Empty{}, nil); err == nil {
		t.Error("ping: got another xid, want -2")
	}
	if _, err := live.create("/still", nil, 0); err != nil {
		t.Errorf("client after others gave wrong passwords for its session: got %v, want OK", err)
	}
}

func TestNewConnectionTakesOverTheSession(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	old := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := old.create("/e", nil, wire.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	if err := old.call(wire.OpExists, &wire.PathWatchRequest{Path: "/e", Watch: true}, nil); err != nil {
		t.Fatal(err)
	}
	taken, err := old.resume(s)
	if err != nil {
		t.Fatal(err)
	}
	if !old.ended() {
		t.Error("the old connection is still open")
	}
	if err := taken.delete("/e"); err != nil {
		t.Errorf("ephemeral node after the takeover: got %v", err)
	}
	if len(taken.events) > 0 {
		t.Errorf("got %v, want no event, as watches belong to the connection", taken.events)
	}
}

func TestRequestsSentWithTheHandshakeAreServed(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir()}, disk{})
	c := dial(t, s)
	b := appendFrame(nil, &wire.ConnectRequest{Timeout: 30_000, HasReadOnly: true})
	b = wire.AppendRequest(b, 1, wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL})
	b = wire.AppendRequest(b, 2, wire.OpExists, &wire.PathWatchRequest{Path: "/a"})
	if _, err := c.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	if body, err := wire.ReadFrame(c.nc, 100, nil); err != nil || len(body) != 37 {
		t.Fatalf("handshake: got %d bytes %v", len(body), err)
	}
	for xid := int32(1); xid <= 2; xid++ {
		if h, err := c.reply(nil); err != nil || h.Xid != xid || h.Err != wire.OK {
			t.Errorf("got %+v %v, want the reply to %d", h, err, xid)
		}
	}
}

func TestInvalidHandshakeEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{MaxFrame: 4096}, disk{})
	for name, b := range map[string][]byte{
		"negative length":  {0xff, 0xff, 0xff, 0xff},
		"oversized length": binary.BigEndian.AppendUint32(nil, 4097),
		"empty frame":      {0, 0, 0, 0},
		"short frame":      {0, 0, 0, 4, 0, 0, 0, 0},
		"unknown word":     []byte("what"),
	} {
		c := dial(t, s)
		if _, err := c.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c.nc); err != nil || len(got) > 0 {
			t.Errorf("%s: got %q %v, want nothing", name, got, err)
		}
	}
}
