package zktest

import (
	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Request describes one request of a client on its way to the server.
type Request struct {
	Op   Op
	Code int32 // the operation's number in the protocol; 0 for OpConnect

	// Nth counts the requests of this Op on all connections since the last call of Control, from 1.
	Nth int

	// Seq counts all requests except pings and handshakes, on all connections, since the last call of Control, from 1.
	// It is 0 for pings and handshakes. With it a test injects a fault at each step in turn.
	Seq int

	Path    string // the node; empty if the request names none or cannot be decoded
	Parts   []Part // the operations of a multi or multiRead
	Watch   bool   // whether the request is a read that sets a watch
	Session int64  // 0 for a handshake that asks for a new session
	Conn    int    // the connection, counted from 1
	Xid     int32  // the client's number for the request; 0 for OpConnect
}

// Part is one operation of a multi.
type Part struct {
	Op      Op
	Path    string
	Version int32 // the version that the node must have; -1 if any will do or the operation has none
}

// decodeRequest decodes a request's header and those parts of its body that Request has. It returns false if there is
// no valid header. It leaves it to the server to refuse an invalid body.
func decodeRequest(body []byte) (Request, bool) {
	d := jute.NewDecoder(body)
	var h wire.RequestHeader
	h.Decode(d)
	if d.Err() != nil {
		return Request{}, false
	}
	r := Request{Op: opOf(h.Op), Code: int32(h.Op), Xid: h.Xid}
	record := wire.NewRequest(h.Op)
	if record == nil {
		return r, true
	}
	if record.Decode(d); d.Err() != nil {
		return r, true
	}
	r.Path = pathOf(record)
	if read, ok := record.(*wire.PathWatchRequest); ok {
		r.Watch = read.Watch
	}
	if m, ok := record.(*wire.MultiRequest); ok {
		for _, s := range m.Ops {
			r.Parts = append(r.Parts, Part{Op: opOf(s.Op), Path: pathOf(s.Request), Version: versionOf(s.Request)})
		}
	}
	return r, true
}

func pathOf(record wire.Record) string {
	switch r := record.(type) {
	case *wire.PathRequest:
		return r.Path
	case *wire.PathWatchRequest:
		return r.Path
	case *wire.CreateRequest:
		return r.Path
	case *wire.CreateTTLRequest:
		return r.Path
	case *wire.DeleteRequest:
		return r.Path
	case *wire.CheckRequest:
		return r.Path
	case *wire.SetDataRequest:
		return r.Path
	case *wire.SetACLRequest:
		return r.Path
	case *wire.AddWatchRequest:
		return r.Path
	case *wire.WatcherTypeRequest:
		return r.Path
	case *wire.EphemeralsRequest:
		return r.Prefix
	default:
		return ""
	}
}

func versionOf(record wire.Record) int32 {
	switch r := record.(type) {
	case *wire.DeleteRequest:
		return r.Version
	case *wire.CheckRequest:
		return r.Version
	case *wire.SetDataRequest:
		return r.Version
	default:
		return -1
	}
}
