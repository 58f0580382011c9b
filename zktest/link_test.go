package zktest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

func testRequestsAreCountedAndDecoded(t *testing.T, l *zktest.Link, dir string) {
	newRaw(t, l)
	r := dialRaw(t, l)
	var got []zktest.Request
	l.Control(func(q zktest.Request) zktest.Fault {
		got = append(got, q)
		return zktest.Pass
	})
	if err := r.connect(0, nil); err != nil {
		t.Fatal(err)
	}
	r.send(request{wire.OpPing, nil})
	r.want(wire.XidPing, wire.OK)
	r.wantDo(wire.OK, create(dir+"/a"))
	r.wantDo(wire.OK, request{wire.OpCreate2, create(dir + "/b").body})
	r.wantDo(wire.OK, request{wire.OpMulti, &wire.MultiRequest{Ops: []wire.SubRequest{
		{Op: wire.OpSetData, Request: set(dir+"/a", "x").body}, {Op: wire.OpDelete, Request: remove(dir + "/b").body},
	}}})
	r.wantDo(wire.OK, request{wire.OpGetChildren2, &wire.PathWatchRequest{Path: dir}})
	l.Control(nil)
	r.wantDo(wire.OK, exists(dir))

	conn, id := got[0].Conn, r.SessionID
	want := []zktest.Request{
		{Op: zktest.OpConnect, Nth: 1},
		{Op: zktest.OpPing, Code: 11, Nth: 1, Session: id, Xid: -2},
		{Op: zktest.OpCreate, Code: 1, Nth: 1, Seq: 1, Path: dir + "/a", Session: id, Xid: 2},
		{Op: zktest.OpCreate, Code: 15, Nth: 2, Seq: 2, Path: dir + "/b", Session: id, Xid: 3},
		{Op: zktest.OpMulti, Code: 14, Nth: 1, Seq: 3, Session: id, Xid: 4, Parts: []zktest.Part{
			{Op: zktest.OpSetData, Path: dir + "/a"}, {Op: zktest.OpDelete, Path: dir + "/b"},
		}},
		{Op: zktest.OpGetChildren, Code: 12, Nth: 1, Seq: 4, Path: dir, Session: id, Xid: 5},
	}
	if len(got) != len(want) {
		t.Fatalf("the control function saw %d requests, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		want[i].Conn = conn
		if !sameRequest(got[i], want[i]) {
			t.Errorf("request %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// await waits until something has happened that nobody tells of.
func await(t *testing.T, happened func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		}
	}
}

func sameRequest(a, b zktest.Request) bool {
	parts := slices.Equal(a.Parts, b.Parts)
	a.Parts, b.Parts = nil, nil
	return parts && a.Op == b.Op && a.Code == b.Code && a.Nth == b.Nth && a.Seq == b.Seq && a.Path == b.Path &&
		a.Session == b.Session && a.Conn == b.Conn && a.Xid == b.Xid
}

func testControlNeedsNoLock(t *testing.T, l *zktest.Link, dir string) {
	const clients, each = 8, 50
	seen := 0
	l.Control(func(q zktest.Request) zktest.Fault {
		if q.Op == zktest.OpExists {
			seen++
		}
		return zktest.Pass
	})
	var wg sync.WaitGroup
	for range clients {
		r := newRaw(t, l)
		wg.Go(func() {
			for range each {
				r.send(exists(dir))
				if _, err := r.receive(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	l.Control(nil)
	if seen != clients*each {
		t.Errorf("the control function saw %d requests, want %d", seen, clients*each)
	}
}

func testCut(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	r.wantDo(wire.OK, createNode(dir+"/mine", wire.FlagEphemeral))
	l.Cut()
	r.wantEnd()
	if c, err := l.Dial(t.Context(), "tcp", l.Addr()); err == nil {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes over a cut link", n)
		}
		_ = c.Close()
	}
	l.Heal()
	again, err := r.resume(l)
	if err != nil {
		t.Fatalf("the session did not survive: %v", err)
	}
	again.wantDo(wire.OK, exists(dir+"/mine"))
}

func testCutOfOneSession(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Cut(r.SessionID)
	r.wantEnd()
	if _, err := r.resume(l); err == nil {
		t.Error("a session that is cut off was resumed")
	}
	other.wantDo(wire.OK, exists(dir))
	newRaw(t, l)
	l.Heal(r.SessionID)
	if _, err := r.resume(l); err != nil {
		t.Errorf("the session cannot be resumed after Heal: %v", err)
	}
}

func testDrop(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Drop(r.SessionID)
	r.wantEnd()
	again, err := r.resume(l)
	if err != nil {
		t.Fatal(err)
	}
	again.wantDo(wire.OK, exists(dir))
	other.wantDo(wire.OK, exists(dir))
	l.Drop()
	again.wantEnd()
	other.wantEnd()
}

func testHalfOpen(t *testing.T, l *zktest.Link, dir string) {
	r, idle, other := newRaw(t, l), newRaw(t, l), newRaw(t, l)
	l.HalfOpen(r.SessionID, idle.SessionID)
	before := l.Traffic().Requests[zktest.OpCreate]
	r.send(create(dir + "/a"))
	await(t, func() bool { return l.Traffic().Requests[zktest.OpCreate] > before })
	l.Heal()
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(dir+"/a"))
	idle.wantDo(wire.OK, exists(dir))
}

func testHalfOpenHidesEnd(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	r.wantDo(wire.OK, createNode(dir+"/mine", wire.FlagEphemeral))
	other.wantDo(wire.OK, watch(dir+"/mine"))
	l.HalfOpen(r.SessionID)
	if !l.ExpireSession(r.SessionID) {
		t.Fatal("the server does not know the session")
	}
	other.wantEvent(wire.EventDeleted, dir+"/mine")
	before := l.Traffic().Requests[zktest.OpExists]
	r.send(exists(dir)) // nobody has told r anything
	await(t, func() bool { return l.Traffic().Requests[zktest.OpExists] > before })
	l.Heal()
	r.wantEnd()
	if _, err := r.resume(l); !errors.Is(err, errExpired) {
		t.Errorf("resuming an expired session: %v", err)
	}
}

func testMutedLink(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	other.wantDo(wire.NoNode, watchFor(dir+"/a"))
	l.Mute(r.SessionID)
	before := l.Traffic().Replies
	r.send(create(dir + "/a"))
	other.wantEvent(wire.EventCreated, dir+"/a")
	await(t, func() bool { return l.Traffic().Replies > before })
	l.Heal()
	r.wantEnd()
	if _, err := r.resume(l); err != nil {
		t.Errorf("the session cannot be resumed: %v", err)
	}
}

func testExpireSession(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	r.wantDo(wire.OK, createNode(dir+"/mine", wire.FlagEphemeral))
	other.wantDo(wire.OK, watch(dir+"/mine"))
	if !l.ExpireSession(r.SessionID) {
		t.Fatal("the server does not know the session")
	}
	other.wantEvent(wire.EventDeleted, dir+"/mine")
	r.wantEnd()
	if _, err := r.resume(l); !errors.Is(err, errExpired) {
		t.Errorf("resuming an expired session: %v", err)
	}
	if l.ExpireSession(r.SessionID) {
		t.Error("a session was expired twice")
	}
	if l.ExpireSession(12345) {
		t.Error("a session that never was has been expired")
	}
}

func testConnected(t *testing.T, l *zktest.Link, _ string) {
	before := l.Connected()
	r := newRaw(t, l)
	if got := l.Connected(); !slices.Contains(got, r.SessionID) || len(got) != len(before)+1 {
		t.Errorf("got %x, want %x and %x", got, before, r.SessionID)
	}
	l.Cut()
	if got := l.Connected(); len(got) != 0 {
		t.Errorf("got %x, want none on a cut link", got)
	}
}

func testFourLetterWords(t *testing.T, l *zktest.Link, _ string) {
	r := dialRaw(t, l)
	if _, err := r.conn.Write([]byte("ruok")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r.conn); err != nil || string(got) != "imok" {
		t.Errorf("got %q, %v, want imok", got, err)
	}
	r = dialRaw(t, l)
	if _, err := r.conn.Write([]byte("srvr\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r.conn); err != nil || !strings.Contains(string(got), "Mode: standalone") {
		t.Errorf("got %q, %v, want the server's state", got, err)
	}
}

func testGarbage(t *testing.T, l *zktest.Link, _ string) {
	r := newRaw(t, l)
	if _, err := r.conn.Write(binary.BigEndian.AppendUint32(nil, 0xfffffff0)); err != nil {
		t.Fatal(err)
	}
	r.wantEnd()
	r = dialRaw(t, l)
	if _, err := r.conn.Write([]byte{0, 0, 0, 2, 1, 2}); err != nil {
		t.Fatal(err)
	}
	r.wantEnd()
}

func testLargeFrames(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1_000_000/16)
	r.wantDo(wire.OK, set(dir, string(data)))
	r.send(request{wire.OpGetData, &wire.PathWatchRequest{Path: dir}})
	m := r.want(2, wire.OK)
	if got := m.body[4 : 4+len(data)]; !bytes.Equal(got, data) {
		t.Error("the data came back changed")
	}
}
