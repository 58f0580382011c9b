package tree

// Limits of watches and replies.

import (
	"math"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Limit names one of the limits of a Config.
type Limit uint8

// The limits that a read may meet.
const (
	NoLimit    Limit = iota
	WatchLimit       // MaxWatches: BadArguments, and nothing is watched
	ReplyLimit       // MaxReply: MarshallingError
)

// TakeLimit returns the limit that made Read refuse a request since the last call, NoLimit if none did.
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
func (t *Tree) Exceeds(c *Caller, op wire.Op, req wire.Record, size int) bool {
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
		if op == wire.OpGetAllChildren {
			return len(r.Path) > 1 // the root's count is known; any other path needs a walk
		}
		n := t.lookup(r.Path)
		return op == wire.OpGetACL && n != nil && n.acl.size > size
	}
	return false
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
