// Package store keeps a tree on disk, as records of a Pebble database: one batch is one transaction, and what a batch's
// Wait has returned for survives kill -9, power loss and a cut at any byte.
//
// The store promises that a zxid is never used twice, also one that was answered without a commit: every batch reserves
// zxids ahead, and a store that was not closed cleanly opens at the end of its reserve. See Open.
package store

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The database's keys: one letter for the kind, then the name. Paths sort parents before children.
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

// reserve is how many zxids a batch takes ahead of its own. A crash skips at most that many.
const reserve = 512

// tableSize is the size of a table in memory, in bytes. Small ones are written out often, which the disk hardly notices.
const tableSize = 4 << 20

// secretLen is the length of the secret that session passwords are made from, in bytes.
const secretLen = 32

// Config says where a store lives.
type Config struct {
	Dir    string       // created if it is not there. Other users cannot read what the store keeps in it, whatever its own mode is
	FS     vfs.FS       // the operating system's if nil
	Memory int          // size of a table in memory before it is written out, in bytes; 4 MiB if 0
	Logger *slog.Logger // silent if nil
	_      struct{}
}

// Store is an open database. Batches may be made, applied and waited for by different goroutines; the rest is for one.
type Store struct {
	dir    string
	db     *pebble.DB
	side   *sideLog
	unlock io.Closer
	logger *slog.Logger

	secret []byte
	seed   int64
	zxid   int64
	limit  atomic.Int64 // zxids up to this one are reserved by what has been applied

	failOnce sync.Once
	failed   chan struct{} // closed by fail
	err      error         // why; written once before failed is closed
	stuck    bool          // a commit died inside Pebble, whose locks are therefore not to be trusted
}

// Open opens the store of a directory and takes the directory's lock. An InUseError says that another process has it.
// A directory that is empty or not there becomes an empty store, at zxid 0.
func Open(cfg Config) (*Store, error) {
	fs := cfg.FS
	if fs == nil {
		fs = vfs.Default
	}
	s := &Store{dir: cfg.Dir, logger: cfg.Logger, failed: make(chan struct{})}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if err := makeDir(fs, cfg.Dir); err != nil {
		return nil, fmt.Errorf("store: cannot make the data directory: %w", err)
	}
	unlock, err := lockDir(fs, cfg.Dir)
	if err != nil {
		return nil, err
	}
	s.unlock = unlock
	if err := makePrivate(cfg.FS, cfg.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot keep others out of %s: %w", cfg.Dir, err), unlock.Close())
	}
	if s.db, err = pebble.Open(fs.PathJoin(cfg.Dir, dbName), s.options(fs, cfg.Memory)); err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot open %s: %w", cfg.Dir, s.cause(err)), unlock.Close())
	}
	if s.side, err = openSide(fs, cfg.Dir); err == nil {
		err = s.loadMeta()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot open %s: %w", cfg.Dir, s.cause(err)), s.closeDB(), unlock.Close())
	}
	return s, nil
}

// options keep Pebble small: a server's state is in memory already, so that caches would hold it twice.
func (s *Store) options(fs vfs.FS, memory int) *pebble.Options {
	return &pebble.Options{
		FS:                          diskFS{fs},
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   1 << 20,
		MemTableSize:                uint64(cmp.Or(memory, tableSize)),
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                64,
		DisableTableStats:           true,
		Logger:                      pebbleLogger{s},
		EventListener:               s.events(),
	}
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
		return fmt.Errorf("its format is version %d, this program knows version %d: use the program that wrote it", version, format)
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

// getZxids returns the last zxid that is in the database, and the end of its reserve.
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

// loadZxid opens at the end of the reserve: after a clean close that is the last zxid itself; after a crash, zxids up to
// there may have been answered.
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

func (s *Store) get(key []byte) ([]byte, error) {
	v, closer, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	v = append([]byte(nil), v...)
	return v, closer.Close()
}

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

// Secret returns the random bytes that were drawn when the store was created.
func (s *Store) Secret() []byte { return s.secret }

// Seed returns the last session id that was given to SetSeed, 0 if none was.
func (s *Store) Seed() int64 { return s.seed }

// Zxid returns the zxid at which the store was opened: no zxid above it was ever answered.
func (s *Store) Zxid() int64 { return s.zxid }

// Size returns the bytes that the store takes on disk.
func (s *Store) Size() int64 { return int64(s.db.Metrics().DiskSpaceUsage()) }

// Failed returns a channel that is closed when the disk has refused a write. From then on no batch succeeds.
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
		s.err = fmt.Errorf("store: cannot write to %s: %w; what was not acknowledged may be lost, nothing else is", s.dir, err)
		close(s.failed)
	})
}

// cause prefers the failure that Pebble has logged to the error that followed from it.
func (s *Store) cause(err error) error {
	if first := s.Err(); first != nil {
		return errors.Unwrap(first)
	}
	return err
}

// Close gives back the zxids that were reserved above zxid, the last one used, closes the database and releases the directory.
func (s *Store) Close(zxid int64) error {
	if s.stuck {
		// Pebble cannot be closed any more. The directory stays locked until the process ends, because Pebble's
		// goroutines may still touch it.
		return s.Err()
	}
	if s.Err() == nil {
		s.giveBack(zxid)
	}
	err := s.closeDB()
	if s.Err() != nil {
		err = nil // it follows from the failure
	}
	return errors.Join(s.Err(), err, s.unlock.Close())
}

// giveBack ends the reserve at zxid. It makes the store fail if that does not get to the disk.
func (s *Store) giveBack(zxid int64) {
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
