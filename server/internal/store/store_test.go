package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/store"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func open(t *testing.T, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, s *store.Store) *tree.Tree {
	t.Helper()
	tr, err := s.Load(tree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// commit makes the changes of a write durable, as of the tree's zxid.
func commit(t *testing.T, s *store.Store, tr *tree.Tree, r tree.Result) {
	t.Helper()
	commitBy(t, (*store.Batch).Apply, s, tr, r)
}

// commitInline makes the changes of a write durable by the inline way.
func commitInline(t *testing.T, s *store.Store, tr *tree.Tree, r tree.Result) {
	t.Helper()
	commitBy(t, (*store.Batch).ApplyInline, s, tr, r)
}

func commitBy(t *testing.T, apply func(*store.Batch, int64) error, s *store.Store, tr *tree.Tree, r tree.Result) {
	t.Helper()
	if r.Code != wire.OK {
		t.Fatalf("write refused: %v", r.Code)
	}
	b := s.NewBatch()
	b.Add(r.Changes)
	if err := apply(b, tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wait(); err != nil {
		t.Fatal(err)
	}
}

func create(tr *tree.Tree, path string, data []byte) tree.Result {
	req := &wire.CreateRequest{
		Path: path, Data: data,
		ACL: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}},
	}
	return tr.Write(tr.Zxid()+1, 1, &tree.Caller{Session: 7}, wire.OpCreate, req)
}

func get(tr *tree.Tree, path string) ([]byte, wire.Code) {
	body, code, _ := tr.Read(&tree.Caller{}, wire.OpGetData, &wire.PathWatchRequest{Path: path})
	if code != wire.OK {
		return nil, code
	}
	return body.(*wire.DataResponse).Data, code
}

func TestStateSurvivesClose(t *testing.T) {
	t.Parallel()
	cfg := store.Config{Dir: t.TempDir()}
	s := open(t, cfg)
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	want := map[string][]byte{"/null": nil, "/empty": {}, "/data": []byte("x"), "/data/child": []byte("y")}
	for _, path := range []string{"/null", "/empty", "/data", "/data/child"} {
		commit(t, s, tr, create(tr, path, want[path]))
	}
	secret := s.Secret()
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg)
	defer s.Close(s.Zxid())
	if !bytes.Equal(s.Secret(), secret) {
		t.Error("got a different secret after reopening, want the same: it makes the passwords of live sessions")
	}
	if s.Zxid() != 5 {
		t.Errorf("got zxid %d after a clean close, want 5", s.Zxid())
	}
	tr = load(t, s)
	if got := maps.Collect(tr.Sessions()); !maps.Equal(got, map[int64]int32{7: 4000}) {
		t.Errorf("got sessions %v, want 7 with a timeout of 4000", got)
	}
	for path, data := range want {
		got, code := get(tr, path)
		if code != wire.OK || !bytes.Equal(got, data) || (got == nil) != (data == nil) {
			t.Errorf("%s: got %q (nil: %t) %v, want %q (nil: %t)", path, got, got == nil, code, data, data == nil)
		}
	}
}

// Promise: 3
func TestZxidsAreNotReusedAfterCrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, store.Config{Dir: "data", FS: mem})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	reserved := s.Reserved()
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(1); err != nil {
		t.Fatal(err)
	}
	s = open(t, store.Config{Dir: "data", FS: crashed})
	defer s.Close(s.Zxid())
	if s.Zxid() != reserved {
		t.Errorf("got zxid %d after a crash, want %d: every zxid up to that may have been answered", s.Zxid(), reserved)
	}
}

// Promise: 10
func TestDirectoryInUseIsRefusedWithItsPID(t *testing.T) {
	t.Parallel()
	cfg := store.Config{Dir: t.TempDir()}
	s := open(t, cfg)
	defer s.Close(0)
	_, err := store.Open(cfg)
	inUse, ok := errors.AsType[*store.InUseError](err)
	if !ok || inUse.PID != os.Getpid() || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v, want an error that names process %d", err, os.Getpid())
	}
}

