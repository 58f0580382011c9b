package server

import (
	"net"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// FuzzConnection sends arbitrary bytes on a connection with a session. The server must still serve other clients.
func FuzzConnection(f *testing.F) {
	all := wire.ACL{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth"}}
	for op, req := range map[wire.Op]wire.Record{
		wire.OpCreate2: &wire.CreateRequest{
			Path: "/a", Data: []byte{}, ACL: []wire.ACL{all},
			Flags: wire.FlagSequential,
		},
		wire.OpCreateTTL: &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{
			Path: "/b", ACL: openACL,
			Flags: wire.FlagTTL,
		}, TTL: 5},
		wire.OpSetACL: &wire.SetACLRequest{Path: "/a", ACL: openACL, Version: -1},
		wire.OpSetWatches2: &wire.SetWatchesRequest{
			Two: true, Data: []string{"/"}, Exist: []string{"/"},
			Child: []string{"/"}, Persistent: []string{"/"}, PersistentRecur: []string{"/"},
		},
		wire.OpRemoveWatches: &wire.WatcherTypeRequest{Path: "/", Type: wire.WatcherAny},
		wire.OpMulti: &wire.MultiRequest{Ops: []wire.SubRequest{
			{Op: wire.OpCreate, Request: &wire.CreateRequest{Path: "/zookeeper/quota/a", ACL: openACL}},
			{Op: wire.OpSetData, Request: &wire.SetDataRequest{
				Path: "/zookeeper/quota/zookeeper_limits",
				Data: []byte("count=1,bytes=1"), Version: -1,
			}},
		}},
		wire.OpMultiRead: &wire.MultiRequest{
			Read: true,
			Ops:  []wire.SubRequest{{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/"}}},
		},
		wire.OpSASL:         &wire.SASLToken{Token: []byte(`username="bob",nonce="x"`)},
		wire.OpAuth:         &wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")},
		wire.OpReconfig:     &wire.ReconfigRequest{Leaving: "1"},
		wire.OpCloseSession: &wire.Empty{},
	} {
		b := wire.AppendRequest(nil, 1, op, req)
		f.Add(wire.AppendRequest(b, 2, wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/", Watch: true}))
	}
	s, err := Start(f.Context(), Config{
		InMemory: true, Listen: []string{"127.0.0.1:0"}, ExtendedTypes: true, EnforceQuota: true,
		SASLUsers: map[string]string{"bob": "x"}, MaxFrame: 1 << 16,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		c := mustConnect(t, s, wire.ConnectRequest{Timeout: 4000})
		if _, err := c.nc.Write(b); err == nil && c.nc.(*net.TCPConn).CloseWrite() == nil {
			c.ended()
		}
		_ = s.ExpireSession(c.session)
		other := mustConnect(t, s, wire.ConnectRequest{Timeout: 4000})
		if err := other.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, nil); err != nil {
			t.Errorf("another client's read: got %v, want OK", err)
		}
		if err := other.call(wire.OpCloseSession, &wire.Empty{}, nil); err != nil {
			t.Error(err)
		}
	})
}
