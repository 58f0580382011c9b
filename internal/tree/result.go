package tree

import (
	"iter"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Result is the outcome of a write. A refused write has no Changes and no Events; it has spent its zxid all the same.
type Result struct {
	Body    wire.Record // of the reply; nil if the operation is answered without one, or Code is not OK
	Code    wire.Code   // of the reply's header. A failed multi is OK here, its codes are in Body
	Events  []Fired     // in the order to be sent, all before the reply
	Changes []Change    // what to make durable, as one transaction together with the zxid
}

// Touched yields the path of every node whose state the write changed, the parents of created and deleted nodes included.
// A path may come twice.
func (r *Result) Touched() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.Changes {
			if r.Changes[i].Path != "" && !yield(r.Changes[i].Path) {
				return
			}
		}
	}
}

// Fired is an event for one connection. The reply header of the event carries Zxid: that of the write, or -1 for an event
// that setWatches made up for.
type Fired struct {
	Watcher WatcherID
	Event   wire.Event
	Zxid    int64
}

// ChangeKind says what a Change does to the store.
type ChangeKind uint8

// The kinds of changes. A node lives in two records of the store, so that a parent's data is not written again when only
// its counters move: its meta record, which every node has, and its data record, which is missing if the data is empty or
// null; the meta record says which.
const (
	PutNode       ChangeKind = iota + 1 // Value is the node's meta record
	PutData                             // Value is the node's data, at least one byte
	RemoveData                          // the node has no data: remove the data record, if there is one
	RemoveNode                          // remove both records, if they are there
	PutSession                          // Session lives, with Timeout
	RemoveSession                       // Session is gone
)

// Change is one durable effect of a write: one operation on one record of a key-value store. Order does not matter among
// the changes of one Result.
type Change struct {
	Kind    ChangeKind
	Path    string // the node's, "" for sessions
	Value   []byte
	Session int64
	Timeout int32 // milliseconds
}
