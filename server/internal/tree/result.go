package tree

// What a write returns: events and changes.

import (
	"iter"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Result is the outcome of a write. A refused write has no Changes and no Events, but has used its zxid all the same.
type Result struct {
	Body    wire.Record // of the reply; nil if the operation has none, or Code is not OK
	Code    wire.Code   // of the reply's header; OK for a failed multi, whose codes are in Body
	Events  []Fired     // in the order in which to send them, all before the reply
	Changes []Change    // to make durable as one transaction, together with the zxid
	// Cut are connections to close, because there are more events than Config.MaxEvents. They have lost events.
	Cut []WatcherID
}

// Touched yields the path of every node whose state the write changed, the parents of created and deleted nodes
// included. It may yield a path twice.
func (r *Result) Touched() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.Changes {
			if r.Changes[i].Path != "" && !yield(r.Changes[i].Path) {
				return
			}
		}
	}
}

// Fired is an event for one connection. Zxid goes into the event's reply header: that of the write, or -1 if setWatches
// made the event.
type Fired struct {
	Watcher WatcherID
	Event   wire.Event
	Zxid    int64
}

// ChangeKind says what a Change does to the store.
type ChangeKind uint8

// The kinds of changes. A node has two records in the store, so that a change of a parent's counters does not write the
// parent's data again. Every node has a meta record. The data record is missing if the data is empty or null; the meta
// record says which.
const (
	PutNode       ChangeKind = iota + 1 // Value is the node's meta record
	PutData                             // Value is the node's data, at least one byte
	RemoveData                          // the node has no data: remove the data record, if any
	RemoveNode                          // remove both records, if any
	PutSession                          // Session is alive, with Timeout
	RemoveSession                       // Session is gone
)

// Change is one durable effect of a write: one operation on a key-value store. The changes of one Result may be applied
// in any order.
type Change struct {
	Kind    ChangeKind
	Path    string // the node's, "" for sessions
	Value   []byte
	Session int64
	Timeout int32 // milliseconds
}
