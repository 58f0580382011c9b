package zk_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// openClient opens a client of srv, which is closed when the test ends.
func openClient(t *testing.T, srv interface{ Config(time.Duration) zk.Config }) *zk.Client {
	t.Helper()
	client, err := zk.Open(t.Context(), srv.Config(40*time.Second)) // on a busy machine, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// once returns a control function that does the fault to the first request of the kind.
func once(op zktest.Op, fault zktest.Fault) func(zktest.Request) zktest.Fault {
	return func(r zktest.Request) zktest.Fault {
		if r.Op == op && r.Nth == 1 {
			return fault
		}
		return zktest.Pass
	}
}

// Promise: 18
func TestClientCallsUseTheLiveSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := openClient(t, zktest.Run(t))
	_, err := c.Create(ctx, "/a", []byte("1"), zk.Persistent)
	must(t, err)
	stat, err := c.Set(ctx, "/a", []byte("2"), 0)
	must(t, err)
	data, got, err := c.Get(ctx, "/a")
	if string(data) != "2" || got != stat || err != nil {
		t.Errorf("got %s, %+v, %v", data, got, err)
	}
	if _, exists, err := c.Exists(ctx, "/b"); exists || err != nil {
		t.Errorf("a missing node: %v, %v", exists, err)
	}
	results, err := c.Multi(ctx, zk.CreateOp("/a/x", nil, zk.Persistent), zk.CreateOp("/a/y", nil, zk.Persistent))
	if len(results) != 2 || err != nil {
		t.Errorf("multi: %v, %v", results, err)
	}
	names, _, err := c.Children(ctx, "/a")
	if slices.Sort(names); !slices.Equal(names, []string{"x", "y"}) || err != nil {
		t.Errorf("children: %v, %v", names, err)
	}
	reads, err := c.MultiRead(ctx, zk.GetOp("/a"), zk.ChildrenOp("/a"))
	if err != nil || string(reads[0].Data) != "2" || len(reads[1].Children) != 2 {
		t.Errorf("multiRead: %v, %v", reads, err)
	}
	must(t, c.Sync(ctx, "/"))
	_, err = c.SetACL(ctx, "/a/x", zk.ReadOnlyACL(), -1)
	must(t, err)
	acl, _, err := c.GetACL(ctx, "/a/x")
	if !slices.Equal(acl, zk.ReadOnlyACL()) || err != nil {
		t.Errorf("acl: %v, %v", acl, err)
	}
	wantFailure(t, c.Delete(ctx, "/a", -1), zk.NotEmpty, zk.Refused)
	must(t, c.Delete(ctx, "/a/y", -1))
	_, _, err = c.Get(ctx, "bad")
	wantFailure(t, err, zk.BadArguments, zk.NotSent)
	must(t, c.Close())
	_, _, err = c.Get(ctx, "/a")
	wantFailure(t, err, zk.ErrClosed, zk.NotSent)
}

// Promise: 18
func TestClientCallWaitsForASessionWithinItsContext(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	srv.Cut()
	c := openClient(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.Delete(ctx, "/a", -1)
	wantFailure(t, err, context.DeadlineExceeded, zk.NotSent)
	done := make(chan error)
	go func() {
		_, err := c.Create(t.Context(), "/a", nil, zk.Persistent)
		done <- err
	}()
	srv.Heal()
	must(t, <-done)
}

// Promise: 18
func TestLostReplyOfAWriteIsUnknownAndOfAReadIsAskedForAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	srv.Control(once(zktest.OpCreate, zktest.DropReply))
	_, err := c.Create(ctx, "/a", nil, zk.Persistent)
	wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
	for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren} {
		srv.Control(once(op, zktest.DropReply))
		_, _, err := c.Get(ctx, "/a")
		must(t, err)
		_, exists, err := c.Exists(ctx, "/a")
		if !exists || err != nil {
			t.Errorf("%v: %v, %v", op, exists, err)
		}
		_, _, err = c.Children(ctx, "/a")
		must(t, err)
	}
}

// Promise: 18
func TestReadGoesOnWithTheNextSessionAndAWriteDoesNot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	_, err := c.Create(ctx, "/a", []byte("x"), zk.Persistent)
	must(t, err)
	expire := func(op zktest.Op) { // the session ends while the request is under way
		var seen sync.Once
		srv.Control(func(r zktest.Request) zktest.Fault {
			fault := zktest.Pass
			if r.Op == op {
				seen.Do(func() {
					srv.ExpireSession(r.Session)
					fault = zktest.Refuse
				})
			}
			return fault
		})
	}
	first, err := c.Session(ctx)
	must(t, err)
	expire(zktest.OpGetData)
	if data, _, err := c.Get(ctx, "/a"); string(data) != "x" || err != nil {
		t.Errorf("got %s, %v", data, err)
	}
	second, err := c.Session(ctx)
	if err != nil || second == first {
		t.Fatalf("the session has not ended: %v", err)
	}
	expire(zktest.OpSetData)
	_, err = c.Set(ctx, "/a", nil, -1)
	if zk.OutcomeOf(err) != zk.Unknown {
		t.Errorf("a write: %v, want outcome Unknown", err)
	}
}

