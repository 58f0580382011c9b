package cache

// Tables, against a map.

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// model is what a table should contain.
type model map[string]record

func (m model) below(rel string) []string {
	var found []string
	for path := range m {
		if path != rel && (rel == "" || strings.HasPrefix(path, rel+"/")) {
			found = append(found, path)
		}
	}
	return found
}

func wantSame(t *testing.T, got *table, want model) {
	t.Helper()
	if got.n != len(want) {
		t.Fatalf("got %d nodes, want %d", got.n, len(want))
	}
	seen, last := 0, []byte(nil)
	c := got.cursor()
	for ok := c.start(0, 0); ok; ok = c.next() {
		if seen > 0 && bytes.Compare(last, c.key) >= 0 {
			t.Fatalf("key %q after %q", c.key, last)
		}
		last = append(last[:0], c.key...)
		seen++
		rel := relative(c.key)
		wantRecord(t, rel, c.record(), want[rel])
	}
	if seen != len(want) {
		t.Fatalf("a cursor visits %d nodes, want %d", seen, len(want))
	}
	wantSeeks(t, got)
	for rel, r := range want {
		found, ok := got.get(rel)
		if !ok {
			t.Fatalf("%q is not found", rel)
		}
		wantRecord(t, rel, found, r)
	}
}

// wantSeeks checks that a cursor finds every key, and what comes behind a key that is missing.
func wantSeeks(t *testing.T, got *table) {
	t.Helper()
	var keys [][]byte
	c := got.cursor()
	for ok := c.start(0, 0); ok; ok = c.next() {
		keys = append(keys, bytes.Clone(c.key))
	}
	for i, key := range keys {
		if !c.seek(key) || !bytes.Equal(c.key, key) {
			t.Fatalf("seek %q: got %q", key, c.key)
		}
		behind := append(bytes.Clone(key), '0')
		next, _ := slices.BinarySearchFunc(keys, behind, bytes.Compare)
		if ok := c.seek(behind); ok != (next < len(keys)) || ok && !bytes.Equal(c.key, keys[next]) {
			t.Fatalf("seek behind %q: got %q, %t", key, c.key, ok)
		}
		if i%7 == 0 && next+1 < len(keys) && (!c.next() || !bytes.Equal(c.key, keys[next+1])) {
			t.Fatalf("after %q: got %q, want %q", keys[next], c.key, keys[next+1])
		}
	}
}

func wantRecord(t *testing.T, rel string, got, want record) {
	t.Helper()
	if !bytes.Equal(got.data, want.data) {
		t.Fatalf("%q: got %d bytes of data, want %d", rel, len(got.data), len(want.data))
	}
	got.data, want.data = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q: got %+v, want %+v", rel, got, want)
	}
}

func randomRecord(rng *rand.Rand, zxid int64) record {
	r := record{czxid: zxid, mzxid: zxid, ctime: 1.7e12 + rng.Int64N(1e9), data: make([]byte, rng.IntN(40))}
	r.mtime = r.ctime
	switch rng.IntN(8) {
	case 0:
		r.data = make([]byte, maxInline+1+rng.IntN(100))
	case 1:
		r.mzxid += rng.Int64N(1000)
		r.mtime += rng.Int64N(1000)
		r.version = rng.Int32() - rng.Int32()
	case 2:
		r.owner = rng.Int64()
	case 3:
		r.data, r.null = nil, true
	}
	for i := range r.data {
		r.data[i] = byte(rng.Int())
	}
	r.size = len(r.data)
	if rng.IntN(8) == 0 {
		r.data, r.size = nil, rng.IntN(1<<20)
	}
	return r
}

func randomPath(rng *rand.Rand) string {
	names := []string{"a", "b", "ab", "a-b", "a.b", "zoo", strings.Repeat("long", 80), "é"}
	var parts []string
	for range rng.IntN(4) {
		name := names[rng.IntN(len(names))]
		if rng.IntN(2) == 0 {
			name += fmt.Sprintf("%06d", rng.IntN(300))
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, "/")
}

// Promise: 15
func TestTableHoldsWhatWasPut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b, want := newBuilder(), model{}
		type version struct {
			table
			want model
		}
		var versions []version
		for step := range 4000 {
			rel := randomPath(rng)
			switch op := rng.IntN(100); {
			case op < 75:
				r := randomRecord(rng, int64(step)+1<<32)
				before, had := b.put(rel, &r)
				old, knew := want[rel]
				if had != knew {
					t.Fatalf("put %q: got had %t, want %t", rel, had, knew)
				}
				if had {
					old.data = nil
					wantRecord(t, rel, before, old)
				}
				want[rel] = r
			case op < 97:
				_, had := want[rel]
				if got := b.remove(rel); got != had {
					t.Fatalf("remove %q: got %t, want %t", rel, got, had)
				}
				delete(want, rel)
			case op < 98 && strings.Contains(rel, "/"):
				for _, path := range want.below(rel) {
					delete(want, path)
				}
				b.removeBelow(rel)
			case step%20 == 0:
				versions = append(versions, version{b.version(), maps.Clone(want)})
			}
		}
		versions = append(versions, version{b.version(), want})
		for i := range versions {
			wantSame(t, &versions[i].table, versions[i].want)
			wantDifferences(t, &versions[rng.IntN(i+1)].table, &versions[i].table)
		}
		for _, rel := range []string{"a", "a-b", "zoo"} {
			b.removeTree(rel)
			for _, path := range append(want.below(rel), rel) {
				delete(want, path)
			}
			wantSame(t, &b.table, want)
		}
		b.removeTree("")
		wantSame(t, &b.table, model{})
	}
}

