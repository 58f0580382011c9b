package tree_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// names lists names and whether a node may have them.
var (
	goodNames = []string{
		"a", "..a", "a..", "...", "a.b", ".a", " ", "a b", "ä", "名前", "\u00a0", "\u0fff", "\uf900", "\uffef", "!",
		"~", "%2f",
		"_c_1-lock-0000000000", "-2147483648", strings.Repeat("x", 1000),
	}
	badNames = []string{
		".", "..", "\x01", "a\tb", "a\nb", "\x1f", "\x7f", "\u0080", "\u009f", "\ue000", "\uf8ff", "\ufff0", "\ufffd",
		"\uffff",
		"\xff", "a\xc3", "\xed\xa0\x80", "😀", "\U00010000", "\U0010ffff",
	}
)

func TestNamesOfNodesAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	for _, name := range goodNames {
		for _, path := range []string{"/" + name, "/p/" + name} {
			if got := c.mk(path, 0); got != path {
				t.Errorf("create %q: got %q", path, got)
			}
		}
	}
	for _, name := range badNames {
		for _, path := range []string{"/" + name, "/p/" + name} {
			s.want(c.create(path, "", 0).Code, wire.BadArguments, "create "+path)
			s.want(c.set(path, "", -1).Code, wire.BadArguments, "setData "+path)
			s.want(c.setACL(path, openACL, -1).Code, wire.BadArguments, "setACL "+path)
			s.want(c.exists(path, false), wire.NoNode, "exists "+path)
		}
		s.want(c.set("/"+name+"/below", "", -1).Code, wire.BadArguments, "setData below "+name)
	}
	s.wantSound()
}

func TestMalformedPathsAreRefusedAsZooKeeperDoes(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/a", 0)
	const (
		ok     = wire.OK
		bad    = wire.BadArguments
		noNode = wire.NoNode
		exists = wire.NodeExists
	)
	for _, row := range []struct {
		path                     string
		create, remove, set, get wire.Code
	}{
		{"", bad, bad, bad, ok},
		{"a", bad, bad, bad, noNode},
		{"/", exists, bad, ok, ok},
		{"//", bad, noNode, bad, noNode},
		{"/a/", bad, noNode, bad, noNode},
		{"/b/", noNode, noNode, bad, noNode},
		{"/a//b", noNode, noNode, bad, noNode},
		{"//a", bad, noNode, bad, noNode},
		{"a/b", noNode, noNode, bad, noNode},
		{"/a/./b", noNode, noNode, bad, noNode},
		{"/a/../b", noNode, noNode, bad, noNode},
		{"/a/.", bad, noNode, bad, noNode},
		{"/a/..", bad, noNode, bad, noNode},
		{"/a/\x00", bad, bad, bad, noNode},
		{"/b/c", noNode, noNode, noNode, noNode},
	} {
		s.want(c.create(row.path, "", 0).Code, row.create, "create "+row.path)
		s.want(c.remove(row.path, -1).Code, row.remove, "delete "+row.path)
		s.want(c.set(row.path, "", -1).Code, row.set, "setData "+row.path)
		_, code := c.get(row.path, false)
		s.want(code, row.get, "getData "+row.path)
		_, code = c.children(row.path, false)
		s.want(code, row.get, "getChildren "+row.path)
		if strings.IndexByte(row.path, 0) >= 0 {
			s.want(c.exists(row.path, false), bad, "exists "+row.path)
		} else {
			s.want(c.exists(row.path, false), row.get, "exists "+row.path)
		}
	}
	s.wantSound()
}

func TestSequenceCountsCreatesOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	c.mk("/q", 0)
	step := func(flags int32, path, want string) {
		t.Helper()
		if got := c.mk(path, flags); got != want {
			t.Fatalf("create %s: got %s, want %s", path, got, want)
		}
	}
	step(2, "/q/n-", "/q/n-0000000000")
	step(3, "/q/n-", "/q/n-0000000001")
	step(0, "/q/plain", "/q/plain")
	step(2, "/q/", "/q/0000000003")
	s.wantOK(c.remove("/q/plain", -1), "delete")
	s.wantOK(c.set("/q", "x", -1), "setData")
	s.want(c.create("/q/\x01", "", 2).Code, wire.BadArguments, "bad create")
	s.want(c.create("/q/0000000003", "", 0).Code, wire.NodeExists, "create of what exists")
	s.want(c.multi(sub(wire.OpCreate, createRequest("/q/m", "", 2)),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/none"})).Code, wire.OK, "multi")
	step(2, "/q/n-", "/q/n-0000000004")
	step(2, "/", "/0000000001")
	s.wantSound()
}

func TestSequenceWrapsAndKeepsCounting(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/q", 0)
	s.done(s.tree.PresetSequence("/q", math.MaxInt32-1))
	var got []string
	for range 4 {
		got = append(got, strings.TrimPrefix(c.mk("/q/n", 3), "/q/n"))
	}
	if want := []string{"2147483646", "2147483647", "-2147483648", "-2147483647"}; !slices.Equal(got, want) {
		t.Errorf("around the wrap: got %v, want %v", got, want)
	}
	s.wantSound()
	for next, want := range map[int32]string{
		-999999999: "-999999999", -5: "-000000005", -1: "-000000001",
		7: "0000000007",
	} {
		s.done(s.tree.PresetSequence("/q", next))
		if got := c.mk("/q/m", 2); got != "/q/m"+want {
			t.Errorf("sequence %d: got %s, want %s", next, got, want)
		}
	}
	s.want(s.tree.PresetSequence("/none", 1).Code, wire.NoNode, "preset of an absent node")
	s.wantSound()
}

func TestSequenceNeverReusesALiveName(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/q", 0)
	c.mk("/q/n", 2)
	s.done(s.tree.PresetSequence("/q", 0))
	s.want(c.create("/q/n", "", 2).Code, wire.NodeExists, "create over a live name")
	s.wantSound()
}
