package wire

// Events, and the requests about watches.

import "github.com/seed-a3166700/turnstile/internal/jute"

// EventType says what happened to a watched node.
type EventType int32

// Event types. The last three never travel: clients make them for themselves.
const (
	EventNone                   EventType = -1
	EventCreated                EventType = 1
	EventDeleted                EventType = 2
	EventDataChanged            EventType = 3
	EventChildrenChanged        EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// StateSyncConnected is the only connection state that servers put into events.
const StateSyncConnected int32 = 3

// Event is a server's message that a watch has fired. It follows a ReplyHeader with XidNotification.
type Event struct {
	Type  EventType
	State int32
	Path  string
}

// Append appends e to b.
func (e *Event) Append(b []byte) []byte {
	return jute.AppendString(jute.AppendInt(jute.AppendInt(b, int32(e.Type)), e.State), e.Path)
}

// Decode fills e from d.
func (e *Event) Decode(d *jute.Decoder) {
	e.Type, e.State, e.Path = EventType(d.Int()), d.Int(), d.String()
}

// SetWatchesRequest puts watches back after a reconnect. Two selects the form of setWatches2.
type SetWatchesRequest struct {
	Two                         bool
	RelativeZxid                int64
	Data, Exist, Child          []string
	Persistent, PersistentRecur []string
}

// Append appends r to b.
func (r *SetWatchesRequest) Append(b []byte) []byte {
	b = jute.AppendStrings(jute.AppendLong(b, r.RelativeZxid), r.Data)
	b = jute.AppendStrings(jute.AppendStrings(b, r.Exist), r.Child)
	if r.Two {
		b = jute.AppendStrings(jute.AppendStrings(b, r.Persistent), r.PersistentRecur)
	}
	return b
}

// Decode fills r from d; r.Two must be set before.
func (r *SetWatchesRequest) Decode(d *jute.Decoder) {
	r.RelativeZxid = d.Long()
	r.Data, r.Exist, r.Child = d.RequiredStrings(), d.RequiredStrings(), d.RequiredStrings()
	if r.Two {
		r.Persistent, r.PersistentRecur = d.RequiredStrings(), d.RequiredStrings()
	}
}

// Modes of addWatch.
const (
	WatchPersistent          int32 = 0
	WatchPersistentRecursive int32 = 1
)

// AddWatchRequest sets a watch that stays. It is answered with an ErrorResponse of 0.
type AddWatchRequest struct {
	Path string
	Mode int32
}

// Append appends r to b.
func (r *AddWatchRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), r.Mode)
}

// Decode fills r from d.
func (r *AddWatchRequest) Decode(d *jute.Decoder) { r.Path, r.Mode = d.Required(), d.Int() }

// Watcher types of checkWatches and removeWatches.
const (
	WatcherChildren            int32 = 1
	WatcherData                int32 = 2
	WatcherAny                 int32 = 3
	WatcherPersistent          int32 = 4 // since 3.9
	WatcherPersistentRecursive int32 = 5 // since 3.9
)

// WatcherTypeRequest is the body of checkWatches and removeWatches.
type WatcherTypeRequest struct {
	Path string
	Type int32
}

// Append appends r to b.
func (r *WatcherTypeRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), r.Type)
}

// Decode fills r from d.
func (r *WatcherTypeRequest) Decode(d *jute.Decoder) { r.Path, r.Type = d.Required(), d.Int() }

// ErrorResponse is a bare code: the answer of addWatch and the body of a failed operation in a multi.
type ErrorResponse struct{ Err Code }

// Append appends r to b.
func (r *ErrorResponse) Append(b []byte) []byte { return jute.AppendInt(b, int32(r.Err)) }

// Decode fills r from d.
func (r *ErrorResponse) Decode(d *jute.Decoder) { r.Err = Code(d.Int()) }