func content(t *table) map[string]string {
	all := map[string]string{}
	c := t.cursor()
	for ok := c.start(0, 0); ok; ok = c.next() {
		r := c.record()
		all[relative(c.key)] = fmt.Sprint(r.czxid, r.mzxid)
	}
	return all
}

// wantDifferences checks that compare finds exactly the differences of two versions.
func wantDifferences(t *testing.T, a, b *table) {
	t.Helper()
	before, after := content(a), content(b)
	got := map[string]bool{}
	compare(a, b, func(x, y *cursor) bool {
		at := x
		if at == nil {
			at = y
		}
		got[relative(at.key)] = true
		if x != nil && before[relative(x.key)] == "" || y != nil && after[relative(y.key)] == "" {
			t.Fatalf("%q is in the wrong version", relative(at.key))
		}
		return true
	})
	want := map[string]bool{}
	for rel, s := range before {
		if after[rel] != s {
			want[rel] = true
		}
	}
	for rel, s := range after {
		if before[rel] != s {
			want[rel] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("got %d differences, want %d", len(got), len(want))
	}
}

func TestTableListsTheChildrenOfANode(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	for i, rel := range []string{"", "a", "a/x", "a/y", "a/x/1", "a-b", "a-b/x", "ab", "b"} {
		b.put(rel, &record{czxid: int64(i + 1), mzxid: int64(i + 1)})
	}
	for rel, want := range map[string]string{
		"": "a a-b ab b", "a": "x y", "a/x": "1", "a-b": "x", "ab": "", "b": "", "c": "", "a/": "",
	} {
		var got []string
		b.children(rel, func(c *cursor) bool {
			got = append(got, c.name())
			return true
		})
		if s := strings.Join(got, " "); s != want {
			t.Errorf("children of %q: got %q, want %q", rel, s, want)
		}
	}
}

// Promise: 15
func TestVersionsShareWhatDidNotChange(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	for i := range 100_000 {
		b.put(fmt.Sprintf("dir/node%08d", i), &record{czxid: 1, mzxid: 1})
	}
	v := b.version()
	b.put("dir/node00050000", &record{czxid: 1, mzxid: 2})
	w := b.version()
	different := 0
	for i, br := range v.branches {
		for j, l := range br.leaves {
			if w.branches[i].leaves[j] != l {
				different++
			}
		}
	}
	if different != 1 {
		t.Errorf("got %d leaves that differ after one change, want 1", different)
	}
}

func TestPutOfTheSameStateChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.put("a", &record{czxid: 1, mzxid: 2, version: 1})
	v := b.version()
	b.put("a", &record{czxid: 1, mzxid: 2, version: 1})
	if w := b.version(); v.branches[0] != w.branches[0] {
		t.Error("the branch was copied")
	}
}

// Promise: 15
func TestATableNeedsLittleMoreThanNamesAndData(t *testing.T) {
	t.Parallel()
	const n = 100_000
	inOrder := make([]int, n)
	for i := range inOrder {
		inOrder[i] = i
	}
	for name, order := range map[string][]int{
		"in order": inOrder, "in any order": rand.New(rand.NewPCG(1, 2)).Perm(n), // leaves that are full are halved
	} {
		b := newBuilder()
		for _, i := range order {
			b.put(fmt.Sprintf("dir%03d/node%08d", i/1000, i), &record{
				czxid: int64(i) + 5<<32, mzxid: int64(i) + 5<<32, ctime: 1.7e12 + int64(i), mtime: 1.7e12 + int64(i),
			})
		}
		bytes := 0
		for _, br := range b.version().branches {
			bytes += 8 * cap(br.leaves)
			for _, l := range br.leaves {
				bytes += cap(l.b) + 100 + len(l.first)
			}
		}
		if each := float64(bytes) / n; each > 20 {
			t.Errorf("%s: got %.1f bytes per node, want at most 20", name, each)
		} else {
			t.Logf("%s: %.1f bytes per node", name, each)
		}
	}
}

func TestKeysAndRelativePaths(t *testing.T) {
	t.Parallel()
	rels := []string{"", "a", "a/b", "a/b/c", "é/ü"}
	var back []string
	for _, rel := range rels {
		back = append(back, relative(appendKey(nil, rel)))
	}
	if !slices.Equal(rels, back) {
		t.Errorf("got %q, want %q", back, rels)
	}
}
