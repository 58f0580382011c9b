package tree

// Limits of watches and replies.

import (
	"math"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Limit names one of the limits of a Config.
type Limit uint8

// The limits that a request may meet.
const (
	NoLimit    Limit = iota
	WatchLimit       // MaxWatches: BadArguments, and nothing is watched
	ReplyLimit       // MaxReply: MarshallingError
	ListLimit        // MaxLists: MarshallingError
	EventLimit       // MaxEvents, met by a multi with many changes: MarshallingError
)

// TakeLimit returns the limit that made Read or Write refuse a request since the last call, NoLimit if none did.
func (t *Tree) TakeLimit() Limit {
	limit := t.limitHit
	t.limitHit = NoLimit
	return limit
}

// mayWatch reports whether c may add that many watches, with that many bytes in their paths.
func (t *Tree) mayWatch(c *Caller, more, bytes int) bool {
	if c == nil || t.cfg.MaxWatches <= 0 {
		return true
	}
	if by := t.watchers[c.Watcher]; by != nil {
		more += by.count
		bytes += by.bytes
	}
	if more <= t.cfg.MaxWatches && bytes <= t.cfg.MaxWatches*t.cfg.WatchPath {
		return true
	}
	t.limitHit = WatchLimit
	return false
}

// The sizes of the parts of replies, in bytes.
const (
	lengthSize = 4 // before a string, a buffer or a list
	statSize   = 68
	resultSize = 9 // before each result of a multi

	entrySize = 4 + 2*lengthSize // of an access list, without its strings
)

// space returns how many bytes of lists or data fit into a reply beside one Stat.
func (t *Tree) space() int {
	if t.cfg.MaxReply <= 0 {
		return math.MaxInt
	}
	return t.cfg.MaxReply - lengthSize - statSize
}

// fits subtracts size from space. It reports false if the result is negative.
func (t *Tree) fits(space *int, size int) bool {
	if *space -= size; *space >= 0 {
		return true
	}
	t.limitHit = ReplyLimit
	return false
}

// Exceeds estimates whether the answer to a read takes more than size bytes, or that much work, without building it.
// For a write it estimates whether that many bytes of access lists must be stored again.
func (t *Tree) Exceeds(c *Caller, op wire.Op, req wire.Record, size int) bool {
	if IsWrite(op) {
		return t.mayStoreLists(c) && t.stored(c, req, &size) < 0
	}
	switch r := req.(type) {
	case *wire.PathWatchRequest:
		return t.answerSize(op, r) > size
	case *wire.MultiRequest:
		for i := range r.Ops {
			if q, ok := r.Ops[i].Request.(*wire.PathWatchRequest); ok && q != nil {
				size -= t.answerSize(r.Ops[i].Op, q)
			}
			if size -= resultSize; size < 0 {
				return true
			}
		}
	case *wire.SetWatchesRequest:
		n, bytes := demand(r)
		return n*watchCost+bytes > size
	case *wire.EphemeralsRequest:
		s := t.sessions[c.Session]
		return s != nil && len(s.nodes)*nameSize > size
	case *wire.PathRequest:
		n := t.lookup(r.Path)
		switch {
		case n == nil:
		case op == wire.OpGetAllChildren:
			return len(r.Path) > 1 && len(n.children) > 0 // the root's count is known; any other path needs a walk
		case op == wire.OpGetACL:
			return n.acl.size > size
		}
	case *wire.Empty:
		return op == wire.OpWhoAmI && int(c.Kept.Load()) > size
	}
	return false
}

// longList is the size of an access list in bytes below which nobody looks how often it is stored.
const longList = 4 << 10

// mayStoreLists reports whether there is any long list that a write of c may store.
func (t *Tree) mayStoreLists(c *Caller) bool { return t.longLists || c.Kept.Load() > longList }

// stored subtracts the bytes of the access lists that a write stores without containing them from *left, until the
// result is negative, and returns it.
func (t *Tree) stored(c *Caller, req wire.Record, left *int) int {
	path, parent := "", ""
	var list []wire.ACL
	switch r := req.(type) {
	case *wire.CreateRequest:
		parent, list = r.Path, r.ACL
	case *wire.CreateTTLRequest:
		parent, list = r.Path, r.ACL
	case *wire.DeleteRequest:
		parent = r.Path
	case *wire.SetDataRequest:
		path = r.Path
	case *wire.SetACLRequest:
		list = r.ACL
	case *wire.MultiRequest:
		for i := 0; i < len(r.Ops) && *left >= 0; i++ {
			t.stored(c, r.Ops[i].Request, left)
		}
	}
	if n := t.nodes[path]; n != nil {
		*left -= n.acl.size
	}
	if addressable(parent) {
		if n := t.parentOf(parent); n != nil {
			*left -= n.acl.size
		}
	}
	for _, e := range list {
		if e.ID.Scheme == "auth" {
			*left -= int(c.Kept.Load())
		}
	}
	return *left
}

// nameSize is the estimated size of a node's name in bytes.
const nameSize = 64

func (t *Tree) answerSize(op wire.Op, r *wire.PathWatchRequest) int {
	if r == nil || op == wire.OpExists {
		return 0
	}
	n := t.lookup(r.Path)
	switch {
	case n == nil:
		return 0
	case op == wire.OpGetData:
		return len(n.data)
	default:
		return len(n.children) * nameSize
	}
}
