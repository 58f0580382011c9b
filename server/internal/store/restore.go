package store

// Making a store from a backup.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/server/internal/backup"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// RestoreConfig configures Restore.
type RestoreConfig struct {
	Dir     string
	FS      vfs.FS // the operating system's if nil
	Replace bool   // the directory may have a state, which is put aside
	// Above is a zxid that the new state's must exceed. It stands in for the zxid of the state that is replaced, if
	// that cannot be opened.
	Above  int64
	Now    func() time.Time // time.Now if nil
	Memory int              // as in Config; 32 MiB if 0
	Logger *slog.Logger
}

// Restored says what Restore has done.
type Restored struct {
	Manifest *backup.Manifest
	Zxid     int64  // of the new state
	Nodes    int64  // in it
	Dropped  int64  // nodes of sessions
	Replaced string // the directory that has the former state now, "" if there was none
}

// ErrNotEmpty is returned by Restore if the directory has a state, and Replace is not set.
var ErrNotEmpty = errors.New("the data directory has a state already")

// LastZxid is the end of the zxids that restored states may begin at: larger ones make no fencing tokens.
const LastZxid = 1<<51 - 1<<40

// firstSecond is when the seconds begin that are in the zxids of restored states.
var firstSecond = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Restore makes the store of a directory from a backup. It begins at a zxid above that of the backup, above that of the
// state that it replaces, and above that of every state that was restored in an earlier second, anywhere. Sessions and
// their nodes are left out.
//
// The new state is built beside the one that there is, and read back. Then it takes its place in a step that a crash
// cannot divide: see finishSwap.
func Restore(ctx context.Context, cfg RestoreConfig, r io.Reader) (_ *Restored, err error) {
	fs := cfg.FS
	if fs == nil {
		fs = vfs.Default
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	made, err := makeDir(fs, cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("store: cannot create the data directory: %w", err)
	}
	unlock, err := lockDir(fs, cfg.Dir, cfg.FS == nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock.Close()) }()
	swapping := false
	defer func() {
		if err != nil && !swapping {
			unmake(fs, cfg.Dir, made)
		}
	}()
	if err := finishSwap(fs, cfg.Dir); err != nil {
		return nil, err
	}
	there, err := hasDB(fs, cfg.Dir)
	switch {
	case err != nil:
		return nil, err
	case there && !cfg.Replace:
		return nil, fmt.Errorf("store: %s: %w", cfg.Dir, ErrNotEmpty)
	}
	if now := cfg.Now(); now.Before(firstSecond) {
		return nil, fmt.Errorf("store: the clock says %s: set it first, because tokens must be larger than those of "+
			"all earlier restores", now.UTC().Format(time.DateTime))
	}
	building := fs.PathJoin(cfg.Dir, buildName)
	if err := fs.RemoveAll(building); err != nil { // of a restore that was killed
		return nil, err
	}
	done, err := build(ctx, &cfg, fs, building, r, there)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, fs.RemoveAll(building))
	}
	aside := ""
	if there {
		aside = fmt.Sprintf("replaced-%x", done.Zxid)
		done.Replaced = fs.PathJoin(cfg.Dir, aside)
	}
	owner := func() error {
		if cfg.FS != nil {
			return nil // file systems of tests have no users
		}
		return keepOwner(cfg.Dir)
	}
	if err := owner(); err != nil {
		return nil, errors.Join(err, fs.RemoveAll(building))
	}
	swapping = true
	if err := beginSwap(fs, cfg.Dir, aside); err != nil {
		return nil, err
	}
	return done, errors.Join(finishSwap(fs, cfg.Dir), owner())
}

// unmake removes the directories that makeDir has made and the files of the lock, which is held. What cannot be removed
// stays: it holds no state, or is another process's.
func unmake(fs vfs.FS, dir string, made []string) {
	if len(made) == 0 {
		return
	}
	_ = fs.Remove(pidFile(fs, dir))
	_ = fs.Remove(fs.PathJoin(dir, "lock"))
	for _, d := range made {
		_ = fs.Remove(d)
	}
}

