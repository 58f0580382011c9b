package tree_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestLoadingNothingReturnsANewTree(t *testing.T) {
	t.Parallel()
	got, dropped, err := tree.NewLoader(tree.Config{}).Tree(0)
	if err != nil || len(dropped) != 0 {
		t.Fatal(err, dropped)
	}
	if want := tree.New(tree.Config{}); got.Dump() != want.Dump() {
		t.Errorf("got %s, want %s", got.Dump(), want.Dump())
	}
}

func TestLoadingDropsNodesOfUnknownSessions(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	a, b := s.connect(1), s.connect(2)
	a.mk("/q", 0)
	a.setQuota("/q", "count=9,bytes=9")
	s.wantOK(a.create("/q/a", "12345", 1), "create")
	s.wantOK(b.create("/q/b", "123", 1), "create")
	delete(s.store.sessions, 1)
	loaded, dropped, err := s.store.load(s.cfg, s.zxid)
	if err != nil {
		t.Fatal(err)
	}
	if s.zxid++; loaded.Zxid() != s.zxid {
		t.Errorf("got zxid %d, want %d: who has seen the last one has not seen this", loaded.Zxid(), s.zxid)
	}
	s.tree = loaded
	s.store.apply(dropped)
	if !slices.Equal(s.tree.EphemeralsOf(2), []string{"/q/b"}) || s.tree.EphemeralCount() != 1 {
		t.Errorf("got ephemerals %v", s.tree.EphemeralsOf(2))
	}
	if st := s.stat("/q"); st.NumChildren != 1 || st.Pzxid != s.zxid {
		t.Errorf("got parent %+v", st)
	}
	b.wantStats("/q", "count=2,bytes=3")
	s.wantSound()
}

// Promise: 10
func TestLoadedTreeContinuesWhereItStopped(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	c.mk("/q", 0)
	c.mk("/q/n", 3)
	c.mkContainer("/box")
	c.mk("/box/x", 0)
	c.mkTTL("/t", 10)
	var err error
	if s.tree, _, err = s.store.load(s.cfg, s.zxid); err != nil {
		t.Fatal(err)
	}
	if got := s.tree.Zxid(); got != s.zxid {
		t.Errorf("got zxid %d, want %d", got, s.zxid)
	}
	if got := c.mk("/q/n", 3); got != "/q/n0000000001" {
		t.Errorf("got next sequential node %s", got)
	}
	s.wantOK(c.remove("/box/x", -1), "delete")
	s.wantContainers(math.MaxInt64, "/box", "/t")
	s.close(1)
	if names, _ := c.children("/q", false); len(names) != 0 {
		t.Errorf("got remaining nodes %v", names)
	}
	s.wantSound()
}

func TestDamagedStoreIsRefused(t *testing.T) {
	t.Parallel()
	plain := tree.AppendNode(nil, &tree.Node{ACL: openACL})
	withData := tree.AppendNode(nil, &tree.Node{ACL: openACL, DataLength: 3})
	ephemeral := tree.AppendNode(nil, &tree.Node{ACL: openACL, Session: 1})
	for name, load := range map[string]func(l *tree.Loader) error{
		"no parent":       func(l *tree.Loader) error { return l.Node("/a/b", plain) },
		"bad path":        func(l *tree.Loader) error { return l.Node("a", plain) },
		"bad record":      func(l *tree.Loader) error { return l.Node("/a", plain[:5]) },
		"empty record":    func(l *tree.Loader) error { return l.Node("/a", nil) },
		"unknown version": func(l *tree.Loader) error { return l.Node("/a", append([]byte{99}, plain[1:]...)) },
		"trailing bytes":  func(l *tree.Loader) error { return l.Node("/a", append(slices.Clone(plain), 0)) },
		"data of nothing": func(l *tree.Loader) error { return l.Data("/a", []byte("x")) },
		"twice":           func(l *tree.Loader) error { _ = l.Node("/a", plain); return l.Node("/a", plain) },
		"below ephemeral": func(l *tree.Loader) error { _ = l.Node("/a", ephemeral); return l.Node("/a/b", plain) },
		"unexpected data": func(l *tree.Loader) error { _ = l.Node("/a", plain); return l.Data("/a", []byte("x")) },
		"data cut":        func(l *tree.Loader) error { _ = l.Node("/a", withData); return l.Data("/a", []byte("xy")) },
		"missing data": func(l *tree.Loader) error {
			_ = l.Node("/a", withData)
			_, _,
				err := l.Tree(1)
			return err
		},
		"missing of root": func(l *tree.Loader) error { _ = l.Node("/", withData); _, _, err := l.Tree(1); return err },
		"data twice": func(l *tree.Loader) error {
			_ = l.Node("/a", withData)
			_ = l.Data("/a", []byte("xyz"))
			return l.Data("/a", []byte("xyz"))
		},
		"data of nil": func(l *tree.Loader) error { _ = l.Node("/a", plain); return l.Data("/a", nil) },
		"ephemeral parent": func(l *tree.Loader) error {
			l.Session(1, 1)
			_ = l.Node("/a", ephemeral)
			return l.Node("/a/b", ephemeral)
		},
	} {
		err := load(tree.NewLoader(tree.Config{}))
		if err == nil || !strings.HasPrefix(err.Error(), "tree: ") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestNodeRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	big := tree.Node{
		Czxid: math.MaxInt64, Mzxid: math.MinInt64, Pzxid: -1, Ctime: 1, Mtime: 2, Version: math.MinInt32,
		Aversion: math.MaxInt32,
		Creates:  -5, Session: math.MinInt64, DataLength: math.MaxInt32,
		ACL: []wire.ACL{entry(31, alice), entry(-1, world), entry(0, wire.ID{})},
	}
	for _, n := range []tree.Node{
		{ACL: openACL},
		{ACL: openACL, DataLength: -1},
		{ACL: readOnlyACL, Container: true},
		{ACL: openACL, TTL: wire.MaxTTL},
		{ACL: []wire.ACL{}, Session: 7},
		big,
	} {
		record := tree.AppendNode([]byte("x"), &n)
		got, err := tree.DecodeNode(record[1:])
		if err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("got %+v %v, want %+v", got, err, n)
		}
		for cut := range len(record) - 1 {
			if _, err := tree.DecodeNode(record[1 : 1+cut]); err == nil {
				t.Errorf("first %d of %d bytes: got a record, want an error", cut, len(record)-1)
			}
		}
	}
}

