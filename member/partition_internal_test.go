package member

// Which member gets which items.

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func names(kind string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%05d", kind, i)
	}
	return list
}

// Promise: 20
func TestSharesAreEvenAndComplete(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 7, 10, 32, 99, 100, 101, 305, 1000, 1009, 10000} {
		for _, m := range []int{1, 2, 3, 5, 10, 17} {
			items, members := names("item", n), names("member", m)
			for _, split := range []Split{Even, SetPartitioner} {
				var all []string
				mean := float64(n) / float64(m)
				for i := range members {
					mine := split.share(items, members, i)
					equal := len(mine) >= n/m && len(mine) <= (n+m-1)/m
					near := split == Even && n/m >= 100 && math.Abs(float64(len(mine))-mean) <= mean/10
					if !equal && !near {
						t.Errorf("%v: %d of %d items for one of %d members", split, len(mine), n, m)
					}
					all = append(all, mine...)
				}
				slices.Sort(all)
				if !slices.Equal(all, items) {
					t.Errorf("%v: %d items among %d members: not each once", split, n, m)
				}
			}
		}
	}
}

// moves returns how many items change their owner, and how many must at least.
func moves(items, before, after []string) (moved, least int) {
	a, b := even(items, before), even(items, after)
	for i := range items {
		if before[a[i]] != after[b[i]] {
			moved++
		}
		if !slices.Contains(after, before[a[i]]) {
			least++
		}
	}
	return moved, max(least, (len(after)-len(before))*len(items)/len(after))
}

// Promise: 20
func TestFewItemsMoveWhenAMemberComesOrGoes(t *testing.T) {
	t.Parallel()
	items, members := names("item", 10000), names("member", 10)
	for i := range members {
		rest := slices.Delete(slices.Clone(members), i, i+1)
		for _, c := range [][2][]string{{members, rest}, {rest, members}} {
			if moved, least := moves(items, c[0], c[1]); float64(moved) > 1.2*float64(least) {
				t.Errorf("%d items move from %d to %d members, at least %d must", moved, len(c[0]), len(c[1]), least)
			}
		}
	}
}

// Promise: 20
func TestMembersWithOneIDGetDifferentItems(t *testing.T) {
	t.Parallel()
	members := []Member{{ID: "b", Node: "/p/1-b"}, {ID: "a", Node: "/p/2-a"}, {ID: "a", Node: "/p/0-a"}}
	for want, node := range []string{"/p/0-a", "/p/2-a", "/p/1-b"} {
		list, self := keys(members, node)
		if self != want || len(slices.Compact(list)) != 3 {
			t.Errorf("%s has index %d in %q, want %d", node, self, list, want)
		}
	}
	if _, self := keys(members, "/p/3-c"); self != -1 {
		t.Errorf("index %d without a node", self)
	}
}
