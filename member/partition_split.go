package member

// Which member gets which items.

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
)

// keys returns the members' keys, and which one is that of the member whose node is given; -1 if it is not there. Keys
// are ids, so that a program which is restarted gets the same items again. Members with the same id are numbered.
func keys(members []Member, node string) (list []string, self int) {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(path.Base(a.Node), path.Base(b.Node)))
	})
	self = -1
	same := 0
	for i, m := range members {
		if same++; i == 0 || members[i-1].ID != m.ID {
			same = 0
		}
		key := m.ID
		if same > 0 {
			key = fmt.Sprintf("%s\x00%d", m.ID, same)
		}
		list = append(list, key)
		if m.Node == node {
			self = i
		}
	}
	return list, self
}

// share returns the items of the member with the index self. Items are sorted, each once, and so are the members.
func (s Split) share(items, members []string, self int) []string {
	var mine []string
	if s == SetPartitioner {
		for i := self; i < len(items); i += len(members) {
			mine = append(mine, items[i])
		}
		return mine
	}
	for i, m := range even(items, members) {
		if m == self {
			mine = append(mine, items[i])
		}
	}
	return mine
}

// score says how much a member wants an item, and the item the member.
func score(member uint64, item uint64) uint64 {
	// The finalizer of MurmurHash3: every bit of the input changes half of those of the output.
	x := member ^ item
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hash is the same in every program and at every time.
func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return score(h.Sum64(), 0)
}

// evenBelow is up to how many items each that members have equally many.
const evenBelow = 100

// even returns the index of the member for each item. All that are given the same members and items get the same
// result.
//
// Each item goes to the member with the highest score for it (rendezvous hashing), so that of the others' items none
// moves when a member comes or goes. Members take most of what they want if they cannot have all: items and members are
// matched so that no item and no member both would rather have each other (Gale and Shapley). Then those that have too
// few get the items that they want most, of members that can spare them.
func even(items, members []string) []int {
	n, m := len(items), len(members)
	owner := make([]int, n)
	if m == 0 {
		return owner
	}
	limit, least := (n+m-1)/m, n/m
	if least >= evenBelow { // a tenth of the mean, rounded towards it
		limit, least = max(limit, 11*n/(10*m)), min(least, (9*n+10*m-1)/(10*m))
	}
	hashes := make([]uint64, m)
	for i, member := range members {
		hashes[i] = hash(member)
	}
	wants := make([]uint64, n) // the items' hashes
	for i, item := range items {
		wants[i] = hash(item)
	}

	held := make([][]int, m) // a heap of items by their score, the lowest first
	lower := func(member, a, b int) bool {
		x, y := score(hashes[member], wants[a]), score(hashes[member], wants[b])
		return x < y || x == y && a < b
	}
	free := slices.Grow([]int(nil), n)
	for i := range n {
		free = append(free, n-1-i)
	}
	// after reports whether an item wants a member less than the one that it has asked last: those that it wants more
	// have refused it.
	asked := make([]bool, n)
	after := func(item, member int) bool {
		last := owner[item]
		x, y := score(hashes[member], wants[item]), score(hashes[last], wants[item])
		return !asked[item] || x < y || x == y && member > last
	}
	for len(free) > 0 {
		item := free[len(free)-1]
		free = free[:len(free)-1]
		best, most := -1, uint64(0)
		for i := range members {
			if x := score(hashes[i], wants[item]); (best < 0 || x > most) && after(item, i) {
				best, most = i, x
			}
		}
		owner[item], asked[item] = best, true
		held[best] = push(held[best], item, func(a, b int) bool { return lower(best, a, b) })
		if len(held[best]) > limit {
			var out int
			held[best], out = pop(held[best], func(a, b int) bool { return lower(best, a, b) })
			free = append(free, out)
		}
	}

	count := make([]int, m)
	for i := range held {
		count[i] = len(held[i])
	}
	var spare []int // a heap of items that the others can spare, the one that poor wants most first
	for poor := range members {
		higher := func(a, b int) bool {
			x, y := score(hashes[poor], wants[a]), score(hashes[poor], wants[b])
			return x > y || x == y && a < b
		}
		spare = spare[:0]
		for item, rich := range owner {
			if count[poor] < least && count[rich] > least {
				spare = push(spare, item, higher)
			}
		}
		for len(spare) > 0 && count[poor] < least {
			var item int
			spare, item = pop(spare, higher)
			if rich := owner[item]; count[rich] > least {
				owner[item] = poor
				count[rich]--
				count[poor]++
			}
		}
	}
	return owner
}

// push and pop keep a binary heap.
func push(h []int, x int, less func(a, b int) bool) []int {
	h = append(h, x)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !less(h[i], h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	return h
}

func pop(h []int, less func(a, b int) bool) ([]int, int) {
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		low := i
		for _, c := range []int{2*i + 1, 2*i + 2} {
			if c < last && less(h[c], h[low]) {
				low = c
			}
		}
		if low == i {
			return h, first
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}
