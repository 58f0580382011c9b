package server

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// gate is a disk on which a test can make syncs of the log wait or fail.
type gate struct {
	mu     sync.Mutex // guards the fields below
	closed chan struct{}
	fail   error
	waits  chan struct{} // gets a token when a sync starts to wait
}

func newGate() *gate { return &gate{waits: make(chan struct{}, 100)} }

func (g *gate) String() string { return "gate" }

func (g *gate) MaybeError(op errorfs.Op) error {
	if !strings.HasSuffix(op.Path, ".log") || (op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData) {
		return nil
	}
	g.mu.Lock()
	closed, fail := g.closed, g.fail
	g.mu.Unlock()
	if closed != nil {
		g.waits <- struct{}{}
		<-closed
		g.mu.Lock()
		fail = g.fail // the test may have set it meanwhile
		g.mu.Unlock()
	}
	return fail
}

// shut makes syncs wait until the returned function is called or the test ends.
func (g *gate) shut(t *testing.T) (open func()) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	ch := make(chan struct{})
	g.closed = ch
	open = sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = nil
		close(ch)
	})
	t.Cleanup(open)
	return open
}

func (g *gate) jam(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = err
}

// Promise: 10
func TestNoClientSeesAWriteThatIsNotDurable(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	writer, reader, watcher := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{}),
		mustConnect(t, s, wire.ConnectRequest{})
	for _, path := range []string{"/a", "/b"} {
		if _, err := writer.create(path, []byte("old"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := watcher.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}, nil); err != nil {
		t.Fatal(err)
	}
	open := g.shut(t)
	before := writer.zxid
	if err := writer.send(100, wire.OpSetData, &wire.SetDataRequest{
		Path: "/a", Data: []byte("new"),
		Version: -1,
	}); err != nil {
		t.Fatal(err)
	}
	<-g.waits // the write is applied and its sync has begun

	// Requests that do not depend on the write are answered meanwhile, with a zxid that cannot be lost.
	for _, c := range []*rawClient{reader, watcher} {
		if _, _, err := c.get("/b"); err != nil {
			t.Fatal(err)
		}
		if err := c.send(-2, wire.OpPing, &wire.Empty{}); err != nil {
			t.Fatal(err)
		}
		if h, err := c.reply(nil); err != nil || h.Zxid != before {
			t.Errorf("ping: got zxid %d %v, want the durable one, %d", h.Zxid, err, before)
		}
		if c.zxid != before || len(c.events) > 0 {
			t.Errorf("got zxid %d and events %v before the write is durable, want %d and none", c.zxid, c.events,
				before)
		}
	}

	// Requests that depend on it wait, and so do those behind them on the same connection.
	b := wire.AppendRequest(nil, 1, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"})
	b = wire.AppendRequest(b, 2, wire.OpGetData, &wire.PathWatchRequest{Path: "/b"})
	b = wire.AppendRequest(b, -2, wire.OpPing, &wire.Empty{})
	if _, err := reader.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	var early error
	var wg sync.WaitGroup
	wg.Go(func() {
		var resp wire.DataResponse
		h, err := reader.reply(&resp)
		select {
		case <-released:
		default:
			early = fmt.Errorf("got reply %+v %q before the write was durable", h, resp.Data)
			return
		}
		if err != nil || h.Xid != 1 || string(resp.Data) != "new" || h.Zxid != before+1 {
			early = fmt.Errorf("got %+v %q, want the new data at zxid %d: %w", h, resp.Data, before+1, err)
		}
	})
	// The owner has served another client's requests since, so it has served the read by now.
	for range 20 {
		if _, _, err := watcher.get("/b"); err != nil {
			t.Fatal(err)
		}
	}
	close(released)
	open()
	wg.Wait()
	if early != nil {
		t.Error(early)
	}
	for _, want := range []int32{2, -2} {
		if h, err := reader.reply(nil); err != nil || h.Xid != want {
			t.Errorf("got %+v %v, want the reply to %d", h, err, want)
		}
	}
	if h, err := writer.reply(nil); err != nil || h.Xid != 100 || h.Zxid != before+1 {
		t.Errorf("write: got %+v %v", h, err)
	}
	if data, _, err := watcher.get("/a"); err != nil || string(data) != "new" || len(watcher.events) != 1 {
		t.Errorf("got %q %v %v, want the new data after its event", data, err, watcher.events)
	}
}

// Promise: 10
func TestSlowDiskDoesNotExpireLiveClients(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	c := mustConnect(t, s, wire.ConnectRequest{})
	g.shut(t)
	create := wire.CreateRequest{Path: "/a", ACL: openACL}
	two := wire.AppendRequest(wire.AppendRequest(nil, 1, wire.OpCreate, &create), 2, wire.OpCreate, &create)
	if _, err := c.nc.Write(two); err != nil {
		t.Fatal(err)
	}
	<-g.waits
	sess := s.owner.sessions[c.session] // the map does not change now
	before := sess.heard.Load()
	if err := c.send(-2, wire.OpPing, &wire.Empty{}); err != nil { // its reply waits behind those to the creates
		t.Fatal(err)
	}
	other := mustPing(t, s)
	for sess.heard.Load() == before {
		other()
	}
}

func TestSessionDoesNotExpireWhileItsReaderWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	c := mustConnect(t, s, wire.ConnectRequest{})
	var sess *session
	if err := s.do(func(o *owner) { sess = o.sessions[c.session] }); err != nil {
		t.Fatal(err)
	}
	var open func()
	for i := int32(1); ; i++ {
		open = g.shut(t)
		create := &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: openACL}
		if err := c.send(i, wire.OpCreate, create); err != nil {
			t.Fatal(err)
		}
		<-g.waits
		if sess.unread.Load() > 0 {
			break
		}
		open() // the owner was not idle, so that the reader did not serve the request and reads on
		if _, err := c.reply(nil); err != nil {
			t.Fatal(err)
		}
	}
	late := 10 * time.Duration(sess.timeout.Load())
	if n := expired(t, s, late); n != 0 {
		t.Errorf("got %d sessions expired while the server does not read, want none", n)
	}
	before := sess.heard.Load()
	open()
	if _, err := c.reply(nil); err != nil {
		t.Fatal(err)
	}
	for sess.unread.Load() > 0 {
		runtime.Gosched()
	}
	if sess.heard.Load() == before {
		t.Error("the client is not heard of after the wait, in which it could send nothing that is read")
	}
	if n := expired(t, s, 10*late); n != 1 {
		t.Errorf("got %d sessions expired after the client sent nothing, want 1", n)
	}
}

