package tree

import (
	"math"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Limit is one of the limits of a Config.
type Limit uint8

// The limits that a read may meet.
const (
	NoLimit    Limit = iota
	WatchLimit       // MaxWatches: BadArguments, and nothing is watched
	ReplyLimit       // MaxReply: MarshallingError
)

// Met returns the limit because of which a Read was refused since the last call, NoLimit if there is none.
func (t *Tree) Met() Limit {
	met := t.met
	t.met = NoLimit
	return met
}

// mayWatch reports whether c may have that many watches more, with that many bytes in their paths.
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
	t.met = WatchLimit
	return false
}

// The sizes of what replies consist of, in bytes.
const (
	lengthSize = 4 // before a text, data or a list
	statSize   = 68
	resultSize = 9 // before each result of a multi

	entrySize = 4 + 2*lengthSize // of an access list, beside its texts
)

// space returns how many bytes of lists or data a reply has room for beside one Stat.
func (t *Tree) space() int {
	if t.cfg.MaxReply <= 0 {
		return math.MaxInt
	}
	return t.cfg.MaxReply - lengthSize - statSize
}

// fits takes size bytes from space. It reports false if there are not that many.
func (t *Tree) fits(space *int, size int) bool {
	if *space -= size; *space >= 0 {
		return true
	}
	t.met = ReplyLimit
	return false
}

// Exceeds reports whether the answer to a read takes more than about size bytes, or as much work, without making it.
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
			return len(r.Path) > 1 // everything below a node is walked, the root's is known
		}
		n := t.lookup(r.Path)
		return op == wire.OpGetACL && n != nil && n.acl.size > size
	}
	return false
}

// nameSize is how many bytes a name has, about.
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
