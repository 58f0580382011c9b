package wire_test

import (
	"math"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

var (
	stat = wire.Stat{
		Czxid: 1, Mzxid: math.MaxInt64, Ctime: -3, Mtime: 4, Version: math.MinInt32, Cversion: 6, Aversion: -7,
		EphemeralOwner: math.MinInt64, DataLength: 9, NumChildren: math.MaxInt32, Pzxid: 11,
	}
	acls = []wire.ACL{
		{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}},
		{Perms: -1, ID: wire.ID{}},
	}
	create = wire.CreateRequest{Path: "/a", Data: []byte("x"), ACL: acls, Flags: 3}
)

// requests has samples of the requests of every operation.
var requests = map[wire.Op][]wire.Record{
	wire.OpCreate: {
		&create,
		&wire.CreateRequest{Path: "", Data: nil, ACL: []wire.ACL{}, Flags: -1},
		&wire.CreateRequest{Path: "/ä", Data: []byte{}, ACL: []wire.ACL{}},
	},
	wire.OpDelete:  {&wire.DeleteRequest{Path: "/a", Version: -1}},
	wire.OpExists:  {&wire.PathWatchRequest{Path: "/a", Watch: true}, &wire.PathWatchRequest{}},
	wire.OpGetData: {&wire.PathWatchRequest{Path: "/a"}},
	wire.OpSetData: {
		&wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 7},
		&wire.SetDataRequest{Path: "/a"},
	},
	wire.OpGetACL:          {&wire.PathRequest{Path: "/a"}},
	wire.OpSetACL:          {&wire.SetACLRequest{Path: "/a", ACL: acls, Version: 7}},
	wire.OpGetChildren:     {&wire.PathWatchRequest{Path: "/a", Watch: true}},
	wire.OpSync:            {&wire.PathRequest{Path: "/a"}},
	wire.OpPing:            {&wire.Empty{}},
	wire.OpGetChildren2:    {&wire.PathWatchRequest{Path: "/a"}},
	wire.OpCheck:           {&wire.CheckRequest{Path: "/a", Version: math.MinInt32}},
	wire.OpCreate2:         {&create},
	wire.OpCreateContainer: {&create},
	wire.OpDeleteContainer: {&wire.PathRequest{Path: "/a"}},
	wire.OpCreateTTL:       {&wire.CreateTTLRequest{CreateRequest: create, TTL: math.MaxInt64}},
	wire.OpReconfig: {
		&wire.ReconfigRequest{Joining: "server.1=a:1:2;3", Leaving: "2", FromConfig: -1},
		&wire.ReconfigRequest{NewMembers: "x"},
	},
	wire.OpCheckWatches:   {&wire.WatcherTypeRequest{Path: "/a", Type: wire.WatcherAny}},
	wire.OpRemoveWatches:  {&wire.WatcherTypeRequest{Path: "/a", Type: -1}},
	wire.OpAuth:           {&wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")}, &wire.AuthRequest{Type: 1}},
	wire.OpSASL:           {&wire.SASLToken{Token: []byte("x")}, &wire.SASLToken{}, &wire.SASLToken{Token: []byte{}}},
	wire.OpGetEphemerals:  {&wire.EphemeralsRequest{Prefix: "/a"}, &wire.EphemeralsRequest{}},
	wire.OpGetAllChildren: {&wire.PathRequest{Path: "/"}},
	wire.OpWhoAmI:         {&wire.Empty{}},
	wire.OpCloseSession:   {&wire.Empty{}},
	wire.OpAddWatch:       {&wire.AddWatchRequest{Path: "/a", Mode: wire.WatchPersistentRecursive}},
	wire.OpSetWatches: {&wire.SetWatchesRequest{
		RelativeZxid: 5, Data: []string{"/a", ""}, Exist: []string{"/b"}, Child: []string{},
	}},
	wire.OpSetWatches2: {&wire.SetWatchesRequest{
		Two: true, RelativeZxid: -5, Data: []string{}, Exist: []string{}, Child: []string{"/c"},
		Persistent: []string{"/d"}, PersistentRecur: []string{"/e", "/f"},
	}},
	wire.OpMulti: {
		&wire.MultiRequest{},
		&wire.MultiRequest{Ops: []wire.SubRequest{
			{Op: wire.OpCreate, Request: &create},
			{Op: wire.OpCreate2, Request: &create},
			{Op: wire.OpCreateContainer, Request: &create},
			{Op: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{CreateRequest: create, TTL: 5}},
			{Op: wire.OpDelete, Request: &wire.DeleteRequest{Path: "/a", Version: 1}},
			{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Data: []byte{}}},
			{Op: wire.OpCheck, Request: &wire.CheckRequest{Path: "/a"}},
		}},
	},
	wire.OpMultiRead: {
		&wire.MultiRequest{Read: true},
		&wire.MultiRequest{Read: true, Ops: []wire.SubRequest{
			{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/a", Watch: true}},
			{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/b"}},
		}},
	},
}

// response has samples of a record that is not the body of a request, and a function that returns an empty one.
type response struct {
	make    func() wire.Record
	samples []wire.Record
}

func of[T any, P interface {
	*T
	wire.Record
}](samples ...P) response {
	r := response{make: func() wire.Record { return P(new(T)) }}
	for _, s := range samples {
		r.samples = append(r.samples, s)
	}
	return r
}

// The order of responses must not change, because the seeds of the fuzzer refer to the index.
var responses = []response{
	of(
		&wire.ConnectRequest{
			LastZxidSeen: 5, Timeout: 4000, SessionID: -1, Password: make([]byte, 16),
			HasReadOnly: true, ReadOnly: true,
		},
		&wire.ConnectRequest{ProtocolVersion: 1},
	),
	of(
		&wire.ConnectResponse{Timeout: 4000, SessionID: 7, Password: make([]byte, 16)},
		&wire.ConnectResponse{HasReadOnly: true},
	),
	of(&wire.RequestHeader{Xid: -2, Op: wire.OpPing}),
	of(&wire.ReplyHeader{Xid: 7, Zxid: 1 << 40, Err: wire.NoNode}),
	of(&wire.StatResponse{Stat: stat}),
	of(&wire.DataResponse{Data: []byte("x"), Stat: stat}, &wire.DataResponse{}, &wire.DataResponse{Data: []byte{}}),
	of(&wire.ACLResponse{ACL: acls, Stat: stat}),
	of(&wire.ChildrenResponse{Children: []string{"a", ""}}, &wire.ChildrenResponse{Children: []string{}}),
	of(&wire.Children2Response{Children: []string{"a"}, Stat: stat}),
	of(&wire.PathResponse{Path: "/a"}),
	of(&wire.Create2Response{Path: "/a", Stat: stat}),
	of(&wire.WhoAmIResponse{IDs: []wire.ID{{Scheme: "ip", ID: "::1"}, {}}}),
	of(&wire.CountResponse{Count: -1}),
	of(&wire.ErrorResponse{Err: wire.NoNode}),
	of(&wire.SASLToken{Token: []byte("x")}),
	of(&wire.Event{Type: wire.EventDeleted, State: wire.StateSyncConnected, Path: "/a"}),
	of(&wire.Empty{}),
	of(&wire.Stat{}, &stat),
	of(&wire.MultiResponse{}, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpCreate, Path: "/a"},
		{Op: wire.OpCreate2, Path: "/a", Stat: stat},
		{Op: wire.OpSetData, Stat: stat},
		{Op: wire.OpDelete},
		{Op: wire.OpCheck},
		{Op: wire.OpGetData, Data: []byte("x"), Stat: stat},
		{Op: wire.OpGetData},
		{Op: wire.OpGetChildren, Children: []string{"a"}},
		{Op: wire.OpError, Err: wire.NoNode},
		{Op: wire.OpError, Err: wire.OK},
		{Op: wire.OpError, Err: wire.RuntimeInconsistency},
	}}),
}
