package queue

// The nodes of claims.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// freeOwner stands for the owner of a claim that was given back.
const freeOwner = "free"

// place is where an item stands in the order: smaller places are served first.
type place struct{ priority, segment, item int }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(p.segment, o.segment), cmp.Compare(p.item, o.item))
}

// claim is a claim's node: its name tells its owner and where it begins, so that a list of names tells which claims
// may be taken over. Free claims have a directory of their own: a consumer that looks for items lists them each time,
// and the claims of other consumers only when one of those has gone.
type claim struct {
	path string
	place
	owner string
	free  bool // given back, or its owner is gone
}

// claimName returns the name of a claim's node. Serial makes it unique.
func claimName(p place, owner, serial string) string {
	return fmt.Sprintf("%s.%s.%s.%s.%s",
		priorityName(p.priority), segment.Name(p.segment), segment.ItemName(p.item), owner, serial)
}

// parseClaim returns the claim with that name in dir, and false if it is not the name of one.
func parseClaim(dir, name string) (claim, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 {
		return claim{}, false
	}
	c := claim{path: dir + "/" + name, owner: parts[3]}
	var ok [3]bool
	c.priority, ok[0] = parsePriority(parts[0])
	c.segment, ok[1] = segment.ParseName(parts[1])
	c.item, ok[2] = segment.ParseItem(parts[2])
	return c, ok[0] && ok[1] && ok[2]
}

// itemRange is the data of a claim: which items of the segment it is for. Those that do not exist any more are
// finished.
type itemRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
	// Delivered is the last item that was delivered, or may have been: if the owner is gone, these count as tried.
	Delivered int   `json:"handed"`
	Tries     int   `json:"tries,omitempty"`  // how often earlier owners delivered these items
	Except    []int `json:"except,omitempty"` // items that were given back one by one

	Class string `json:"class,omitempty"` // the segment's data; "" if the consumer that made the claim did not know it
}

func (s itemRange) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot happen: every field marshals
	}
	return b
}

// maxRange is how many items a claim may have. It is far more than a segment takes.
const maxRange = 1 << 14

// parseRange reads a claim's data. Another program may have written it: no number in what it returns overflows, and it
// is no larger than what a consumer writes.
func parseRange(data []byte) (itemRange, bool) {
	var s itemRange
	if json.Unmarshal(data, &s) != nil || s.First < 0 || s.Last < s.First || s.Last >= math.MaxInt32 ||
		s.size() > maxRange || s.Tries < 0 || s.Tries >= math.MaxInt32 {
		return itemRange{}, false
	}
	s.Delivered = min(max(s.Delivered, s.First-1), s.Last)
	s.Class = segment.Class(s.Class)
	slices.Sort(s.Except)
	s.Except = slices.DeleteFunc(slices.Compact(s.Except), func(n int) bool { return n < s.First || n > s.Last })
	return s, true
}

// split returns the part of an orphaned claim that was delivered and the part that was not.
func (s itemRange) split() (tried, rest itemRange) {
	tried, rest = s, s
	tried.Last, tried.Tries = min(s.Delivered, s.Last), min(s.Tries+1, math.MaxInt32-1)
	rest.First = max(s.First, s.Delivered+1)
	return tried, rest
}

func (s itemRange) empty() bool { return s.Last < s.First }

func (s itemRange) size() int { return s.Last - s.First + 1 }

// from returns the part of a range from place n on, of which nothing is delivered.
func (s itemRange) from(n int) itemRange {
	s.First = max(s.First, n)
	return s.upTo(s.Last)
}

// upTo returns the part of a range up to place n, of which nothing is delivered.
func (s itemRange) upTo(n int) itemRange {
	s.Last, s.Delivered = min(s.Last, n), s.First-1
	s.Except = slices.DeleteFunc(slices.Clone(s.Except), func(n int) bool { return n < s.First || n > s.Last })
	return s
}

// cut cuts a range into parts of the given size, the last of which may be smaller. It leaves out parts without items.
func (s itemRange) cut(size int) []itemRange {
	var list []itemRange
	for !s.empty() {
		part := s.upTo(s.First + size - 1)
		s = s.from(part.Last + 1)
		if len(part.Except) < part.size() {
			list = append(list, part)
		}
	}
	return list
}

// items returns the numbers of the range's items.
func (s itemRange) items() []int {
	var list []int
	for n := s.First; n <= s.Last; n++ {
		if !slices.Contains(s.Except, n) {
			list = append(list, n)
		}
	}
	return list
}

// listClaims lists all claims in the order of their places.
//
// It lists claims before consumers, so that an owner that is missing is gone: no consumer claims before its node
// exists, and once that is gone it does not come back under its name.
func (y *layout) listClaims(ctx context.Context, sess *zk.Session) ([]claim, error) {
	b := sess.Batch()
	claims := b.Children(y.path(dirClaims))
	consumers := b.Children(y.path(dirConsumers))
	free := b.Children(y.path(dirFree)) // last, so that it does not miss what is given back meanwhile
	b.Send()
	list, _, err := y.owned(ctx, claims, consumers)
	if err != nil {
		return nil, err
	}
	more, err := y.freed(free.Get(ctx))
	return inPlace(append(list, more...)), err
}

// owned returns the claims of consumers, and how many consumers there are.
func (y *layout) owned(ctx context.Context, claims, consumers *zk.Future[zk.Children]) ([]claim, int, error) {
	names, err := claims.Get(ctx)
	if err != nil {
		return nil, 0, err
	}
	alive, err := consumers.Get(ctx)
	if err != nil {
		return nil, 0, err
	}
	live := make(map[string]bool, len(alive.Names))
	for _, name := range alive.Names {
		live[name] = true
	}
	var list []claim
	for _, name := range names.Names {
		if c, ok := parseClaim(y.path(dirClaims), name); ok {
			c.free = !live[c.owner]
			list = append(list, c)
		}
	}
	return list, len(live), nil
}

// freed returns the free claims.
func (y *layout) freed(names zk.Children, err error) ([]claim, error) {
	var list []claim
	for _, name := range names.Names {
		if c, ok := parseClaim(y.path(dirFree), name); ok {
			c.free = true
			list = append(list, c)
		}
	}
	return list, err
}

func inPlace(list []claim) []claim {
	slices.SortFunc(list, func(a, b claim) int { return a.compare(b.place) })
	return list
}

// freePath returns the path of a new free claim that begins at a place.
func (co *consumer) freePath(at place) string {
	return co.d.layout.path(dirFree, claimName(at, freeOwner, co.nextSerial()))
}
