package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/store"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// wantData checks that the tree has exactly the nodes of want, with their data.
func wantData(t *testing.T, tr *tree.Tree, want map[string][]byte) {
	t.Helper()
	for path, data := range want {
		if got, code := get(tr, path); code != wire.OK || !bytes.Equal(got, data) {
			t.Fatalf("%s: got %d bytes, %v; want %d bytes", path, len(got), code, len(data))
		}
	}
	body, _, _ := tr.Read(&tree.Caller{}, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/"})
	if got := len(body.(*wire.ChildrenResponse).Children) - 1; got != len(want) { // without /zookeeper
		t.Fatalf("got %d nodes, want %d", got, len(want))
	}
}

// Single transactions and groups of them go to two logs. At whatever point a crash comes, and whatever it leaves of
// unsynced writes, the state must be that after the last acknowledged transaction.
//
// Promise: 10
func TestCrashLosesNothingOfTwoLogs(t *testing.T) {
	t.Parallel()
	for seed := range soak.Pick[uint64](3, 8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			mem := vfs.NewCrashableMem()
			open := func(fs vfs.FS) (*store.Store, *tree.Tree) {
				s := open(t, store.Config{Dir: "data", FS: fs, Memory: 256 << 10})
				return s, load(t, s)
			}
			s, tr := open(mem)
			commit(t, s, tr, tr.CreateSession(1, 7, 4000))
			want := map[string][]byte{}
			for n := range 200 {
				data := bytes.Repeat([]byte{byte(n)}, rng.IntN(1<<rng.IntN(17)))
				path := fmt.Sprintf("/n%d", rng.IntN(30))
				r := create(tr, path, data)
				if _, ok := want[path]; ok {
					r = tr.Write(tr.Zxid()+1, 1, &tree.Caller{Session: 7}, wire.OpSetData,
						&wire.SetDataRequest{Path: path, Data: data, Version: -1})
				}
				if rng.IntN(4) == 0 {
					commit(t, s, tr, r)
				} else {
					commitInline(t, s, tr, r)
				}
				want[path] = data
				if rng.IntN(10) > 0 {
					continue
				}
				cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}
				after := mem.CrashClone(cfg)
				again, tree := open(after)
				wantData(t, tree, want)
				if err := s.Close(tr.Zxid()); err != nil {
					t.Fatal(err)
				}
				mem, s, tr = after, again, tree
			}
			if err := s.Close(tr.Zxid()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A handshake that changes a timeout uses no zxid of its own.
//
// Promise: 10
func TestCrashLosesNoTransactionOfTheSameZxid(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	commitInline(t, s, tr, create(tr, "/first", nil))
	commitInline(t, s, tr, tr.CreateSession(tr.Zxid(), 7, 9000))
	commitInline(t, s, tr, create(tr, "/second", nil))
	commitInline(t, s, tr, tr.CreateSession(tr.Zxid(), 7, 6000))
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	again := open(t, store.Config{Dir: "data", FS: after})
	tr = load(t, again)
	wantData(t, tr, map[string][]byte{"/first": nil, "/second": nil})
	if got := maps.Collect(tr.Sessions())[7]; got != 6000 {
		t.Errorf("got a timeout of %d ms, want 6000", got)
	}
	if err := again.Close(again.Zxid()); err != nil {
		t.Fatal(err)
	}
}

func TestTruncatedOrChangedRecordEndsTheSideLog(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	commit(t, s, tr, create(tr, "/first", nil))
	commitInline(t, s, tr, create(tr, "/second", []byte("x")))
	commitInline(t, s, tr, create(tr, "/third", []byte("y")))
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	all := readAll(t, after, "data/side.log")
	third := bytes.LastIndex(all, []byte("/third"))
	overwrite(t, after, []byte{'?'}, third)
	again := open(t, store.Config{Dir: "data", FS: after})
	wantData(t, load(t, again), map[string][]byte{"/first": nil, "/second": []byte("x")})
	if err := again.Close(again.Zxid()); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, info.Size())
	if _, err := f.ReadAt(all, 0); err != nil {
		t.Fatal(err)
	}
	return all
}

// overwrite overwrites the side log with data at the given offset.
func overwrite(t *testing.T, fs vfs.FS, data []byte, at int) {
	t.Helper()
	f, err := fs.OpenReadWrite("data/side.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, int64(at))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestRecordInTheDataOfAClientIsNotReplayed(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	commitInline(t, s, tr, create(tr, "/first", []byte("x")))
	log := readAll(t, mem, "data/side.log")
	end := bytes.LastIndexFunc(log, func(r rune) bool { return r != 0 }) + 1
	// a complete record except for its authenticator
	forged := bytes.Replace(log[:end], []byte("/first"), []byte("/forge"), 1)
	// Place it directly after the last record of the side log.
	filler := bytes.Repeat([]byte{1}, 300)
	commitInline(t, s, tr, create(tr, "/second", append(filler, forged...)))
	log = readAll(t, mem, "data/side.log")
	at := bytes.Index(log, forged[len(forged)-80:]) + 80 - len(forged)
	clone := mem.CrashClone(vfs.CrashCloneCfg{})
	overwrite(t, clone, log[at:at+len(forged)], end) // as old bytes of the file
	again := open(t, store.Config{Dir: "data", FS: clone})
	if _, code := get(load(t, again), "/forge"); code != wire.NoNode {
		t.Fatalf("/forge: got %v, want no such node", code)
	}
	if err := again.Close(again.Zxid()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
}

func TestSideLogOfAnotherStateOfTheDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	backup := mem.CrashClone(vfs.CrashCloneCfg{})
	commit(t, s, tr, create(tr, "/first", nil))
	commitInline(t, s, tr, create(tr, "/second", nil))
	log := readAll(t, mem, "data/side.log")
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	overwrite(t, backup, log, 0)
	if _, err := store.Open(store.Config{Dir: "data", FS: backup}); err == nil ||
		!strings.Contains(err.Error(), "same backup") {
		t.Errorf("got %v, want an error that names what to do", err)
	}
}

func TestReplayOfTheSideLogDoesNotSyncEachRecord(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	want := map[string][]byte{}
	const records = 300
	for i := range records {
		path := fmt.Sprintf("/n%d", i)
		commitInline(t, s, tr, create(tr, path, []byte("x")))
		want[path] = []byte("x")
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	var syncs atomic.Int64
	count := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			syncs.Add(1)
		}
		return nil
	})
	again := open(t, store.Config{Dir: "data", FS: errorfs.Wrap(after, count)})
	if n := syncs.Load(); n > records/10 {
		t.Errorf("got %d syncs for %d records, want a few in all", n, records)
	}
	crashed := after.CrashClone(vfs.CrashCloneCfg{}) // replayed records must be durable
	wantData(t, load(t, again), want)
	if err := again.Close(again.Zxid()); err != nil {
		t.Fatal(err)
	}
	last := open(t, store.Config{Dir: "data", FS: crashed})
	wantData(t, load(t, last), want)
	if err := last.Close(last.Zxid()); err != nil {
		t.Fatal(err)
	}
}
