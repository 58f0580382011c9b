package tree

import (
	"iter"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Tree is the state of one server.
type Tree struct{}

// New returns a tree that holds the system nodes and no session, at zxid 0.
func New(cfg Config) *Tree { return &Tree{} }

// Zxid returns the zxid of the last write, refused ones included.
func (t *Tree) Zxid() int64 { return 0 }

// Read serves the operations that change no node: exists, getData, getACL, getChildren, getChildren2, sync, getEphemerals,
// getAllChildrenNumber, whoAmI, multiRead, addWatch, checkWatches, removeWatches, setWatches, setWatches2. It registers
// what it is asked to watch. The events, which setWatches makes, belong before the reply. Any other operation is Unimplemented.
func (t *Tree) Read(c *Caller, op wire.Op, req wire.Record) (body wire.Record, code wire.Code, events []Fired) {
	return nil, wire.Unimplemented, nil
}

// IsRead reports whether op is one for Read.
func IsRead(op wire.Op) bool { return false }

// IsWrite reports whether op is one for Write that a client may send: create, create2, createContainer, createTTL, delete,
// setData, setACL, multi, closeSession.
func IsWrite(op wire.Op) bool { return false }

// Sees reports whether the answer to a read depends on a node of a path that dirty says true to. It is true for
// getEphemerals and getAllChildrenNumber, whose answer depends on many nodes.
func Sees(op wire.Op, req wire.Record, dirty func(path string) bool) bool { return true }

// Write applies create, create2, createContainer, createTTL, delete, setData, setACL, multi, closeSession (of c's session)
// and, if c is nil, deleteContainer, which is the collector's. at is the time in milliseconds since 1970. It keeps no
// reference to the memory of req's data. Any other operation is Unimplemented.
func (t *Tree) Write(zxid, at int64, c *Caller, op wire.Op, req wire.Record) Result {
	return Result{Code: wire.Unimplemented}
}

// CreateSession makes a session, or gives one that lives already another timeout.
func (t *Tree) CreateSession(zxid, id int64, timeoutMs int32) Result { return Result{} }

// CloseSession ends a session and deletes its ephemeral nodes. The code is SessionExpired if there is no such session.
func (t *Tree) CloseSession(zxid, at, id int64) Result { return Result{} }

// RemoveWatcher forgets all watches of a connection.
func (t *Tree) RemoveWatcher(w WatcherID) {}

// Containers returns the paths of the containers and TTL nodes that may be deleted at the given time (milliseconds since
// 1970), sorted. Each is to be deleted by a Write of deleteContainer, which checks again.
func (t *Tree) Containers(now int64) []string { return nil }

// PresetSequence makes next the number of path's next sequential child. It is there for tests, spends no zxid, and answers
// NoNode if there is no such node.
func (t *Tree) PresetSequence(path string, next int32) Result { return Result{} }

// Loader puts a tree together from the records of a store.
type Loader struct{}

// NewLoader returns a Loader of an empty tree: without any records, Tree returns what New does.
func NewLoader(cfg Config) *Loader { return &Loader{} }

// Session adds a session.
func (l *Loader) Session(id int64, timeoutMs int32) {}

// Node adds a node from its meta record. Parents come before their children, as in the order of paths. It keeps no reference to meta.
func (l *Loader) Node(path string, meta []byte) error { return nil }

// Data gives a node that was added already its data. It keeps no reference to data.
func (l *Loader) Data(path string, data []byte) error { return nil }

// Tree returns the tree as of zxid. Ephemeral nodes of sessions that were not added are dropped from it: the changes are
// what that means for the store.
func (l *Loader) Tree(zxid int64) (*Tree, []Change, error) { return nil, nil, nil }

// Stat returns what clients see of a node, and whether there is one.
func (t *Tree) Stat(path string) (wire.Stat, bool) { return wire.Stat{}, false }

// NodeCount returns the number of nodes, the root and the system nodes included.
func (t *Tree) NodeCount() int { return 0 }

// DataSize returns the number of bytes in all paths and data.
func (t *Tree) DataSize() int64 { return 0 }

// SessionTimeout returns a session's timeout in milliseconds, and whether it lives.
func (t *Tree) SessionTimeout(id int64) (int32, bool) { return 0, false }

// SessionCount returns the number of sessions.
func (t *Tree) SessionCount() int { return 0 }

// Sessions yields every session and its timeout in milliseconds, in order of their ids.
func (t *Tree) Sessions() iter.Seq2[int64, int32] { return nil }

// EphemeralCount returns the number of ephemeral nodes.
func (t *Tree) EphemeralCount() int { return 0 }

// Ephemerals returns the sorted paths of the ephemeral nodes of every session that has any.
func (t *Tree) Ephemerals() map[int64][]string { return nil }

// WatchSummary tells about the watches on data and existence: how many connections have any, on how many paths, how many there are.
func (t *Tree) WatchSummary() (connections, paths, total int) { return 0, 0, 0 }

// WatchCount returns the number of all watches, those on children included. A persistent watch counts twice: as one on
// data and as one on children.
func (t *Tree) WatchCount() int { return 0 }

// WatchesByPath returns the sorted connections that watch each path's data or existence.
func (t *Tree) WatchesByPath() map[string][]WatcherID { return nil }

// WatchesByWatcher returns the sorted paths whose data or existence each connection watches.
func (t *Tree) WatchesByWatcher() map[WatcherID][]string { return nil }
