package line

import (
	"fmt"
	"testing"
)

// A contender that replaces another in one transaction knows only from its number who is ahead. With any other number
// than the one that excludes others, contenders may have come in between: to count as first then makes two holders.
func TestReplacementInfersThatItIsFirstFromTheVeryNextNumberOnly(t *testing.T) {
	t.Parallel()
	contender := func(name string, seq int32) Contender {
		return Contender{Name: fmt.Sprintf("%s-lock-%010d", name, seq), Seq: seq, Marker: "lock-"}
	}
	for name, row := range map[string]struct {
		ahead    int   // of the old contender, with number 7
		behind   []int // the numbers of those behind it, when it was listed
		seq      int32 // of the new one
		infers   bool
		want     int // ahead of the new one
		nearest  int32
		oldNodes int
		readers  bool // they do not block each other
	}{
		"the next number":                          {seq: 8, infers: true},
		"one came in between":                      {seq: 9},
		"many came in between":                     {seq: 20},
		"an earlier number":                        {seq: 6},
		"the same number":                          {seq: 7},
		"the old one was not first":                {ahead: 1, seq: 8},
		"the old one's line was not listed":        {ahead: unknown, seq: 8},
		"behind the last of those listed":          {behind: []int{8, 9}, seq: 10, infers: true, want: 2, nearest: 9},
		"one came behind the last of them":         {behind: []int{8, 9}, seq: 11},
		"many came behind the last of them":        {behind: []int{8, 9}, seq: 30},
		"one behind did not block, and may do now": {behind: []int{8}, seq: 9, readers: true},
		"two nodes take two numbers":               {oldNodes: 2, seq: 9, infers: true},
		"two nodes, and a number that is another":  {oldNodes: 2, seq: 10},
	} {
		l := &Line{Prefix: func(guid string) string { return guid }}
		l.Blocks = func(Contender) bool { return !row.readers }
		old := &position{line: l, self: contender("old", 7), ahead: row.ahead}
		old.nodes = make([]*node, max(1, row.oldNodes))
		for i := range old.nodes {
			old.nodes[i] = &node{path: fmt.Sprint("/x/", i)}
		}
		if row.ahead == 0 {
			old.snapshot = []Contender{old.self}
		}
		for _, seq := range row.behind {
			old.snapshot = append(old.snapshot, contender("other", int32(seq)))
		}
		next := &position{line: l, self: contender("new", row.seq), ahead: unknown}
		infers := next.infer(old)
		if infers != row.infers {
			t.Errorf("%s: got %t, want %t", name, infers, row.infers)
			continue
		}
		if want := row.want; infers && (next.ahead != want || next.nearest.Seq != row.nearest) {
			t.Errorf("%s: got %d ahead, nearest %d, want %d, %d", name, next.ahead, next.nearest.Seq, want, row.nearest)
		}
		if !infers && next.ahead == 0 {
			t.Errorf("%s: it counts as first", name)
		}
	}
}
