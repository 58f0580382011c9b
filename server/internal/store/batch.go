package store

// A transaction.

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// Batch is one transaction: after a crash the store contains all of it or nothing. Different goroutines may fill, apply
// and wait for batches, but of all batches only one at a time may be in Apply or ApplyInline, and only one in Wait or
// ApplyInline.
type Batch struct {
	s         *Store
	b         *pebble.Batch
	key       []byte // scratch
	err       error
	limit     int64
	inSideLog bool // the transaction is durable by the side log, not by Pebble's log
}

// NewBatch returns an empty transaction.
func (s *Store) NewBatch() *Batch { return &Batch{s: s, b: s.db.NewBatch()} }

// Add adds the changes of a write. It keeps no reference to them.
func (b *Batch) Add(changes []tree.Change) {
	for i := range changes {
		if err := b.add(&changes[i]); err != nil && b.err == nil {
			b.err = err
		}
	}
}

func (b *Batch) add(c *tree.Change) error {
	switch c.Kind {
	case tree.PutNode:
		return b.b.Set(b.path(prefixNode, c.Path), c.Value, nil)
	case tree.PutData:
		return b.b.Set(b.path(prefixData, c.Path), c.Value, nil)
	case tree.RemoveData:
		return b.b.Delete(b.path(prefixData, c.Path), nil)
	case tree.RemoveNode:
		if err := b.b.Delete(b.path(prefixNode, c.Path), nil); err != nil {
			return err
		}
		return b.b.Delete(b.path(prefixData, c.Path), nil)
	case tree.PutSession:
		var v [4]byte
		binary.BigEndian.PutUint32(v[:], uint32(c.Timeout))
		return b.b.Set(b.session(c.Session), v[:], nil)
	case tree.RemoveSession:
		return b.b.Delete(b.session(c.Session), nil)
	default:
		return fmt.Errorf("store: unknown kind of change %d", c.Kind)
	}
}

func (b *Batch) path(prefix byte, path string) []byte {
	b.key = append(append(b.key[:0], prefix), path...)
	return b.key
}

func (b *Batch) session(id int64) []byte {
	b.key = binary.BigEndian.AppendUint64(append(b.key[:0], prefixSession), uint64(id))
	return b.key
}

// SetSeed stores the last session id that was given out, so that no later id repeats it.
func (b *Batch) SetSeed(id int64) {
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], uint64(id))
	if err := b.b.Set(keySeed, v[:], nil); err != nil && b.err == nil {
		b.err = err
	}
}

// Apply gives the transaction to Pebble's log, as of zxid, and returns before it is durable. Transactions reach the
// disk in the order in which they were applied. After each Apply that returned nil the caller must call Wait exactly
// once.
//
// Apply usually touches only memory. But when it fills Pebble's table in memory, Pebble begins a new log, and Apply
// waits until the old one is synced. When tables fill faster than the disk takes them, it waits until they are written,
// or the store has failed.
func (b *Batch) Apply(zxid int64) error {
	return b.apply(zxid, func() error { return b.s.db.ApplyNoSyncWait(b.b, pebble.Sync) })
}

// ApplyInline is like Apply, but Wait then syncs the transaction on the calling goroutine, which is faster. Wait must
// have returned for all earlier transactions, and must return for this one before the next call of ApplyInline.
func (b *Batch) ApplyInline(zxid int64) error {
	return b.apply(zxid, func() error {
		if b.inSideLog = b.s.side.prepare(zxid, b.b.Repr()); b.inSideLog {
			return b.s.db.Apply(b.b, pebble.NoSync)
		}
		return b.s.db.ApplyNoSyncWait(b.b, pebble.Sync)
	})
}

func (b *Batch) apply(zxid int64, commit func() error) (err error) {
	s := b.s
	s.awaitRoom()
	if err := s.Err(); err != nil {
		return err
	}
	if b.err != nil {
		s.fail(b.err)
		return s.Err()
	}
	b.limit = s.limit.Load()
	if zxid+reserve/2 >= b.limit {
		b.limit = zxid + reserve
	}
	var v [16]byte
	binary.BigEndian.PutUint64(v[:8], uint64(zxid))
	binary.BigEndian.PutUint64(v[8:], uint64(b.limit))
	if err := b.b.Set(keyZxid, v[:], nil); err != nil {
		s.fail(err)
		return s.Err()
	}
	defer func() {
		if r := recover(); r != nil { // of Pebble's
			s.stuck.Store(true)
			s.fail(fmt.Errorf("%v", r))
			err = s.Err()
		}
	}()
	if err := commit(); err != nil {
		s.fail(err)
	}
	s.side.applied(zxid)
	s.limit.Store(b.limit)
	return s.Err()
}

// Reserved returns the last zxid that the applied transactions have reserved.
func (s *Store) Reserved() int64 { return s.limit.Load() }

// Wait waits until the transaction is on disk. It returns the last zxid that is reserved there: up to it the server may
// answer without another transaction. After an error the transaction may be lost and the store has failed.
func (b *Batch) Wait() (limit int64, err error) {
	if err := b.sync(); err != nil {
		b.s.fail(err)
		return 0, b.s.Err()
	}
	if err := b.b.Close(); err != nil {
		b.s.fail(err)
		return 0, b.s.Err()
	}
	return b.limit, nil
}

func (b *Batch) sync() error {
	if b.inSideLog {
		return b.s.side.write()
	}
	if err := cmp.Or(b.b.SyncWait(), b.s.Err()); err != nil { // a log's is hidden: see logFile
		return err
	}
	b.s.side.reset()
	return nil
}
