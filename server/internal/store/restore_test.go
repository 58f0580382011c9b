package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/backup"
	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// made makes a store with a node, whose zxid is zxid, and closes it. It returns a backup of it.
func made(t *testing.T, cfg store.Config, path string, zxid int64) []byte {
	t.Helper()
	s := open(t, cfg)
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(zxid-1, 7, 4000))
	commitInline(t, s, tr, create(tr, path, []byte(path))) // into the side log
	saved := backedUp(t, s)
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	return saved
}

// backedUp returns a backup of a store.
func backedUp(t *testing.T, s *store.Store) []byte {
	t.Helper()
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := backup.NewWriter(&b)
	for {
		piece, err := snap.Next(nil)
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, w.Add(piece)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.Close(snap.Summary(), "")
	if err := errors.Join(err, snap.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ticks returns a clock that shows the next second at every look, so that nobody waits for it.
func ticks() func() time.Time {
	now := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Second); return now }
}

// crashes clones a file system as crashes would leave it: at some writes while the new state is made, and at each while
// it takes its place.
type crashes struct {
	mem    *vfs.MemFS
	mu     sync.Mutex // guards the others
	rng    *rand.Rand
	points []crash
	late   bool // the new state takes its place
}

type crash struct {
	at string
	fs vfs.FS
}

// String names the injector.
func (c *crashes) String() string { return "crashes" }

// MaybeError clones, and returns no error.
func (c *crashes) MaybeError(op errorfs.Op) error {
	if writes(op) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.late = c.late || strings.Contains(op.Path, "restore.swap")
		if !c.late && c.rng.IntN(soak.Pick(30, 1)) > 0 {
			return nil
		}
		cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[c.rng.IntN(3)], RNG: c.rng}
		c.points = append(c.points, crash{fmt.Sprintf("operation %d of %s", op.Kind, op.Path), c.mem.CrashClone(cfg)})
	}
	return nil
}

// A crash at any step of a restore leaves the former state or the new one, whole, and a restore can follow.
//
// Promise: 10
func TestCrashAtAnyStepOfARestoreLeavesAState(t *testing.T) {
	t.Parallel()
	saved := made(t, store.Config{Dir: "x", FS: vfs.NewMem(), Memory: 64 << 10}, "/new", 5000)
	for name, former := range map[string]bool{"in the place of another": true, "in an empty directory": false} {
		if !former && !soak.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			c := &crashes{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, 0))}
			if former {
				made(t, store.Config{Dir: "data", FS: c.mem, Memory: 64 << 10}, "/old", 9000)
			}
			now := ticks()
			restore := func(fs vfs.FS, replace bool) (*store.Restored, error) {
				return store.Restore(t.Context(), store.RestoreConfig{
					Dir: "data", FS: fs, Replace: replace, Now: now, Memory: 64 << 10,
				}, bytes.NewReader(saved))
			}
			if _, err := restore(errorfs.Wrap(c.mem, c), former); err != nil {
				t.Fatal(err)
			}
			c.points = append(c.points, crash{"the end", c.mem.CrashClone(vfs.CrashCloneCfg{})})
			olds, news := 0, 0
			for i, p := range c.points {
				s, err := store.Open(store.Config{Dir: "data", FS: p.fs, Memory: 64 << 10})
				if err != nil {
					t.Fatalf("crash at %s: %v", p.at, err)
				}
				tr := load(t, s)
				_, noOld := get(tr, "/old")
				_, noNew := get(tr, "/new")
				isNew := noNew == wire.OK
				switch {
				case isNew == (noOld == wire.OK) && (former || isNew), s.Zxid() < 9000 && former,
					isNew && s.Zxid() < 1<<40:
					t.Errorf("crash at %s: got old %v, new %v, zxid %d", p.at, noOld, noNew, s.Zxid())
				case isNew:
					news++
				default:
					olds++
				}
				before := s.Zxid()
				if err := s.Close(before); err != nil {
					t.Fatal(err)
				}
				if isNew && former {
					checkReplaced(t, p)
				}
				if i%soak.Pick(7, 1) != 0 {
					continue
				}
				if done, err := restore(p.fs, true); err != nil || done.Zxid <= before {
					t.Errorf("crash at %s: the next restore: got %+v %v", p.at, done, err)
				}
			}
			if olds < 3 || news < 2 {
				t.Errorf("got %d crashes before and %d behind, want more for a meaningful test", olds, news)
			}
			t.Logf("%d crashes left the former state, %d the new one", olds, news)
		})
	}
}

