// Package store keeps a tree on disk, in a Pebble database. A batch is one transaction. Once Wait has returned for it,
// it survives kill -9, power loss and a write cut off at any byte.
//
// A zxid is never used twice, even if it was answered without a commit: every batch reserves zxids ahead of its own,
// and a store that was not closed cleanly opens at the end of the reserve.
//
// There are no snapshots: Pebble's log and tables are the state, and opening a store reads all of it into a tree.
package store

// Opening and closing a store; its keys.

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Keys in the database are one letter for the kind, then the name. Parents sort before their children.
const (
	prefixMeta    = 'm'
	prefixNode    = 'n'
	prefixData    = 'd'
	prefixSession = 's'
)

var (
	keyFormat = []byte("mformat")
	keySecret = []byte("msecret")
	keySeed   = []byte("mseed")
	keyZxid   = []byte("mzxid")
)

// format is the version of the layout of keys and records.
const format = 1

// reserve is how many zxids a batch reserves ahead of its own. A crash skips at most that many.
const reserve = 512

// tableSize is the size of a table in memory, in bytes. Small tables are written often, which costs the disk little.
const tableSize = 4 << 20

// secretLen is the length of the secret behind session passwords, in bytes.
const secretLen = 32

// Config configures Open.
type Config struct {
	Dir    string       // created if missing; other users cannot read the store, whatever the mode of Dir is
	FS     vfs.FS       // the operating system's if nil
	Memory int          // size at which a table in memory is written to disk, in bytes; 4 MiB if 0
	Logger *slog.Logger // silent if nil
	damage string       // what errors say that a failure does; of a store in use if empty
	_      struct{}
}

// Store is an open database. Different goroutines may make, apply and wait for batches; one goroutine may use the rest.
type Store struct {
	dir    string
	db     *pebble.DB
	side   *sideLog
	spare  *spareFS // nil with a file system of a test
	unlock io.Closer
	logger *slog.Logger
	damage string // as in Config

	secret []byte
	seed   int64
	zxid   int64
	limit  atomic.Int64 // the last zxid reserved by the batches applied so far

	room     uint64        // how many bytes the tables in memory may have; set once
	rotated  atomic.Bool   // there is a new table in memory since the last awaitRoom
	written  chan struct{} // has a value when tables were written; buffered
	opening  atomic.Bool   // Open has not returned
	failOnce sync.Once
	failed   chan struct{} // closed by fail
	err      error         // why; written once before failed is closed
	stuck    atomic.Bool   // a commit panicked inside Pebble, which may still hold locks
}

// Open opens the store of a directory and locks the directory. It returns an InUseError if another process holds that
// lock, and the error of Err if a write to the disk fails. An empty or missing directory becomes an empty store at zxid
// 0. After a failed write the directory may stay locked until the process ends.
func Open(cfg Config) (*Store, error) {
	fs := cfg.FS
	if fs == nil {
		fs = vfs.Default
	}
	if _, err := makeDir(fs, cfg.Dir); err != nil {
		return nil, fmt.Errorf("store: cannot create the data directory: %w", err)
	}
	unlock, err := lockDir(fs, cfg.Dir, cfg.FS == nil)
	if err != nil {
		return nil, err
	}
	if err := finishSwap(fs, cfg.Dir); err != nil {
		return nil, errors.Join(err, unlock.Close())
	}
	return openIn(cfg, fs, unlock)
}