// Promise: 10
func TestRefusedWriteFailsTheStoreWithItsCause(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("no space left on device")
	for _, kind := range []string{"write", "sync"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var full errorfs.Toggle
			full.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
				isWrite := op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt
				isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
				if strings.HasSuffix(op.Path, ".log") && (kind == "write" && isWrite || kind == "sync" && isSync) {
					return noSpace
				}
				return nil
			})
			mem := vfs.NewCrashableMem()
			s := open(t, store.Config{Dir: "data", FS: errorfs.Wrap(mem, &full)})
			tr := load(t, s)
			commit(t, s, tr, tr.CreateSession(1, 7, 4000))
			commit(t, s, tr, create(tr, "/before", nil))
			full.On()
			var err error
			for i := 0; err == nil; i++ {
				b := s.NewBatch()
				b.Add(create(tr, fmt.Sprintf("/lost%d", i), bytes.Repeat([]byte("x"), 100_000)).Changes)
				if err = b.Apply(tr.Zxid()); err == nil {
					_, err = b.Wait()
				}
				if err == nil {
					t.Fatal("got nil for a write that failed on disk, want an error")
				}
			}
			if !errors.Is(err, noSpace) || !errors.Is(s.Err(), noSpace) {
				t.Errorf("got %v and %v, want both to name the cause", err, s.Err())
			}
			<-s.Failed()
			if err := s.Close(tr.Zxid()); !errors.Is(err, noSpace) {
				t.Errorf("close: got %v, want the cause", err)
			}
			s = open(t, store.Config{Dir: "data", FS: mem.CrashClone(vfs.CrashCloneCfg{})})
			defer s.Close(s.Zxid())
			if _, code := get(load(t, s), "/before"); code != wire.OK {
				t.Errorf("got %v for an acknowledged node, want OK", code)
			}
		})
	}
}

func TestUnknownChangeFailsTheStore(t *testing.T) {
	t.Parallel()
	s := open(t, store.Config{Dir: "data", FS: vfs.NewMem()})
	tr := load(t, s)
	changes := create(tr, "/x", nil).Changes
	b := s.NewBatch()
	b.Add(append([]tree.Change{{Kind: 99}}, changes...))
	b.SetSeed(7)
	if err := b.Apply(tr.Zxid()); err == nil || s.Err() == nil {
		t.Errorf("got %v, then %v, want both to say that a change was not written", err, s.Err())
	}
	if err := s.Close(tr.Zxid()); err == nil {
		t.Error("close: got nil, want the cause")
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	if err := open(t, store.Config{Dir: "data", FS: mem}).Close(3); err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open("data/db", &pebble.Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	version := []byte{0, 0, 0, 0, 0, 0, 0, 2}
	if err := errors.Join(db.Set([]byte("mformat"), version, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(store.Config{Dir: "data", FS: mem}); err == nil ||
		!strings.Contains(err.Error(), "version 2") {
		t.Errorf("got %v, want an error that names version 2", err)
	}
	// The failed Open has unlocked the directory.
	if _, err := store.Open(store.Config{Dir: "data", FS: mem}); err == nil || strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want the same error again", err)
	}
}

func TestCloseReportsThatItsOwnSyncFailed(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("no space left on device")
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSyncData} {
		var full errorfs.Toggle
		full.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && strings.HasSuffix(op.Path, ".log") {
				return noSpace
			}
			return nil
		})
		s := open(t, store.Config{Dir: "data", FS: errorfs.Wrap(vfs.NewCrashableMem(), &full)})
		tr := load(t, s)
		commit(t, s, tr, tr.CreateSession(1, 7, 4000))
		full.On()
		if err := s.Close(tr.Zxid()); !errors.Is(err, noSpace) {
			t.Errorf("%v: got %v, want the cause", kind, err)
		}
	}
}
