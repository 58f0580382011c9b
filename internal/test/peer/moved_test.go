package peer_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// A session moves away from a follower whose link to the leader froze with a creation in it. From then on the leader
// refuses the creation, so after a later write of the session it will never be done. That is not so if the client
// also tried to reconnect to the follower, even in vain. The request to revalidate the session is behind the creation
// in the link, and the leader makes the follower the session's owner again before it checks whose the creation is. So
// a client must not conclude from a missing node after its write that the node will never appear.
func TestCreationMayBeDoneAfterALaterWriteOfItsSession(t *testing.T) {
	t.Parallel()
	zk := peer.Ensemble(t, 3, peer.Options{Links: true, Keys: map[string]string{"syncLimit": "100"}})
	leader := zk.AwaitLeader(-1)
	follower := (leader + 1) % zk.Len()
	const tries = 10
	for _, returns := range []bool{false, true} {
		late := 0
		for i := range tries {
			first := dialSession(t, zk.Addr(follower))
			first.hello(0, make([]byte, wire.PasswordLen))
			id, password := first.helloAnswer()

			zk.Links().Freeze(follower, leader)
			path := fmt.Sprintf("/late-%t-%d", returns, i)
			acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
			first.send(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl, Flags: wire.FlagEphemeral})
			forwarded()
			first.close()
			if returns {
				second := dialSession(t, zk.Addr(follower))
				second.hello(id, password)
				forwarded()
				second.close()
			}

			third := dialSession(t, zk.Addr(leader))
			third.hello(id, password)
			third.helloAnswer()
			third.want(wire.OpDelete, &wire.DeleteRequest{Path: path + "-none", Version: -1}, wire.NoNode)
			third.want(wire.OpExists, &wire.PathWatchRequest{Path: path}, wire.NoNode)
			zk.Links().Heal()
			forwarded()
			other := dialSession(t, zk.Addr(leader))
			other.hello(0, make([]byte, wire.PasswordLen))
			other.helloAnswer()
			other.send(wire.OpSync, &wire.PathRequest{Path: path})
			other.code()
			other.send(wire.OpExists, &wire.PathWatchRequest{Path: path})
			if other.code() == wire.OK {
				late++
			}
			other.close()
			third.close()
		}
		t.Logf("returns %t: %d of %d creations were done after a later write of their session", returns, late, tries)
		if late > 0 && !returns { // with returns it is a race, which the leader loses about every second time
			t.Errorf("returns %t: got %d of %d creations done after a later write of their session",
				returns, late, tries)
		}
	}
}

// forwarded waits until the link has read or forwarded what was sent. No event shows that.
func forwarded() { <-time.After(100 * time.Millisecond) }

// A session is a client's session on one connection, without goroutines of its own.
type session struct {
	t    *testing.T
	conn net.Conn
	xid  int32
}

func dialSession(t *testing.T, addr string) *session {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &session{t: t, conn: conn}
}

func (s *session) hello(id int64, password []byte) {
	s.t.Helper()
	hello := wire.ConnectRequest{Timeout: 20_000, SessionID: id, Password: password, HasReadOnly: true}
	s.write(wire.EndFrame(hello.Append(wire.BeginFrame(nil)), 0))
}

func (s *session) helloAnswer() (id int64, password []byte) {
	s.t.Helper()
	var answer wire.ConnectResponse
	answer.Decode(s.read())
	return answer.SessionID, answer.Password
}

func (s *session) send(op wire.Op, r wire.Record) {
	s.t.Helper()
	s.xid++
	s.write(wire.AppendRequest(nil, s.xid, op, r))
}

func (s *session) code() wire.Code {
	s.t.Helper()
	var h wire.ReplyHeader
	h.Decode(s.read())
	return h.Err
}

func (s *session) want(op wire.Op, r wire.Record, want wire.Code) {
	s.t.Helper()
	s.send(op, r)
	if got := s.code(); got != want {
		s.t.Fatalf("%v: got %v, want %v", op, got, want)
	}
}

func (s *session) write(b []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) read() *jute.Decoder {
	s.t.Helper()
	body, err := wire.ReadFrame(s.conn, 1<<20, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return jute.NewDecoder(body)
}

func (s *session) close() { _ = s.conn.Close() }
