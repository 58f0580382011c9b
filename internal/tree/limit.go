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

// sizeOf returns how many bytes a result of multiRead takes.
func sizeOf(r *wire.MultiResult) int {
	switch r.Op {
	case wire.OpGetData:
		return resultSize + lengthSize + len(r.Data) + statSize
	case wire.OpGetChildren:
		size := resultSize + lengthSize
		for _, name := range r.Children {
			size += lengthSize + len(name)
		}
		return size
	default:
		return resultSize + lengthSize // a code
	}
}