// Promise: 10
func TestSessionDoesNotExpireWhileTooManyOfItsRequestsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	c := mustConnect(t, s, wire.ConnectRequest{})
	open := g.shut(t)
	const many = 2 * maxPending
	var b []byte
	for i := range int32(many) {
		b = wire.AppendRequest(b, i, wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: openACL})
	}
	if _, err := c.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	var sc *conn
	if err := s.do(func(o *owner) { sc = o.sessions[c.session].conn }); err != nil {
		t.Fatal(err)
	}
	for full := false; !full; runtime.Gosched() {
		sc.outbox.mu.Lock()
		full = sc.full
		sc.outbox.mu.Unlock()
	}
	late := 10 * time.Duration(sc.sess.Load().timeout.Load())
	if n := expired(t, s, late); n != 0 {
		t.Errorf("got %d sessions expired while the server does not read, want none", n)
	}
	open()
	for range many {
		if _, err := c.reply(nil); err != nil {
			t.Fatal(err)
		}
	}
	// The client may have the last reply before the server has noted that the reader waits for nothing any more.
	for full := true; full; runtime.Gosched() {
		sc.outbox.mu.Lock()
		full = sc.full
		sc.outbox.mu.Unlock()
	}
	if n := expired(t, s, 10*late); n != 1 {
		t.Errorf("got %d sessions expired after the client sent nothing, want 1", n)
	}
}

