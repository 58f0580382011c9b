package server

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"net"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// startWith starts a server on a disk behind a gate. The test must close the server.
func startWith(t *testing.T, g *gate) *Server {
	t.Helper()
	s, err := start(t.Context(), Config{Data: "data", Listen: []string{"127.0.0.1:0"}, MaxSessionTimeout: time.Hour},
		disk{fs: errorfs.Wrap(vfs.NewMem(), g)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNoClientSeesAWriteThatIsLostWhileTheServerStops(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, g)
	writer, reader := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	if _, err := writer.create("/a", []byte("old"), 0); err != nil {
		t.Fatal(err)
	}
	open := g.shut(t)
	if err := writer.send(100, wire.OpSetData, &wire.SetDataRequest{
		Path: "/a", Data: []byte("new"),
		Version: -1,
	}); err != nil {
		t.Fatal(err)
	}
	<-g.waits
	if err := reader.send(100, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}); err != nil {
		t.Fatal(err)
	}
	for s.held(reader.session) == 0 {
		runtime.Gosched()
	}
	go func() { _ = s.Close() }()
	<-s.stopping
	noSpace := errors.New("no space left on device")
	g.jam(noSpace)
	open()
	for name, c := range map[string]*rawClient{"writer": writer, "reader": reader} {
		var resp wire.DataResponse
		if h, err := c.reply(&resp); err == nil {
			t.Errorf("%s: got %+v %q, which shows a lost write", name, h, resp.Data)
		}
	}
	if err := s.Close(); !errors.Is(err, noSpace) {
		t.Errorf("close: got %v, want the reason of the loss", err)
	}
}

// held returns the batch that the next reply to a session must wait for, 0 if there is none.
func (s *Server) held(session int64) (seq uint64) {
	_ = s.do(func(o *owner) {
		if c := o.sessions[session].conn; o.holdReply(c) {
			seq = c.held
		}
	})
	return seq
}

// A client keeps sending after its last reply, more than is read ahead, while the owner is busy and the server closes.
func TestCloseEndsThoughAClientSendsAfterItsLastReply(t *testing.T) {
	t.Parallel()
	for try := range 6 { // chance decides whether the owner sees the end or the requests first
		t.Run(strconv.Itoa(try), func(t *testing.T) {
			t.Parallel()
			g := newGate()
			s := startWith(t, g)
			c := mustConnect(t, s, wire.ConnectRequest{})
			if _, err := c.create("/a", nil, 0); err != nil {
				t.Fatal(err)
			}
			open := g.shut(t)
			if err := c.send(1, wire.OpCloseSession, &wire.Empty{}); err != nil {
				t.Fatal(err)
			}
			<-g.waits
			busy, begun := make(chan struct{}), make(chan struct{})
			go func() { _ = s.do(func(*owner) { close(begun); <-busy }) }()
			<-begun
			sc := s.allConns()[0]
			go func() {
				for i := range int32(3 * maxPending) {
					if c.send(i, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}) != nil {
						return
					}
				}
			}()
			for len(sc.taken) > 0 || s.queue.empty() { // wait until the reader waits for the owner
				runtime.Gosched()
			}
			open()
			if h, err := c.reply(nil); err != nil || h.Xid != 1 {
				t.Fatalf("got %+v %v, want the reply to closeSession", h, err)
			}
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			<-s.stopping
			close(busy)
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConnectionIsClosedWithoutWaitingForItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cert := newAuthority(t).issue(t, pkix.Name{CommonName: "server"})
		ours, theirs := net.Pipe() // a pipe has no buffer
		server := tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{cert}})
		client := tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
		shaken := make(chan error, 1)
		go func() { shaken <- server.Handshake() }()
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-shaken; err != nil {
			t.Fatal(err)
		}
		c := newConn(&Server{}, server, 1, true)
		begin := time.Now()
		c.kill()
		if took := time.Since(begin); took > 0 {
			t.Errorf("the owner waited %v for a client that reads nothing, want no wait", took)
		}
		_ = theirs.Close()
	})
}