// openIn opens the store of a directory that exists, and that unlock unlocks.
func openIn(cfg Config, fs vfs.FS, unlock io.Closer) (_ *Store, err error) {
	s := &Store{
		dir: cfg.Dir, logger: cfg.Logger, unlock: unlock, failed: make(chan struct{}), written: make(chan struct{}, 1),
		damage: cmp.Or(cfg.damage, "only unacknowledged writes may be lost"),
	}
	if cfg.FS == nil {
		s.spare = newSpareFS(fs)
		fs = s.spare
		defer func() {
			if err != nil {
				s.spare.close()
			}
		}()
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if err := makePrivate(cfg.FS, cfg.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot make %s unreadable for other users: %w", cfg.Dir, err),
			unlock.Close())
	}
	if err := s.open(fs, cfg); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the database. It returns when that has failed, also if Pebble then neither returns nor gives up: for a
// table that it cannot write, it tries again without a pause. What is left of it then waits for the end of the process,
// and so does the lock of the directory.
func (s *Store) open(fs vfs.FS, cfg Config) error {
	s.opening.Store(true)
	done := make(chan struct{})
	var opened, err error
	go func() {
		defer close(done)
		opened = s.openDB(fs, cfg)
	}()
	select {
	case <-done:
		s.opening.Store(false)
		err = opened
	case <-s.failed:
	}
	switch first := s.Err(); {
	case first != nil:
		go func() {
			<-done
			_ = s.giveUp() // the failure has been told
		}()
		return first
	case err != nil:
		return errors.Join(fmt.Errorf("store: cannot open %s: %w", cfg.Dir, err), s.giveUp())
	}
	return s.startMerging()
}

// startMerging writes a table if there are too many, so that they are merged: see options.
func (s *Store) startMerging() error {
	if s.db.Metrics().Levels[0].Sublevels < maxLevels/2 {
		return nil
	}
	if _, err := s.db.AsyncFlush(); err != nil {
		return errors.Join(fmt.Errorf("store: cannot merge tables in %s: %w", s.dir, err), s.giveUp())
	}
	return nil
}

// giveUp closes what openDB has opened.
func (s *Store) giveUp() error {
	if s.stuck.Load() {
		return nil // as in Close
	}
	var err error
	if s.db != nil {
		err = s.closeDB()
	}
	return errors.Join(err, s.unlock.Close())
}

// openDB opens the database and the side log, and reads what is in them about the store.
func (s *Store) openDB(fs vfs.FS, cfg Config) (err error) {
	defer func() {
		if r := recover(); r != nil { // as in apply
			s.stuck.Store(true)
			err = fmt.Errorf("%v", r)
		}
	}()
	if s.db, err = pebble.Open(fs.PathJoin(cfg.Dir, dbName), s.options(fs, cfg.Memory)); err != nil {
		s.db = nil
		return err
	}
	if s.side, err = openSide(fs, cfg.Dir); err != nil {
		return err
	}
	return s.loadMeta()
}

// options keep Pebble's caches small: the server has all of its state in memory already.
func (s *Store) options(fs vfs.FS, memory int) *pebble.Options {
	size := uint64(cmp.Or(memory, tableSize))
	s.room = 4 * size
	o := &pebble.Options{
		FS:                          diskFS{fs, s},
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   1 << 20,
		MemTableSize:                size,
		MemTableStopWritesThreshold: 16, // awaitRoom waits before
		L0StopWritesThreshold:       4 * maxLevels,
		MaxOpenFiles:                64,
		DisableTableStats:           true,
		Logger:                      pebbleLogger{s},
		EventListener:               s.events(),
		// If Pebble's Open fails, it closes what it has opened under a merge that goes on, which then panics. So none
		// begins before the first table that is written afterwards.
		CompactionConcurrencyRange: func() (lower, upper int) {
			if s.opening.Load() {
				return 0, 1
			}
			return 1, 1
		},
	}
	o.Experimental.L0CompactionConcurrency = math.MaxInt32 // or many tables would allow one more
	return o
}

func (s *Store) loadMeta() error {
	version, err := s.getInt(keyFormat)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if err := s.create(); err != nil {
			return err
		}
		return s.side.recover(s.db, 0)
	case err != nil:
		return err
	case version != format:
		return fmt.Errorf("unknown format version %d, want %d: use the program version that wrote it", version, format)
	}
	if s.secret, err = s.get(keySecret); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	if s.seed, err = s.getInt(keySeed); err != nil {
		return fmt.Errorf("session seed: %w", err)
	}
	zxid, _, err := s.getZxids()
	if err == nil {
		err = s.side.recover(s.db, zxid)
	}
	if err != nil {
		return err
	}
	return s.loadZxid()
}

