package store

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/seed-a3166700/turnstile/internal/tree"
)

// Batch is one transaction: all of it is there after a crash, or none. It may be filled, applied and waited for by
// different goroutines, but only one at a time may be in an Apply or an ApplyAlone, and only one in a Wait or an
// ApplyAlone.
type Batch struct {
	s     *Store
	b     *pebble.Batch
	key   []byte // scratch
	err   error
	limit int64
	alone bool // stands in the side log
}

// NewBatch returns an empty transaction.
func (s *Store) NewBatch() *Batch { return &Batch{s: s, b: s.db.NewBatch()} }

// Empty reports whether nothing has been added.
func (b *Batch) Empty() bool { return b.b.Empty() }

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
		return fmt.Errorf("store: change of unknown kind %d", c.Kind)
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

// SetSeed remembers the last session id that was given out, so that no later one equals it.
func (b *Batch) SetSeed(id int64) {
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], uint64(id))
	if err := b.b.Set(keySeed, v[:], nil); err != nil && b.err == nil {
		b.err = err
	}
}

// Apply gives the transaction to the log, as of zxid, and returns before it is durable. Transactions get to the disk
// in the order in which they were applied. Wait must be called exactly once for each Apply that returned nil.
//
// As a rule that is memory only. But whoever fills the table in memory makes Pebble begin a new log, and so waits until
// the former one is synced; and who fills one after the other waits until they are written out.
func (b *Batch) Apply(zxid int64) error {
	return b.apply(zxid, func() error { return b.s.db.ApplyNoSyncWait(b.b, pebble.Sync) })
}

// ApplyAlone is Apply for a transaction when Wait has returned for all before it, and will have for this one before the next is applied
// with ApplyAlone: it becomes durable with less effort.
func (b *Batch) ApplyAlone(zxid int64) error {
	return b.apply(zxid, func() error {
		if b.alone = b.s.side.prepare(zxid, b.b.Repr()); b.alone {
			return b.s.db.Apply(b.b, pebble.NoSync)
		}
		return b.s.db.ApplyNoSyncWait(b.b, pebble.Sync)
	})
}

func (b *Batch) apply(zxid int64, commit func() error) (err error) {
	s := b.s
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
		if r := recover(); r != nil { // Pebble panics when it writes to a log that has failed before
			s.stuck = true
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

// Reserved returns the zxid up to which the transactions that were applied have reserved.
func (s *Store) Reserved() int64 { return s.limit.Load() }

// Wait waits until the transaction is on disk and returns the zxid up to which the server may now answer without another
// transaction, because it is reserved. An error means that the transaction may be lost, and that the store has failed.
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
	if b.alone {
		return b.s.side.write()
	}
	if err := b.b.SyncWait(); err != nil {
		return err
	}
	b.s.side.reset()
	return nil
}
