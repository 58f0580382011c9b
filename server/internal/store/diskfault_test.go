package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// diskFaults are disks that fail while they are written to.
var diskFaults = map[string]func(errorfs.Op) bool{"all": writes, "tables": writesTo(".sst"), "logs": writesTo(".log")}

// full returns a disk that is full from its nth write on.
func full(disk vfs.FS, nth int64, match func(errorfs.Op) bool) (vfs.FS, *faultsFrom) {
	f := &faultsFrom{nth: nth, match: match, err: syscall.ENOSPC}
	return errorfs.Wrap(disk, f), f
}

// A disk that becomes full at any step fails the writes that are under way, and closing the store returns. Pebble by
// itself ends the process when it cannot begin another log, and lets a writer wait for ever for tables that cannot be
// written.
func TestDiskThatIsFullFailsWritesAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, match := range diskFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for nth := int64(1); ; nth += int64(soak.Pick(7, 1)) {
				mem := vfs.NewCrashableMem()
				open(t, store.Config{Dir: "data", FS: mem}).Close(0)
				disk, f := full(mem, nth, match)
				acknowledged, err := writeMuch(t, disk)
				if f.seen.Load() < nth {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if err != nil && !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
					t.Errorf("from operation %d: got %v, want %v", nth, err, syscall.ENOSPC)
				}
				left := mem.CrashClone(vfs.CrashCloneCfg{}) // what has failed may keep locks
				s := open(t, store.Config{Dir: "data", FS: left, Memory: 64 << 10})
				if got := load(t, s).Zxid(); got < acknowledged {
					t.Errorf("from operation %d: got zxid %d, want at least %d", nth, got, acknowledged)
				}
				if err := s.Close(s.Zxid()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// writeMuch applies batches while others wait to be durable, as the server does, and returns the last that is.
func writeMuch(t *testing.T, disk vfs.FS) (acknowledged int64, err error) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: "data", FS: disk, Memory: 64 << 10})
	if err != nil {
		return 0, err
	}
	tr := load(t, s)
	type applied struct {
		b    *store.Batch
		zxid int64
	}
	batches, waited := make(chan applied, 8), make(chan error)
	go func() {
		var first error
		for a := range batches {
			if _, err := a.b.Wait(); first == nil && err != nil {
				first = err
			}
			if first == nil {
				acknowledged = a.zxid
			}
		}
		waited <- first
	}()
	var failed error
	for i := range 40 {
		r := tr.CreateSession(tr.Zxid()+1, int64(100+i), 4000)
		if i > 0 {
			r = create(tr, fmt.Sprintf("/n%d", i), make([]byte, 20_000))
		}
		b := s.NewBatch()
		b.Add(r.Changes)
		if failed = b.Apply(tr.Zxid()); failed != nil {
			break
		}
		batches <- applied{b, tr.Zxid()}
	}
	close(batches)
	failed = errors.Join(failed, <-waited)
	return acknowledged, errors.Join(failed, s.Close(tr.Zxid()))
}

// heldTables holds back each table until the channel is closed, and then there is no room for it.
type heldTables chan struct{}

// String names the injector.
func (h heldTables) String() string { return "held tables" }

// MaybeError waits.
func (h heldTables) MaybeError(op errorfs.Op) error {
	if op.Kind != errorfs.OpCreate || !strings.HasSuffix(op.Path, ".sst") {
		return nil
	}
	<-h
	return syscall.ENOSPC
}

// A write that waits for a slow disk ends when that fails, and so does Close.
func TestWriteThatWaitsForTablesEndsWhenTheyCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := make(heldTables)
		s := open(t, store.Config{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), held), Memory: 64 << 10})
		tr := load(t, s)
		commit(t, s, tr, tr.CreateSession(1, 7, 4000))
		applied, ended := 0, make(chan error)
		go func() {
			for {
				r := create(tr, fmt.Sprintf("/n%d", applied), make([]byte, 20_000))
				b := s.NewBatch()
				b.Add(r.Changes)
				err := b.Apply(tr.Zxid())
				if err == nil {
					_, err = b.Wait()
				}
				if err != nil {
					ended <- err
					return
				}
				applied++
			}
		}()
		synctest.Wait() // until it waits for room
		if applied < 10 || applied > 30 {
			t.Errorf("got %d writes of 20 kB before one waits, want about the 256 kB that may be in memory", applied)
		}
		close(held)
		if err := <-ended; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want %v", err, syscall.ENOSPC)
		}
		if err := s.Close(tr.Zxid()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close: got %v, want %v", err, syscall.ENOSPC)
		}
	})
}

// A restore onto a disk that is full, or becomes full, says so.
func TestRestoreOnAFullDiskReturnsWhy(t *testing.T) {
	t.Parallel()
	saved := large(t)
	for name, match := range diskFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for nth := int64(1); ; nth += int64(soak.Pick(7, 1)) {
				disk, f := full(vfs.NewMem(), nth, match)
				_, err := store.Restore(t.Context(), store.RestoreConfig{
					Dir: "data", FS: disk, Now: ticks(), Memory: 64 << 10,
				}, bytes.NewReader(saved))
				switch {
				case f.seen.Load() < nth:
					if err != nil {
						t.Fatal(err)
					}
					return
				case err != nil && !strings.Contains(err.Error(), syscall.ENOSPC.Error()):
					t.Errorf("from operation %d: got %v, want %v", nth, err, syscall.ENOSPC)
				}
			}
		})
	}
}

// large returns a backup of more than several tables in memory hold.
func large(t *testing.T) []byte {
	t.Helper()
	s := open(t, store.Config{Dir: "x", FS: vfs.NewMem()})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	for i := range 25 {
		commit(t, s, tr, create(tr, fmt.Sprintf("/n%d", i), make([]byte, 50_000)))
	}
	saved := backedUp(t, s)
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	return saved
}
