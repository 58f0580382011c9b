package counter

// Layouts: how a node holds a number.

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/seed-a3166700/turnstile/zk"
)

// Layout is how a node holds a number. All programs that use a node must use the same.
type Layout int

// The layouts.
const (
	// Long is eight bytes, big-endian: that of Curator's DistributedAtomicLong and CachedAtomicLong. Those also read,
	// and replace, longer data that begins with any eight bytes. Here that is ErrUnreadable: it is no number of theirs.
	Long Layout = iota
	// Int is four bytes, big-endian: that of Curator's SharedCount and DistributedAtomicInteger, and of kazoo's Counter
	// with support_curator. Its values are from -2,147,483,648 to 2,147,483,647.
	Int
	// Text is decimal ASCII: that of kazoo's Counter.
	Text
)

const (
	longSize = 8
	intSize  = 4
)

// String returns the layout's name.
func (l Layout) String() string {
	switch l {
	case Long:
		return "Long"
	case Int:
		return "Int"
	case Text:
		return "Text"
	default:
		return fmt.Sprintf("Layout(%d)", int(l))
	}
}

func (l Layout) check() error {
	if l < Long || l > Text {
		return fmt.Errorf("counter: %w: unknown Layout %d; use Long, Int or Text", zk.BadArguments, int(l))
	}
	return nil
}

// fits reports whether the layout has the value.
func (l Layout) fits(v int64) bool {
	return l != Int || v >= math.MinInt32 && v <= math.MaxInt32
}

// largest is the layout's largest value.
func (l Layout) largest() int64 {
	if l == Int {
		return math.MaxInt32
	}
	return math.MaxInt64
}

// decode reads a number. Nothing is 0: kazoo makes its node empty at first.
func (l Layout) decode(path string, data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case l == Long && len(data) == longSize:
		return int64(binary.BigEndian.Uint64(data)), nil
	case l == Int && len(data) == intSize:
		return int64(int32(binary.BigEndian.Uint32(data))), nil
	case l == Text:
		if v, err := strconv.ParseInt(string(data), 10, 64); err == nil {
			return v, nil
		}
	}
	return 0, &UnreadableError{Path: path, Layout: l, Data: data}
}

// encode writes a number that fits.
func (l Layout) encode(v int64) []byte {
	switch l {
	case Int:
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	case Text:
		return strconv.AppendInt(nil, v, 10)
	default:
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	}
}