// expired advances the sessions' time and returns how many have expired. Each bucket is checked when it is due: half a
// tick later, expiry would take it for a stall of the process and give every session another tick.
func expired(t *testing.T, s *Server, after time.Duration) (n int) {
	t.Helper()
	err := s.do(func(o *owner) {
		e := &o.expiry
		for end := s.clock.now() + after; time.Duration(e.next)*e.tick < end; {
			n += len(e.expired(time.Duration(e.next) * e.tick))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A client whose replies wait for the disk closes its connection. A new one must not have to wait as well.
//
// Promise: 10
func TestClientResumesItsSessionWhileTheDiskIsSlow(t *testing.T) {
	t.Parallel()
	for name, requests := range map[string]int32{"a request alone": 1, "several": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
			c := mustConnect(t, s, wire.ConnectRequest{Timeout: 300_000})
			open := g.shut(t)
			var b []byte
			for i := range requests {
				b = wire.AppendRequest(b, i, wire.OpCreate,
					&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: openACL})
			}
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			<-g.waits
			again := dial(t, s)
			hasten(t, again)
			req := wire.ConnectRequest{Timeout: 300_000, SessionID: c.session, Password: c.password}
			if resp, err := again.handshake(&req); err != nil || resp.SessionID != c.session ||
				resp.Timeout != 300_000 {
				t.Fatalf("got %+v %v while the disk is slow, want the session", resp, err)
			}
			again.ping(t)

			// A longer timeout is confirmed to no client before it is durable.
			req.Timeout = 600_000
			var last *rawClient
			for range 2 {
				last = dial(t, s)
				if _, err := last.nc.Write(appendFrame(nil, &req)); err != nil {
					t.Fatal(err)
				}
				for unanswered := -1; unanswered < 0; runtime.Gosched() {
					if err := s.do(func(o *owner) {
						if sc := o.sessions[c.session].conn; sc.remote == last.nc.LocalAddr().String() {
							unanswered = sc.facts().queued
						}
					}); err != nil {
						t.Fatal(err)
					}
					if unanswered == 0 {
						t.Error("got a reply with a timeout that is not durable")
					}
				}
			}
			open()
			if resp, err := last.readConnect(); err != nil || resp.Timeout != 600_000 {
				t.Errorf("got %+v %v, want the new timeout", resp, err)
			}
		})
	}
}

// hasten makes a test fail in which an answer waits for what the test does later.
func hasten(t *testing.T, c *rawClient) {
	t.Helper()
	if err := c.nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
}

// A full log is synced before the next one begins, and large writes fill it.
//
// Promise: 10
func TestOnlyWritersWaitForAFullLog(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	c := mustConnect(t, s, wire.ConnectRequest{})
	for _, path := range []string{"/a", "/b"} {
		if _, err := c.create(path, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	first, second := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	open := g.shut(t)
	// Two writes, which a reader does not serve inline.
	b := wire.AppendRequest(nil, 1, wire.OpSetData, setOf("/a", 1))
	b = wire.AppendRequest(b, 2, wire.OpSetData, setOf("/a", 12*largeSize))
	for _, w := range []*rawClient{first, second} {
		go func() { _, _ = w.nc.Write(b) }() // ends when the server has read it
	}
	<-g.waits
	hasten(t, c)
	c.ping(t)
	if _, _, err := c.get("/b"); err != nil {
		t.Fatal(err)
	}
	again := dial(t, s)
	hasten(t, again)
	req := wire.ConnectRequest{Timeout: 600_000, SessionID: c.session, Password: c.password}
	if _, err := again.handshake(&req); err != nil {
		t.Fatal(err)
	}
	open()
	for _, w := range []*rawClient{first, second} {
		for range 2 {
			if h, err := w.reply(nil); err != nil || h.Err != wire.OK {
				t.Errorf("got %+v %v", h, err)
			}
		}
	}
}

// mustPing returns a function that makes a round trip to the server, during which other goroutines run.
func mustPing(t *testing.T, s *Server) func() {
	t.Helper()
	return func() { _ = s.do(func(*owner) {}) }
}

// Promise: 10
func TestFullDiskStopsAcknowledgingAndLosesNothing(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("no space left on device")
	mem, g := vfs.NewCrashableMem(), newGate()
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(mem, g)})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/before", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	g.jam(noSpace)
	if _, err := c.create("/lost", nil, 0); err == nil {
		t.Error("got success for a write that failed on disk, want an error")
	} else if _, refused := errors.AsType[codeError](err); refused {
		t.Errorf("got code %v, want the end of the connection, as the outcome of the write is unknown", err)
	}
	<-s.Done()
	if !errors.Is(s.Err(), noSpace) || !errors.Is(s.Close(), noSpace) {
		t.Errorf("got %v and %v, want both to name the cause", s.Err(), s.Close())
	}
	s = serve(t, Config{Data: "data"}, disk{fs: mem.CrashClone(vfs.CrashCloneCfg{})})
	again, err := c.resume(s)
	if err != nil {
		t.Fatal(err)
	}
	defer again.nc.Close()
	if data, _, err := again.get("/before"); err != nil || string(data) != "x" {
		t.Errorf("got %q %v, want the acknowledged data", data, err)
	}
}

func TestZxidOfARefusedWriteIsNotReusedAfterACrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := serve(t, Config{Data: "data"}, disk{fs: mem})
	c := mustConnect(t, s, wire.ConnectRequest{})
	for range 2000 { // more than any reserve
		if err := c.delete("/no"); !errors.Is(err, codeError(wire.NoNode)) {
			t.Fatal(err)
		}
	}
	s = serve(t, Config{Data: "data"}, disk{fs: mem.CrashClone(vfs.CrashCloneCfg{})})
	if _, err := c.resume(s); err != nil {
		t.Errorf("client that has seen zxid %d: got %v, and the server at zxid %d", c.zxid, err, s.owner.zxid)
	}
}

func TestCleanRestartContinuesAtTheNextZxid(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: t.TempDir()}
	s := serve(t, cfg, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/e", []byte("x"), wire.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	if err := c.delete("/no"); err == nil {
		t.Fatal("delete of an absent node: got success, want an error")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = serve(t, cfg, disk{})
	again, err := c.resume(s)
	if err != nil {
		t.Fatal(err)
	}
	defer again.nc.Close()
	if _, stat, err := again.get("/e"); err != nil || stat.EphemeralOwner != c.session {
		t.Errorf("got %+v %v, want the session's ephemeral node", stat, err)
	}
	if _, err := again.create("/f", nil, 0); err != nil || again.zxid != c.zxid+1 {
		t.Errorf("got zxid %d %v, want %d", again.zxid, err, c.zxid+1)
	}
}

// Promise: 10
func TestDirectoryInUseIsRefused(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: t.TempDir()}
	serve(t, cfg, disk{})
	cfg.Listen = []string{"127.0.0.1:0"}
	if s, err := start(t.Context(), cfg, disk{}); err == nil {
		_ = s.Close()
		t.Error("second server on the directory: got success, want an error")
	} else if !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("got %v, want an error with the process id", err)
	}
}