// Promise: 9
func FuzzNodeRecord(f *testing.F) {
	f.Add(tree.AppendNode(nil, &tree.Node{ACL: openACL}))
	f.Add(tree.AppendNode(nil, &tree.Node{ACL: readOnlyACL, TTL: 5, DataLength: 9, Creates: -1}))
	f.Add(tree.AppendNode(nil, &tree.Node{ACL: []wire.ACL{entry(31, alice)}, Session: 5, Czxid: 1 << 40}))
	f.Fuzz(func(t *testing.T, record []byte) {
		n, err := tree.DecodeNode(record)
		if err != nil {
			return
		}
		again := tree.AppendNode(nil, &n)
		m, err := tree.DecodeNode(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tree.AppendNode(nil, &m), again) {
			t.Errorf("record %x changes when it is decoded and encoded again", record)
		}
	})
}

// A parent's data must not be written when only its counters change.
func TestChangesContainOnlyWhatAWriteTouched(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	s.wantOK(c.create("/p", "large", 0), "create")
	for _, row := range []struct {
		r    tree.Result
		want []string
	}{
		{c.create("/p/x", "1", 0), []string{"put /p/x", "data /p/x", "put /p"}},
		{c.create("/p/y", "", 0), []string{"put /p/y", "put /p"}},
		{c.set("/p/x", "22", -1), []string{"put /p/x", "data /p/x"}},
		{c.set("/p/x", "", -1), []string{"put /p/x", "no data /p/x"}},
		{c.setACL("/p/x", openACL, -1), []string{"put /p/x"}},
		{c.remove("/p/x", -1), []string{"remove /p/x", "put /p"}},
		{c.multi(), nil},
		{c.multi(
			sub(wire.OpCreate, createRequest("/p/a", "1", 1)),
			sub(wire.OpCreate, createRequest("/p/b", "1", 0)),
			sub(wire.OpSetData, &wire.SetDataRequest{Path: "/p/b", Data: []byte("2"), Version: -1}),
			sub(wire.OpCreate, createRequest("/p/c", "1", 0)),
			sub(wire.OpDelete, &wire.DeleteRequest{Path: "/p/c", Version: -1}),
		), []string{"put /p/a", "data /p/a", "put /p", "put /p/b", "data /p/b", "remove /p/c"}},
		{s.close(1), []string{"remove /p/a", "put /p", "end 1"}},
	} {
		var got []string
		for _, ch := range row.r.Changes {
			verb := map[tree.ChangeKind]string{
				tree.PutNode: "put", tree.PutData: "data", tree.RemoveData: "no data", tree.RemoveNode: "remove",
			}[ch.Kind]
			switch ch.Kind {
			case tree.PutSession:
				got = append(got, fmt.Sprint("begin ", ch.Session))
			case tree.RemoveSession:
				got = append(got, fmt.Sprint("end ", ch.Session))
			default:
				got = append(got, verb+" "+ch.Path)
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
	s.wantSound()
}
