package claims

// Which items a claim is for, and where they are.

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
)

// Place is where an item stands in the order: smaller places are served first.
type Place struct{ Priority, Segment, Item int }

// PlaceOf returns the place of a cursor in the ready list of a priority.
func PlaceOf(priority int, at segment.Cursor) Place { return Place{priority, at.Segment, at.Item} }

// Compare returns a negative number if p is served before o, a positive one if after, and 0 if they are the same.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Priority, o.Priority), cmp.Compare(p.Segment, o.Segment), cmp.Compare(p.Item, o.Item))
}

// At returns the place of another item of the same segment.
func (p Place) At(item int) Place {
	p.Item = item
	return p
}

// Range is the data of a claim: which items of the segment it is for. Those that do not exist any more are finished.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
	// Delivered is the last item that was delivered, or may have been: if the owner is gone, these count as tried.
	Delivered int   `json:"handed"`
	Tries     int   `json:"tries,omitempty"`  // how often earlier owners delivered these items
	Except    []int `json:"except,omitempty"` // items that were given back one by one

	Class string `json:"class,omitempty"` // the segment's data; "" if the consumer that made the claim did not know it
}

// Encode returns the data of a claim's node.
func (s Range) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot happen: every field marshals
	}
	return b
}

// maxRange is how many items a claim may have. It is far more than a segment takes.
const maxRange = 1 << 14

// ParseRange reads a claim's data, and returns false if it is not that of one. Another program may have written it: no
// number in what it returns overflows, and it is no larger than what a consumer writes.
func ParseRange(data []byte) (Range, bool) {
	var s Range
	if json.Unmarshal(data, &s) != nil || s.First < 0 || s.Last < s.First || s.Last >= math.MaxInt32 ||
		s.Size() > maxRange || s.Tries < 0 || s.Tries >= math.MaxInt32 {
		return Range{}, false
	}
	s.Delivered = min(max(s.Delivered, s.First-1), s.Last)
	s.Class = segment.Class(s.Class)
	slices.Sort(s.Except)
	s.Except = slices.DeleteFunc(slices.Compact(s.Except), func(n int) bool { return n < s.First || n > s.Last })
	return s, true
}

// Split returns the part of an orphaned claim that was delivered and the part that was not.
func (s Range) Split() (tried, rest Range) {
	tried, rest = s, s
	tried.Last, tried.Tries = min(s.Delivered, s.Last), min(s.Tries+1, math.MaxInt32-1)
	rest.First = max(s.First, s.Delivered+1)
	return tried, rest
}

// Empty reports whether the range has no items.
func (s Range) Empty() bool { return s.Last < s.First }

// Size returns how many items the range has, with those that it excepts.
func (s Range) Size() int { return s.Last - s.First + 1 }

// From returns the part of a range from place n on, of which nothing is delivered.
func (s Range) From(n int) Range {
	s.First = max(s.First, n)
	return s.UpTo(s.Last)
}

// UpTo returns the part of a range up to place n, of which nothing is delivered.
func (s Range) UpTo(n int) Range {
	s.Last, s.Delivered = min(s.Last, n), s.First-1
	s.Except = slices.DeleteFunc(slices.Clone(s.Except), func(n int) bool { return n < s.First || n > s.Last })
	return s
}

// Cut cuts a range into parts of the given size, the last of which may be smaller. It leaves out parts without items.
func (s Range) Cut(size int) []Range {
	var list []Range
	for !s.Empty() {
		part := s.UpTo(s.First + size - 1)
		s = s.From(part.Last + 1)
		if len(part.Except) < part.Size() {
			list = append(list, part)
		}
	}
	return list
}

// Items returns the numbers of the range's items.
func (s Range) Items() []int {
	var list []int
	for n := s.First; n <= s.Last; n++ {
		if !slices.Contains(s.Except, n) {
			list = append(list, n)
		}
	}
	return list
}

// TriesOf returns how many deliveries of an item the range counts beside the item itself: that of the owner, too, if
// owned is set.
func (s Range) TriesOf(seq int, owned bool) int {
	if owned && seq <= s.Delivered {
		return s.Tries + 1
	}
	return s.Tries
}

// except returns the range without an item.
func (s Range) except(seq int) Range {
	s.Except = append(slices.Clone(s.Except), seq)
	return s
}