// build makes the new state in the directory building.
func build(
	ctx context.Context, cfg *RestoreConfig, fs vfs.FS, building string, r io.Reader, there bool,
) (*Restored, error) {
	open := func(dir string) (*Store, error) {
		// The directory of cfg is locked, and these need no lock of their own.
		memory := cmp.Or(cfg.Memory, restoreTable)
		return openIn(Config{
			Dir: dir, FS: cfg.FS, Memory: memory, Logger: cfg.Logger, damage: "the state that was there is unchanged",
		}, fs, unlocked{})
	}
	if _, err := makeDir(fs, building); err != nil {
		return nil, err
	}
	s, err := open(building)
	if err != nil {
		return nil, err
	}
	m, err := s.fill(ctx, r)
	if err != nil {
		return nil, s.closeAfter(err, 0)
	}
	zxid, seed := max(m.Reserved, m.Zxid, cfg.Above)+1, m.Seed
	if there {
		old, err := replaced(cfg.Dir, open)
		switch {
		case err == nil:
			zxid, seed = max(zxid, old.zxid+1), max(seed, old.seed)
		case cfg.Above == 0:
			err = fmt.Errorf("store: the state in %s cannot be read, so it is not known which tokens it has given "+
				"out: name one that is not below any of them: %w", cfg.Dir, err)
			return nil, s.closeAfter(err, 0)
		}
	}
	second := cfg.Now().Unix()
	zxid = max(zxid, (second-firstSecond.Unix())<<20)
	if zxid > LastZxid {
		return nil, s.closeAfter(fmt.Errorf("store: the zxid would be %d, and the last one with a token is %d",
			zxid, int64(LastZxid)), 0)
	}
	done, err := s.complete(m, zxid, seed)
	if err != nil {
		return nil, err
	}
	s, err = open(building)
	if err != nil {
		return nil, err
	}
	_, loaded, err := s.load(tree.Config{})
	if err == nil && (loaded.nodes != done.Nodes || s.zxid != zxid || len(loaded.changes) > 0) {
		err = fmt.Errorf("store: what was written has %d nodes at zxid %d, want %d at %d", loaded.nodes, s.zxid,
			done.Nodes, zxid)
	}
	if err := s.closeAfter(err, zxid); err != nil {
		return nil, err
	}
	// A restore that begins when this one has ended must have another second.
	for wait := time.Unix(second+1, 0).Sub(cfg.Now()); wait > 0; wait = time.Unix(second+1, 0).Sub(cfg.Now()) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(wait, time.Second)):
		}
		if cfg.Now().Unix() < second {
			return nil, errors.New("store: the clock was set back meanwhile")
		}
	}
	return done, nil
}

// restoreTable is the size of a table in memory while a store is filled.
const restoreTable = 32 << 20

// unlocked is the lock of a directory that needs none.
type unlocked struct{}

// Close does nothing.
func (unlocked) Close() error { return nil }

// replaced opens the store that is to be replaced, for what it says of itself. Afterwards the directory of its database
// is all of it: nothing in the side log is needed any more.
func replaced(dir string, open func(string) (*Store, error)) (*Store, error) {
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	return s, s.Close(s.Zxid())
}

// fill writes the records of a backup into a new store.
func (s *Store) fill(ctx context.Context, r io.Reader) (*backup.Manifest, error) {
	const size = 1 << 20
	b := s.db.NewBatch()
	flush := func() error {
		s.awaitRoom()
		if err := s.Err(); err != nil {
			return err
		}
		// One sync at the end covers all of them.
		err := errors.Join(s.db.Apply(b, pebble.NoSync), b.Close(), context.Cause(ctx), s.Err())
		b = s.db.NewBatch()
		return err
	}
	m, err := backup.Read(r, func(key, value []byte) error {
		if len(key) < 2 || key[0] != prefixNode && key[0] != prefixData {
			return fmt.Errorf("%w: it has a record %.20q", backup.ErrDamaged, key)
		}
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		if b.Len() > size {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return m, errors.Join(err, b.Close())
}

// complete deletes the nodes of sessions, ends the new store at zxid, and closes it.
func (s *Store) complete(m *backup.Manifest, zxid, seed int64) (*Restored, error) {
	s.zxid = zxid - 1 // zxid is that of the deletion
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], uint64(seed))
	err := s.db.Set(keySeed, v[:], pebble.Sync)
	var loaded loaded
	if err == nil {
		_, loaded, err = s.load(tree.Config{})
	}
	done := &Restored{Manifest: m, Zxid: zxid, Nodes: loaded.nodes}
	if err == nil && loaded.nodes != m.Nodes {
		err = fmt.Errorf("%w: it has %d nodes, and its manifest says %d", backup.ErrDamaged, loaded.nodes, m.Nodes)
	}
	if err == nil && len(loaded.changes) > 0 {
		err = s.applyChanges(zxid, loaded.changes)
		for _, c := range loaded.changes {
			if c.Kind == tree.RemoveNode {
				done.Dropped++
			}
		}
		done.Nodes -= done.Dropped
	}
	return done, s.closeAfter(err, zxid)
}

// closeAfter closes the store after err, which may be nil. Of a failure of the store it says nothing else: the others
// follow from it.
func (s *Store) closeAfter(err error, zxid int64) error {
	closed := s.Close(zxid)
	return cmp.Or(s.Err(), errors.Join(err, closed))
}