// checkReplaced checks that the former state is where the restore has moved it.
func checkReplaced(t *testing.T, p crash) {
	t.Helper()
	names, err := p.fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "replaced-") {
			continue
		}
		s := open(t, store.Config{Dir: p.fs.PathJoin("data", name), FS: p.fs, Memory: 64 << 10})
		if _, code := get(load(t, s), "/old"); code != wire.OK {
			t.Errorf("crash at %s: the former state has no /old: %v", p.at, code)
		}
		if err := s.Close(s.Zxid()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("crash at %s: the former state is gone: %v", p.at, names)
}

// Every failing write of a restore is an error, and leaves the former state or the new one.
func TestFailedWriteOfARestoreLeavesAState(t *testing.T) {
	t.Parallel()
	saved := made(t, store.Config{Dir: "x", FS: vfs.NewMem(), Memory: 64 << 10}, "/new", 5000)
	for n := 0; ; n += soak.Pick(37, 1) {
		mem := vfs.NewCrashableMem()
		made(t, store.Config{Dir: "data", FS: mem, Memory: 64 << 10}, "/old", 9000)
		one := &failing{at: n}
		_, err := store.Restore(t.Context(), store.RestoreConfig{
			Dir: "data", FS: errorfs.Wrap(mem, one), Replace: true, Now: ticks(), Memory: 64 << 10,
		}, bytes.NewReader(saved))
		if int(one.seen.Load()) < n {
			return
		}
		// As for the next process: what has failed may keep locks.
		left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		s, operr := store.Open(store.Config{Dir: "data", FS: left, Memory: 64 << 10})
		if operr != nil {
			t.Fatalf("operation %d: %v (restore: %v)", n, operr, err)
		}
		tr := load(t, s)
		_, noOld := get(tr, "/old")
		_, noNew := get(tr, "/new")
		if (noOld == wire.OK) == (noNew == wire.OK) || err == nil && noNew != wire.OK {
			t.Errorf("operation %d: got old %v, new %v, restore %v", n, noOld, noNew, err)
		}
		if err := s.Close(s.Zxid()); err != nil {
			t.Fatal(err)
		}
	}
}

// failing fails one write.
type failing struct {
	at   int
	seen atomic.Int64
}

// String names the injector.
func (f *failing) String() string { return "failing" }

// MaybeError fails the write.
func (f *failing) MaybeError(op errorfs.Op) error {
	if writes(op) && f.seen.Add(1) == int64(f.at) {
		return errors.New("injected")
	}
	return nil
}

func TestRestoreWithoutAClockOrAReadableStateIsRefused(t *testing.T) {
	t.Parallel()
	saved := made(t, store.Config{Dir: "x", FS: vfs.NewMem(), Memory: 64 << 10}, "/new", 5000)
	mem := vfs.NewMem()
	cfg := store.RestoreConfig{Dir: "data", FS: mem, Replace: true, Now: func() time.Time { return time.Unix(1e9, 0) }}
	if _, err := store.Restore(t.Context(), cfg, bytes.NewReader(saved)); err == nil {
		t.Error("got a state by a clock of 2001")
	}
	cfg.Now = ticks()
	made(t, store.Config{Dir: "data", FS: mem, Memory: 64 << 10}, "/old", 9000)
	names, err := mem.List("data/db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST") {
			f, err := mem.Create("data/db/"+name, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write([]byte("damaged"))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := store.Restore(t.Context(), cfg, bytes.NewReader(saved)); err == nil {
		t.Error("got a state although nobody knows which tokens the former one has given out")
	}
	cfg.Above = 1 << 48
	done, err := store.Restore(t.Context(), cfg, bytes.NewReader(saved))
	if err != nil || done.Zxid <= cfg.Above {
		t.Fatalf("got %+v %v, want a zxid above %d", done, err, cfg.Above)
	}
	if names, err := mem.List(done.Replaced + "/db"); err != nil || len(names) == 0 {
		t.Errorf("got %v %v, want the damaged state", names, err)
	}
}
