package conformance_test

import "github.com/seed-a3166700/turnstile/internal/wire"

// Access lists for the cases.
var (
	open    = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
	reading = []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
	mine    = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth"}}}
)

func acl(perms wire.Perms, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, ID: wire.ID{Scheme: scheme, ID: id}}
}

// Requests, for a multi or for one write.

func create(path, data string, flags int32) wire.SubRequest {
	return wire.SubRequest{
		Op:      wire.OpCreate,
		Request: &wire.CreateRequest{Path: path, Data: []byte(data), ACL: open, Flags: flags},
	}
}

func create2(path, data string, flags int32) wire.SubRequest {
	return wire.SubRequest{
		Op:      wire.OpCreate2,
		Request: &wire.CreateRequest{Path: path, Data: []byte(data), ACL: open, Flags: flags},
	}
}

func createWith(path string, list ...wire.ACL) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpCreate2, Request: &wire.CreateRequest{Path: path, Data: []byte("x"), ACL: list}}
}

func container(path string, flags int32) wire.SubRequest {
	return wire.SubRequest{
		Op:      wire.OpCreateContainer,
		Request: &wire.CreateRequest{Path: path, ACL: open, Flags: flags},
	}
}

func ttl(path string, flags int32, ms int64) wire.SubRequest {
	return wire.SubRequest{
		Op: wire.OpCreateTTL,
		Request: &wire.CreateTTLRequest{
			CreateRequest: wire.CreateRequest{Path: path, ACL: open, Flags: flags},
			TTL:           ms,
		},
	}
}

func del(path string, version int32) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpDelete, Request: &wire.DeleteRequest{Path: path, Version: version}}
}

func set(path, data string, version int32) wire.SubRequest {
	return wire.SubRequest{
		Op:      wire.OpSetData,
		Request: &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version},
	}
}

func check(path string, version int32) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpCheck, Request: &wire.CheckRequest{Path: path, Version: version}}
}

func exists(path string, watch bool) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpExists, Request: &wire.PathWatchRequest{Path: path, Watch: watch}}
}

func get(path string, watch bool) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetData, Request: &wire.PathWatchRequest{Path: path, Watch: watch}}
}

func children(path string, watch bool) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: path, Watch: watch}}
}

func children2(path string, watch bool) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetChildren2, Request: &wire.PathWatchRequest{Path: path, Watch: watch}}
}

func getACL(path string) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetACL, Request: &wire.PathRequest{Path: path}}
}

func setACL(path string, version int32, list ...wire.ACL) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpSetACL, Request: &wire.SetACLRequest{Path: path, ACL: list, Version: version}}
}

func syncPath(path string) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpSync, Request: &wire.PathRequest{Path: path}}
}

func count(path string) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetAllChildren, Request: &wire.PathRequest{Path: path}}
}

func ephemerals(prefix string) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpGetEphemerals, Request: &wire.EphemeralsRequest{Prefix: prefix}}
}

func whoAmI() wire.SubRequest {
	return wire.SubRequest{Op: wire.OpWhoAmI, Request: &wire.Empty{}}
}

func ping() wire.SubRequest {
	return wire.SubRequest{Op: wire.OpPing, Request: &wire.Empty{}}
}

func closeSession() wire.SubRequest {
	return wire.SubRequest{Op: wire.OpCloseSession, Request: &wire.Empty{}}
}

func auth(scheme, credentials string) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpAuth, Request: &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}}
}

func addWatch(path string, mode int32) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpAddWatch, Request: &wire.AddWatchRequest{Path: path, Mode: mode}}
}

func checkWatches(path string, kind int32) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpCheckWatches, Request: &wire.WatcherTypeRequest{Path: path, Type: kind}}
}

func removeWatches(path string, kind int32) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpRemoveWatches, Request: &wire.WatcherTypeRequest{Path: path, Type: kind}}
}

func setWatches(rel int64, data, exist, child []string) wire.SubRequest {
	return wire.SubRequest{
		Op:      wire.OpSetWatches,
		Request: &wire.SetWatchesRequest{RelativeZxid: rel, Data: data, Exist: exist, Child: child},
	}
}

func multi(ops ...wire.SubRequest) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpMulti, Request: &wire.MultiRequest{Ops: ops}}
}

func multiRead(ops ...wire.SubRequest) wire.SubRequest {
	return wire.SubRequest{Op: wire.OpMultiRead, Request: &wire.MultiRequest{Read: true, Ops: ops}}
}

// each sends requests one by one, reads each answer, and returns the last answer.
func (l *link) each(requests ...wire.SubRequest) *message {
	l.s.Helper()
	var m *message
	for _, r := range requests {
		m = l.do(r.Op, r.Request)
	}
	return m
}

// together sends requests in one write and then reads all answers.
func (l *link) together(requests ...wire.SubRequest) {
	l.s.Helper()
	l.send(requests...)
	l.answers(len(requests))
}