// getZxids returns the last zxid in the database and the end of the reserve.
func (s *Store) getZxids() (zxid, limit int64, err error) {
	v, err := s.get(keyZxid)
	if err != nil {
		return 0, 0, fmt.Errorf("zxid: %w", err)
	}
	if len(v) != 16 {
		return 0, 0, fmt.Errorf("zxid: record of %d bytes, want 16", len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:])), nil
}

// loadZxid opens at the end of the reserve. After a clean close that is the last zxid itself. After a crash, zxids up
// to the end of the reserve may have been answered.
func (s *Store) loadZxid() error {
	_, limit, err := s.getZxids()
	if err != nil {
		return err
	}
	s.limit.Store(limit)
	s.zxid = limit
	return nil
}

func (s *Store) create() error {
	s.secret = make([]byte, secretLen)
	rand.Read(s.secret)
	b := s.db.NewBatch()
	defer b.Close()
	for key, value := range map[string][]byte{
		string(keyFormat): binary.BigEndian.AppendUint64(nil, format),
		string(keySecret): s.secret,
		string(keySeed):   make([]byte, 8),
		string(keyZxid):   make([]byte, 16),
	} {
		if err := b.Set([]byte(key), value, nil); err != nil {
			return err
		}
	}
	return s.db.Apply(b, pebble.Sync)
}

func (s *Store) get(key []byte) ([]byte, error) { return getFrom(s.db, key) }

func (s *Store) getInt(key []byte) (int64, error) {
	v, err := s.get(key)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("record %s of %d bytes, want 8", key, len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

// Secret returns random bytes that were generated when the store was created.
func (s *Store) Secret() []byte { return s.secret }

// Seed returns the last session id passed to SetSeed, 0 if there was none.
func (s *Store) Seed() int64 { return s.seed }

// Zxid returns the zxid at which the store was opened. No zxid above it was ever answered.
func (s *Store) Zxid() int64 { return s.zxid }

// Size returns how many bytes the store takes on disk.
func (s *Store) Size() int64 { return int64(s.db.Metrics().DiskSpaceUsage()) }

// Failed returns a channel that is closed when a write to the disk has failed. From then on no batch succeeds.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err returns why the store has failed, nil if it has not.
func (s *Store) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// fail records the first failure.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		s.err = fmt.Errorf("store: cannot write to %s: %w; %s", s.dir, err, s.damage)
		close(s.failed)
	})
}

// Close releases the reserved zxids above zxid, which is the last one used, closes the database and unlocks the
// directory.
func (s *Store) Close(zxid int64) error {
	if s.spare != nil {
		defer s.spare.close()
	}
	if s.stuck.Load() {
		// Pebble cannot be closed. The directory stays locked until the process ends, because Pebble's goroutines may
		// still write to it.
		return s.Err()
	}
	if s.Err() == nil {
		s.endReserve(zxid)
	}
	err := s.closeDB()
	if s.Err() != nil {
		err = nil // a consequence of the failure
	}
	return errors.Join(s.Err(), err, s.unlock.Close())
}

// endReserve ends the reserve at zxid. The store fails if that does not reach the disk.
func (s *Store) endReserve(zxid int64) {
	defer func() {
		if r := recover(); r != nil { // as in apply
			s.fail(fmt.Errorf("%v", r))
		}
	}()
	v := binary.BigEndian.AppendUint64(nil, uint64(zxid))
	if err := s.db.Set(keyZxid, binary.BigEndian.AppendUint64(v, uint64(zxid)), pebble.Sync); err != nil {
		s.fail(err)
	}
}

func (s *Store) closeDB() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("store: closing the database: %v", r)
		}
	}()
	err = s.db.Close()
	if s.side != nil {
		err = errors.Join(err, s.side.file.Close())
	}
	return err
}
