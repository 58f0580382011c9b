package zk_test

// Servers that speak the protocol and are not ZooKeeper.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// keeper makes a server look like ClickHouse Keeper: it resumes no session, and closes the connection at operations
// that it does not know.
func keeper(unknown ...int32) func(zktest.Request) zktest.Fault {
	return func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpConnect {
			return zktest.Forget
		}
		if slices.Contains(unknown, r.Code) {
			return zktest.Refuse
		}
		return zktest.Pass
	}
}

// Promise: 8
func TestSessionThatIsNotResumedSaysWhichServerDoesNot(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(keeper())
		client := srv.Client(t, 10*time.Second)
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), "/mine", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		srv.Drop(sess.ID())
		<-sess.Context().Done()
		cause := context.Cause(sess.Context())
		if !errors.Is(cause, zk.ErrLost) || !strings.Contains(cause.Error(), "ClickHouse Keeper") ||
			strings.Contains(cause.Error(), "operation") {
			t.Errorf("got %v", cause)
		}
		// The next session works. What the first one made stays until that expires at the server.
		next, err := client.Session(t.Context())
		if err != nil || next.ID() == sess.ID() {
			t.Fatal(next, err)
		}
		if _, there, err := next.Exists(t.Context(), "/mine"); err != nil || !there {
			t.Errorf("got %v %v, want the node of the session that lives on", there, err)
		}
		time.Sleep(2 * sess.Timeout()) // in the world's time
		if _, there, err := next.Exists(t.Context(), "/mine"); err != nil || there {
			t.Errorf("got %v %v, want no node", there, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Promise: 8
func TestConnectionClosedAtAnOperationNamesIt(t *testing.T) {
	t.Parallel()
	const createTTL = 21
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(keeper(createTTL))
		client := srv.Client(t, 10*time.Second)
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = sess.CreateNode(t.Context(), zk.Node{Path: "/short", Mode: zk.PersistentTTL, TTL: time.Minute})
		if !errors.Is(err, zk.ErrConnectionLost) || zk.OutcomeOf(err) != zk.Unknown ||
			!strings.Contains(err.Error(), "closed the connection at this request, operation 21") {
			t.Errorf("got %v", err)
		}
		<-sess.Context().Done()
		cause := context.Cause(sess.Context())
		if !errors.Is(cause, zk.ErrLost) || !strings.Contains(cause.Error(), "at a create, operation 21") {
			t.Errorf("got %v", cause)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Promise: 8
func TestLostSessionIsNotResumedAgainAndAgain(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(keeper())
		client := srv.Client(t, 10*time.Second)
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Drop(sess.ID())
		<-sess.Context().Done()
		if _, err := client.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * sess.Timeout()) // in the world's time: closing the lost session would be tried in it
		// The first connection, one that asks for the session, that of the next session, and one to close the lost one.
		if got := srv.Traffic().Connections; got > 4 {
			t.Errorf("got %d connections, want at most 4", got)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A client that is refused by closed connections ends and says so, instead of asking for ever.
//
// Promise: 8
func TestOperationThatClosesEachConnectionEndsTheClient(t *testing.T) {
	t.Parallel()
	const createTTL = 21
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, 10*time.Second)
		create := func() error {
			node := zk.Node{Path: "/short", Mode: zk.PersistentTTL, TTL: time.Minute}
			_, err := client.CreateNode(t.Context(), node)
			return err
		}
		for range 3 { // an answer in between shows that the servers know it
			srv.Control(keeper(createTTL))
			for range 4 {
				if err := create(); !errors.Is(err, zk.ErrConnectionLost) {
					t.Fatalf("got %v", err)
				}
				awaitNext(t, client)
			}
			srv.Control(keeper())
			if err := create(); err != nil && !errors.Is(err, zk.NodeExists) {
				t.Fatal(err)
			}
		}
		srv.Control(keeper(createTTL))
		for range 5 {
			if err := create(); !errors.Is(err, zk.ErrConnectionLost) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(5 * time.Second) // in the world's time
		}
		time.Sleep(time.Minute) // in the world's time
		_, err := client.Session(t.Context())
		if !errors.Is(err, zk.ErrUnsupported) || !strings.Contains(err.Error(), "operation 21") {
			t.Errorf("got %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// awaitNext waits until the client has lost its session and has the next one.
func awaitNext(t *testing.T, client *zk.Client) {
	t.Helper()
	time.Sleep(5 * time.Second) // in the world's time
	if _, err := client.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
}