// Promise: 18
func TestWriteThatWasNotSentGoesOnWithTheNextSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	sess, err := c.Session(ctx)
	must(t, err)
	srv.Cut()
	for state := range sess.States(ctx) {
		if state == zk.Suspended {
			break
		}
	}
	done := make(chan error)
	go func() {
		_, err := c.Create(ctx, "/late", nil, zk.Ephemeral)
		done <- err
	}()
	srv.ExpireSession(sess.ID())
	srv.Heal()
	must(t, <-done)
	stat, exists, err := c.Exists(ctx, "/late")
	next, _ := c.Session(ctx)
	if !exists || err != nil || stat.EphemeralOwner != next.ID() || next == sess {
		t.Errorf("got %v, %v, owner 0x%x; want the new session's node", exists, err, stat.EphemeralOwner)
	}
}

// Promise: 18
func TestWatchAllYieldsUntilTheWatchIsDone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	_, _, oneShot, err := s.ExistsW(ctx, "/a")
	must(t, err)
	lasting, err := s.WatchRecursive(ctx, "/")
	must(t, err)
	b := s.Batch()
	b.Create("/a", nil, zk.Persistent)
	b.Set("/a", nil, -1)
	b.Delete("/a", -1)
	b.Send()
	var types []zk.EventType
	for e, err := range oneShot.All(ctx) {
		must(t, err)
		types = append(types, e.Type)
	}
	if want := []zk.EventType{zk.EventCreated}; !slices.Equal(types, want) {
		t.Errorf("one-shot: got %v, want %v", types, want)
	}
	types = nil
	for e, err := range lasting.All(ctx) {
		must(t, err)
		if types = append(types, e.Type); len(types) == 2 {
			break
		}
	}
	for e, err := range lasting.All(ctx) { // goes on where the other stopped
		must(t, err)
		types = append(types, e.Type)
		lasting.Close()
	}
	if want := []zk.EventType{zk.EventCreated, zk.EventDataChanged, zk.EventDeleted}; !slices.Equal(types, want) {
		t.Errorf("persistent: got %v, want %v", types, want)
	}
}

// Promise: 18
func TestWatchAllEndsWithTheErrorOfItsContextOrSession(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(t.Context())
	must(t, err)
	w, err := s.Watch(t.Context(), "/a")
	must(t, err)
	ends := func(ctx context.Context, want error) {
		t.Helper()
		n := 0
		for _, err := range w.All(ctx) {
			if n++; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if n != 1 {
			t.Errorf("got %d errors, want 1", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ends(ctx, context.Canceled)
	srv.ExpireSession(s.ID())
	ends(t.Context(), zk.ErrExpired)
}

// Promise: 18
func TestSessionTellsItsServer(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(t.Context())
	must(t, err)
	if addr, connected := s.Server(); addr != srv.Addr() || !connected {
		t.Errorf("got %s, %v; want %s, true", addr, connected, srv.Addr())
	}
	after(s, func() { srv.Cut() })
	if addr, connected := s.Server(); addr != srv.Addr() || connected {
		t.Errorf("without a connection: got %s, %v; want %s, false", addr, connected, srv.Addr())
	}
}

func TestErrorsQuotePathsThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/b é":   "/a/b é",
		"/a\n\x1b": `"/a\n\x1b"`,
		"/a\x9b3m": `"/a\x9b3m"`,
	} {
		one := (&zk.Error{Op: "getData", Path: path, Err: zk.NoNode}).Error()
		if want := "zk: getData " + want + ": node does not exist"; one != want {
			t.Errorf("got %s, want %s", one, want)
		}
		several := (&zk.MultiError{Op: "check", Path: path, Err: zk.NoNode}).Error()
		if want := "operation 0, check " + want + ": node does not exist"; several != want {
			t.Errorf("got %s, want %s", several, want)
		}
	}
	if got := (&zk.Error{Op: "sync", Err: zk.NoNode}).Error(); got != "zk: sync: node does not exist" {
		t.Errorf("without a path: got %s", got)
	}
}
