package server

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Who may end another client's session, and what then becomes of it.
func TestSessionsAreEndedByTheSuperuserAndOnTheSocket(t *testing.T) {
	t.Parallel()
	socket := "unix:" + filepath.Join(shortDir(t), "sock")
	s := serve(t, Config{
		Data: t.TempDir(), SuperDigest: superDigest(), Listen: []string{"127.0.0.1:0", socket},
	}, disk{})
	want := func(what string, err error, code wire.Code) {
		t.Helper()
		if code == wire.OK && err != nil || code != wire.OK && !errors.Is(err, codeError(code)) {
			t.Errorf("%s: got %v, want %v", what, err, code)
		}
	}
	at := func(id int64) string { return SessionsPath + "/" + sessionName(id) }
	const many = 2*endAtOnce + 1 // nodes: in several pieces
	victim := mustConnect(t, s, wire.ConnectRequest{})
	for i := range many {
		if _, err := victim.create("/e"+strconv.Itoa(i), nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	c := mustConnect(t, s, wire.ConnectRequest{})
	want("a client of the network", c.set(at(victim.session), []byte("x")), wire.NoAuth)
	if err := c.authenticate(superPassword); err != nil {
		t.Fatal(err)
	}
	want("no such session", c.set(at(4711), nil), wire.BadArguments)
	want("its own", c.set(at(c.session), nil), wire.BadArguments)
	want("no name of a session", c.set(SessionsPath+"/0x01", nil), wire.NoNode)
	want("a name of none", c.set(SessionsPath+"/x", nil), wire.NoNode)
	want("the superuser", c.set(at(victim.session), []byte("it hangs")), wire.OK)
	for _, i := range []int{0, many - 1} {
		_, _, err := c.get("/e" + strconv.Itoa(i))
		want("a node of the session", err, wire.NoNode)
	}
	want("a second time", c.set(at(victim.session), nil), wire.BadArguments)
	if err := victim.set("/zookeeper", nil); err == nil {
		t.Error("the connection is still there")
	}
	back, err := s.dialRaw()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := back.handshake(&wire.ConnectRequest{
		Timeout: 600_000, SessionID: victim.session, Password: victim.password,
	})
	if err == nil && answer.SessionID != 0 {
		t.Errorf("the session goes on: %+v", answer)
	}

	own, err := dialAddr(s.Addrs()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.handshake(&wire.ConnectRequest{Timeout: 600_000}); err != nil {
		t.Fatal(err)
	}
	want("on the socket", own.set(at(c.session), nil), wire.OK)
}

// A client that sends the next request before it has an answer gets the answers in the same order.
func TestAnswersThatComeLaterKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir(), SuperDigest: superDigest()}, disk{})
	victim, c := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	victim.manyEphemerals(t, 5*endAtOnce)
	if err := c.authenticate(superPassword); err != nil {
		t.Fatal(err)
	}
	get := &wire.PathWatchRequest{Path: "/"}
	end := &wire.SetDataRequest{Path: SessionsPath + "/" + sessionName(victim.session), Version: -1}
	requests := []struct {
		op  wire.Op
		req wire.Record
	}{
		{wire.OpGetData, get},
		{wire.OpSetData, end},
		{wire.OpGetData, get},
		{wire.OpGetData, &wire.PathWatchRequest{Path: BackupPath + "/0"}},
		{wire.OpExists, get},
		{wire.OpGetData, &wire.PathWatchRequest{Path: BackupPath + "/1"}},
		{wire.OpGetData, get},
	}
	for i, r := range requests {
		if err := c.send(int32(i+100), r.op, r.req); err != nil {
			t.Fatal(err)
		}
	}
	for i := range requests {
		if h, _, err := c.next(); err != nil || h.Xid != int32(i+100) {
			t.Fatalf("answer %d: got that of request %d, %v", i, h.Xid-100, err)
		}
	}
}
