package segment

// Names and cursors.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

// Name returns the name of the n-th segment of a list.
func Name(n int) string { return fmt.Sprintf("s%010d", n) }

// ParseName returns the number of the segment with that name, and false if it is not the name of a segment.
func ParseName(name string) (int, bool) { return Number(name, "s", Name) }

// ItemName returns the name that the server gives the item with that sequence number.
func ItemName(seq int) string { return fmt.Sprintf("%010d", seq) }

// ParseItem returns the sequence number of the item with that name, and false if it is not the name of an item.
func ParseItem(name string) (int, bool) { return Number(name, "", ItemName) }

// maxNumber is the largest number in a name. Those of temporary lists begin at up to 1<<60, and count up from there.
const maxNumber = 1 << 62

// Number returns the number behind prefix in a name that format makes of it. It returns false for any other name, also
// if a number is in it: the node then belongs to another program, and a path made of the number would not be its own.
func Number(name, prefix string, format func(int) string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
	return n, err == nil && n >= 0 && n <= maxNumber && format(n) == name
}

// Numbers returns the numbers that parse finds in names, in increasing order. It leaves out names without one.
func Numbers(names []string, parse func(string) (int, bool)) []int {
	var list []int
	for _, name := range names {
		if n, ok := parse(name); ok {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// Creations returns how many children were ever created under a node, which is the sequence number of the next one.
// The server reports twice that number, less the children that exist, as Cversion.
func Creations(s zk.Stat) int { return (int(s.Cversion) + int(s.NumChildren)) / 2 }

// Cursor is the data of a list whose items are claimed in order: everything before it was claimed.
type Cursor struct {
	Segment int
	Item    int // its sequence number in the segment
}

// Encode returns the cursor as it is stored.
func (c Cursor) Encode() []byte {
	return []byte(strconv.Itoa(c.Segment) + " " + strconv.Itoa(c.Item))
}

// ParseCursor reads a stored cursor. It returns false if data is not one.
func ParseCursor(data []byte) (Cursor, bool) {
	a, b, _ := strings.Cut(string(data), " ")
	segment, err1 := strconv.Atoi(a)
	item, err2 := strconv.Atoi(b)
	return Cursor{segment, item}, err1 == nil && err2 == nil && segment > 0 && segment <= maxNumber && item >= 0
}
