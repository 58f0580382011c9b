package lock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// contenders returns so many at random, in the order of the line, with their entries in it.
func contenders(r *rand.Rand, n int, markers []line.Marker) ([]Contender, []line.Contender) {
	var names []line.Contender
	for i := range n {
		m := markers[r.IntN(len(markers))]
		prefix := ""
		if m != line.SupportOffer {
			prefix = fmt.Sprintf("_c_6f9619ff-8b86-%d011-b42d-00c04fc9%04x-", 4+4*r.IntN(2), i)
		}
		c, ok := line.ParseContender(fmt.Sprintf("%s%s%010d", prefix, m, i), line.Every)
		if !ok {
			panic(prefix + string(m))
		}
		names = append(names, c)
	}
	line.Sort(names)
	list := make([]Contender, n)
	for i, c := range names {
		list[i] = Contender{Path: "/l/" + c.Name, marker: c.Marker, Known: line.Ours(c.Name) && r.IntN(2) == 0}
		if c.Marker == line.CuratorLock && r.IntN(3) == 0 {
			list[i].Second = "/l/second"
		}
	}
	return list, names
}

// What relate finds by classes is what a look at each pair finds.
func TestContendersAreRelatedAsEachPairIs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		some := slices.Clone(line.Every)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		list, names := contenders(r, 1+r.IntN(12), some[:1+r.IntN(len(some))])
		at := func(i int) inLine { return inLine{&list[i], names[i]} }
		relate(list, names, "/a", nil)
		group := make([]int, len(list)) // by pairs
		for i := range list {
			group[i] = i
		}
		for i := range list {
			for j := range i {
				if at(i).respects(at(j)) == yes && at(j).respects(at(i)) == yes {
					merge(group, group[j], group[i])
				}
			}
		}
		for i, c := range list {
			waits := no
			for j := range i {
				waits = max(waits, at(i).waits(at(j)))
				if (group[i] == group[j]) != (c.Group == list[j].Group) {
					t.Errorf("%s and %s: groups %d and %d", names[i].Name, names[j].Name, c.Group, list[j].Group)
				}
			}
			if c.Holder != (waits == no) || c.MayHold != (waits == maybe) {
				t.Errorf("%s: holder %v, may hold %v", names[i].Name, c.Holder, c.MayHold)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// BenchmarkRelate is the part of Inspect that is not reading.
func BenchmarkRelate(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			list, names := contenders(rand.New(rand.NewPCG(1, 2)), n, []line.Marker{line.CuratorLock})
			for b.Loop() {
				relate(list, names, "/a", nil)
			}
		})
	}
}
