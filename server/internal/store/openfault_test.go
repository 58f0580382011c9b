package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// faultsFrom fails every operation that match accepts, from the nth one on.
type faultsFrom struct {
	nth   int64
	match func(errorfs.Op) bool
	err   error
	seen  atomic.Int64
}

func (f *faultsFrom) String() string { return fmt.Sprintf("from operation %d: %v", f.nth, f.err) }

func (f *faultsFrom) MaybeError(op errorfs.Op) error {
	if f.match(op) && f.seen.Add(1) >= f.nth {
		return f.err
	}
	return nil
}

// A disk that fails while the store is opened is an error of Open, at whichever step it begins to fail. Pebble by
// itself tries without end to write a table.
func TestOpenOnAFailingDiskReturnsWhy(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		match func(errorfs.Op) bool
		err   error
	}{
		"disk full":                {match: writes, err: syscall.ENOSPC},
		"no permission for tables": {match: writesTo(".sst"), err: syscall.EACCES},
		"no descriptors":           {match: opens, err: syscall.EMFILE},
		"broken reads": {
			match: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt },
			err:   syscall.EIO,
		},
	} {
		for _, used := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, used before: %t", name, used), func(t *testing.T) {
				t.Parallel()
				opened, filled := false, vfs.NewCrashableMem()
				if used {
					filled = fillAndCrash(t, filled)
				}
				for nth := int64(1); !opened; nth++ {
					if nth > 300 {
						t.Fatal("it never opens")
					}
					disk := filled.CrashClone(vfs.CrashCloneCfg{})
					f := &faultsFrom{nth: nth, match: fault.match, err: fault.err}
					s, err := store.Open(store.Config{Dir: "data", FS: errorfs.Wrap(disk, f), Memory: 64 << 10})
					switch {
					case err == nil:
						opened = f.seen.Load() < nth // without any fault
						_ = s.Close(s.Zxid())        // which may fail then
					case !errors.Is(err, fault.err) && !strings.Contains(err.Error(), fault.err.Error()):
						t.Errorf("from operation %d: got %v, want %v", nth, err, fault.err)
					}
				}
			})
		}
	}
}

func writes(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// writesTo returns what accepts writes to files whose names end so.
func writesTo(suffix string) func(errorfs.Op) bool {
	return func(op errorfs.Op) bool { return writes(op) && strings.HasSuffix(op.Path, suffix) }
}

func opens(op errorfs.Op) bool {
	return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpOpenDir
}

// fillAndCrash makes a store whose log has more than a table in memory holds, so that it is written when it is opened.
func fillAndCrash(t *testing.T, disk *vfs.MemFS) (crashed *vfs.MemFS) {
	t.Helper()
	s := open(t, store.Config{Dir: "data", FS: disk})
	tr := load(t, s)
	commit(t, s, tr, tr.CreateSession(1, 7, 4000))
	for i := range 4 {
		commit(t, s, tr, create(tr, fmt.Sprintf("/n%d", i), make([]byte, 60_000)))
	}
	crashed = disk.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(tr.Zxid()); err != nil {
		t.Fatal(err)
	}
	return crashed
}
