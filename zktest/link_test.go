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
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

func testRequestsAreCountedAndDecoded(p env) {
	p.newRaw()
	r := p.dialRaw()
	var got []zktest.Request
	p.Control(func(q zktest.Request) zktest.Fault {
		got = append(got, q)
		return zktest.Pass
	})
	if err := r.connect(0, nil); err != nil {
		p.Fatal(err)
	}
	r.send(request{wire.OpPing, nil})
	r.want(wire.XidPing, wire.OK)
	r.wantDo(wire.OK, create(p.dir+"/a"))
	r.wantDo(wire.OK, request{wire.OpCreate2, create(p.dir + "/b").body})
	r.wantDo(wire.OK, request{wire.OpMulti, &wire.MultiRequest{Ops: []wire.SubRequest{
		{Op: wire.OpSetData, Request: set(p.dir+"/a", "x").body},
		{Op: wire.OpDelete, Request: remove(p.dir + "/b").body},
	}}})
	r.wantDo(wire.OK, request{wire.OpGetChildren2, &wire.PathWatchRequest{Path: p.dir}})
	p.Control(nil)
	r.wantDo(wire.OK, exists(p.dir))

	conn, id := got[0].Conn, r.SessionID
	want := []zktest.Request{
		{Op: zktest.OpConnect, Nth: 1},
		{Op: zktest.OpPing, Code: 11, Nth: 1, Session: id, Xid: -2},
		{Op: zktest.OpCreate, Code: 1, Nth: 1, Seq: 1, Path: p.dir + "/a", Session: id, Xid: 2},
		{Op: zktest.OpCreate, Code: 15, Nth: 2, Seq: 2, Path: p.dir + "/b", Session: id, Xid: 3},
		{Op: zktest.OpMulti, Code: 14, Nth: 1, Seq: 3, Session: id, Xid: 4, Parts: []zktest.Part{
			{Op: zktest.OpSetData, Path: p.dir + "/a", Version: -1},
			{Op: zktest.OpDelete, Path: p.dir + "/b", Version: -1},
		}},
		{Op: zktest.OpGetChildren, Code: 12, Nth: 1, Seq: 4, Path: p.dir, Session: id, Xid: 5},
	}
	if len(got) != len(want) {
		p.Fatalf("got %d requests, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		want[i].Conn = conn
		if !sameRequest(got[i], want[i]) {
			p.Errorf("request %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// await waits until happened returns true, for what cannot be waited for otherwise.
func (p env) await(happened func() bool) {
	p.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-p.Context().Done():
			p.Fatal(context.Cause(p.Context()))
		}
	}
}

func sameRequest(a, b zktest.Request) bool {
	parts := slices.Equal(a.Parts, b.Parts)
	a.Parts, b.Parts = nil, nil
	return parts && a.Op == b.Op && a.Code == b.Code && a.Nth == b.Nth && a.Seq == b.Seq && a.Path == b.Path &&
		a.Session == b.Session && a.Conn == b.Conn && a.Xid == b.Xid
}

func testControlNeedsNoLock(p env) {
	const clients, each = 8, 50
	seen := 0
	p.Control(func(q zktest.Request) zktest.Fault {
		if q.Op == zktest.OpExists {
			seen++
		}
		return zktest.Pass
	})
	var wg sync.WaitGroup
	for range clients {
		r := p.newRaw()
		wg.Go(func() {
			for range each {
				r.send(exists(p.dir))
				if _, err := r.receive(); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	p.Control(nil)
	if seen != clients*each {
		p.Errorf("got %d requests, want %d", seen, clients*each)
	}
}

func testCut(p env) {
	r := p.newRaw()
	r.wantDo(wire.OK, createNode(p.dir+"/mine", wire.FlagEphemeral))
	p.Cut()
	r.wantEnd()
	if c, err := p.Dial(p.Context(), "tcp", p.Addr()); err == nil {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			p.Errorf("got %d bytes over a cut link, want none", n)
		}
		_ = c.Close()
	}
	p.Heal()
	again, err := r.resume(p.Link)
	if err != nil {
		p.Fatalf("session ended: %v", err)
	}
	again.wantDo(wire.OK, exists(p.dir+"/mine"))
}

func testCutOfOneSession(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Cut(r.SessionID)
	r.wantEnd()
	if _, err := r.resume(p.Link); err == nil {
		p.Error("resumed a session that is cut, want an error")
	}
	other.wantDo(wire.OK, exists(p.dir))
	p.newRaw()
	p.Heal(r.SessionID)
	if _, err := r.resume(p.Link); err != nil {
		p.Errorf("resume the session after Heal: %v", err)
	}
}

func testDrop(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Drop(r.SessionID)
	r.wantEnd()
	again, err := r.resume(p.Link)
	if err != nil {
		p.Fatal(err)
	}
	again.wantDo(wire.OK, exists(p.dir))
	other.wantDo(wire.OK, exists(p.dir))
	p.Drop()
	again.wantEnd()
	other.wantEnd()
}

func testHalfOpen(p env) {
	r, idle, other := p.newRaw(), p.newRaw(), p.newRaw()
	p.HalfOpen(r.SessionID, idle.SessionID)
	before := p.Traffic().Requests[zktest.OpCreate]
	r.send(create(p.dir + "/a"))
	p.await(func() bool { return p.Traffic().Requests[zktest.OpCreate] > before })
	p.Heal()
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(p.dir+"/a"))
	idle.wantDo(wire.OK, exists(p.dir))
}

func testHalfOpenHidesEnd(p env) {
	r, other := p.newRaw(), p.newRaw()
	r.wantDo(wire.OK, createNode(p.dir+"/mine", wire.FlagEphemeral))
	other.wantDo(wire.OK, watch(p.dir+"/mine"))
	p.HalfOpen(r.SessionID)
	if !p.ExpireSession(r.SessionID) {
		p.Fatal("expire the session: got false, want true")
	}
	other.wantEvent(wire.EventDeleted, p.dir+"/mine")
	before := p.Traffic().Requests[zktest.OpExists]
	r.send(exists(p.dir)) // r has not read anything yet
	p.await(func() bool { return p.Traffic().Requests[zktest.OpExists] > before })
	p.Heal()
	r.wantEnd()
	if _, err := r.resume(p.Link); !errors.Is(err, errExpired) {
		p.Errorf("resume an expired session: got %v, want errExpired", err)
	}
}

func testMutedLink(p env) {
	r, other := p.newRaw(), p.newRaw()
	other.wantDo(wire.NoNode, watchFor(p.dir+"/a"))
	p.Mute(r.SessionID)
	before := p.Traffic().Replies
	r.send(create(p.dir + "/a"))
	other.wantEvent(wire.EventCreated, p.dir+"/a")
	p.await(func() bool { return p.Traffic().Replies > before })
	p.Heal()
	r.wantEnd()
	if _, err := r.resume(p.Link); err != nil {
		p.Errorf("resume the session: %v", err)
	}
}

func testExpireSession(p env) {
	r, other := p.newRaw(), p.newRaw()
	r.wantDo(wire.OK, createNode(p.dir+"/mine", wire.FlagEphemeral))
	other.wantDo(wire.OK, watch(p.dir+"/mine"))
	if !p.ExpireSession(r.SessionID) {
		p.Fatal("expire the session: got false, want true")
	}
	other.wantEvent(wire.EventDeleted, p.dir+"/mine")
	r.wantEnd()
	if _, err := r.resume(p.Link); !errors.Is(err, errExpired) {
		p.Errorf("resume an expired session: got %v, want errExpired", err)
	}
	if p.ExpireSession(r.SessionID) {
		p.Error("expire a session twice: got true, want false")
	}
	if p.ExpireSession(12345) {
		p.Error("expire an unknown session: got true, want false")
	}
}

func testConnected(p env) {
	before := p.Connected()
	r := p.newRaw()
	if got := p.Connected(); !slices.Contains(got, r.SessionID) || len(got) != len(before)+1 {
		p.Errorf("got %x, want %x and %x", got, before, r.SessionID)
	}
	p.Cut()
	if got := p.Connected(); len(got) != 0 {
		p.Errorf("got %x, want none on a cut link", got)
	}
}

func testFourLetterWords(p env) {
	r := p.dialRaw()
	if _, err := r.conn.Write([]byte("ruok")); err != nil {
		p.Fatal(err)
	}
	if got, err := io.ReadAll(r.conn); err != nil || string(got) != "imok" {
		p.Errorf("got %q, %v, want imok", got, err)
	}
	r = p.dialRaw()
	if _, err := r.conn.Write([]byte("srvr\n")); err != nil {
		p.Fatal(err)
	}
	if got, err := io.ReadAll(r.conn); err != nil || !strings.Contains(string(got), "Mode: standalone") {
		p.Errorf("got %q, %v, want the server's statistics", got, err)
	}
}

func testGarbage(p env) {
	r := p.newRaw()
	if _, err := r.conn.Write(binary.BigEndian.AppendUint32(nil, 0xfffffff0)); err != nil {
		p.Fatal(err)
	}
	r.wantEnd()
	r = p.dialRaw()
	if _, err := r.conn.Write([]byte{0, 0, 0, 2, 1, 2}); err != nil {
		p.Fatal(err)
	}
	r.wantEnd()
}

func testLargeFrames(p env) {
	r := p.newRaw()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1_000_000/16)
	r.wantDo(wire.OK, set(p.dir, string(data)))
	r.send(request{wire.OpGetData, &wire.PathWatchRequest{Path: p.dir}})
	m := r.want(2, wire.OK)
	if got := m.body[4 : 4+len(data)]; !bytes.Equal(got, data) {
		p.Error("got other data than was written")
	}
}
