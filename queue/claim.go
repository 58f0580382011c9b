package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// nobody owns what was given back.
const nobody = "free"

// place is where an item stands in the order: smaller ones are served first.
type place struct{ priority, segment, item int }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(p.segment, o.segment), cmp.Compare(p.item, o.item))
}

// claim is a claim's node: whose it is, and for what, is in its name, so that a list of names tells who may be helped
// to what. Those of nobody have a directory of their own: a consumer that looks for items lists them each time, and
// those of the others only when one of the others has gone.
type claim struct {
	path string
	place
	owner string
	free  bool // given back, or its owner is gone
}

// claimName returns the name of a claim's node. Serial makes it one of its kind.
func claimName(p place, owner, serial string) string {
	return fmt.Sprintf("%s.%s.%s.%s.%s", lineName(p.priority), segment.Name(p.segment), segment.ItemName(p.item), owner, serial)
}

// parseClaim returns the claim whose node has that name in dir.
func parseClaim(dir, name string) (claim, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 {
		return claim{}, false
	}
	c := claim{path: dir + "/" + name, owner: parts[3]}
	var ok [3]bool
	c.priority, ok[0] = parseLine(parts[0])
	c.segment, ok[1] = segment.ParseName(parts[1])
	c.item, ok[2] = segment.ParseItem(parts[2])
	return c, ok[0] && ok[1] && ok[2]
}

// span is the data of a claim: which items of the segment it is for. Those that are not there any more are finished.
type span struct {
	First  int   `json:"first"`
	Last   int   `json:"last"`
	Handed int   `json:"handed"`           // the last one that was handed out, or may have been: these count as tried when the owner is gone
	Tries  int   `json:"tries,omitempty"`  // how often these items were handed out by earlier owners
	Except []int `json:"except,omitempty"` // those that were given back one by one

	Class string `json:"class,omitempty"` // what the segment's data says; "" if whoever made the claim did not know
}

func (s span) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot happen: every field marshals
	}
	return b
}

func parseSpan(data []byte) (span, bool) {
	var s span
	if json.Unmarshal(data, &s) != nil || s.First < 0 || s.Last < s.First || s.Last-s.First > 1<<20 || s.Tries < 0 {
		return span{}, false
	}
	return s, true
}

// split returns what of an orphaned claim was handed out and what was not.
func (s span) split() (tried, rest span) {
	tried, rest = s, s
	tried.Last, tried.Tries = min(s.Handed, s.Last), s.Tries+1
	rest.First = max(s.First, s.Handed+1)
	return tried, rest
}

func (s span) empty() bool { return s.Last < s.First }

func (s span) size() int { return s.Last - s.First + 1 }

// from returns what of a span stands at place n or behind it. None of it is handed out.
func (s span) from(n int) span {
	s.First = max(s.First, n)
	return s.upTo(s.Last)
}

// upTo returns what of a span stands at place n or before it. None of it is handed out.
func (s span) upTo(n int) span {
	s.Last, s.Handed = min(s.Last, n), s.First-1
	s.Except = slices.DeleteFunc(slices.Clone(s.Except), func(n int) bool { return n < s.First || n > s.Last })
	return s
}

// cut cuts a span into parts of the given size, the last of which may be smaller. Parts that are for no item are left
// out.
func (s span) cut(size int) []span {
	var list []span
	for !s.empty() {
		part := s.upTo(s.First + size - 1)
		s = s.from(part.Last + 1)
		if len(part.Except) < part.size() {
			list = append(list, part)
		}
	}
	return list
}

// items returns the numbers that the span is for.
func (s span) items() []int {
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
// Claims are listed before consumers, so that an owner who is missing is gone: nobody claims before being a consumer, and a
// consumer's node, once gone, does not come back under its name.
func (q *Queue) listClaims(ctx context.Context, sess *zk.Session) ([]claim, error) {
	b := sess.Batch()
	claims := b.Children(q.path(dirClaims))
	consumers := b.Children(q.path(dirConsumers))
	free := b.Children(q.path(dirFree)) // last: what is given back meanwhile is not missed
	b.Send()
	list, _, err := q.owned(ctx, claims, consumers)
	if err != nil {
		return nil, err
	}
	more, err := q.freed(free.Get(ctx))
	return inPlace(append(list, more...)), err
}

// owned returns the claims of consumers, and how many consumers there are.
func (q *Queue) owned(ctx context.Context, claims, consumers *zk.Future[zk.Children]) ([]claim, int, error) {
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
		if c, ok := parseClaim(q.path(dirClaims), name); ok {
			c.free = !live[c.owner]
			list = append(list, c)
		}
	}
	return list, len(live), nil
}

// freed returns the claims of nobody.
func (q *Queue) freed(names zk.Children, err error) ([]claim, error) {
	var list []claim
	for _, name := range names.Names {
		if c, ok := parseClaim(q.path(dirFree), name); ok {
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

// freePath returns the path of a new claim of nobody, which begins at a place.
func (d *desk) freePath(at place) string {
	return d.q.path(dirFree, claimName(at, nobody, d.nextSerial()))
}
