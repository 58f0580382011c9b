package store

// The state at one zxid, for a backup.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/seed-a3166700/turnstile/server/internal/backup"
)

// Snapshot is the state of the store at one zxid. Transactions go on meanwhile: they do not wait for it, and it does
// not have them. One goroutine at a time may use it, and must close it before the store.
type Snapshot struct {
	snap *pebble.Snapshot
	it   *pebble.Iterator
	left []byte // kinds of records that are still to come, without that of it
	rest []byte // of a record that did not fit into the last piece
	sum  backup.Summary
}

// Snapshot returns the state with all transactions that have been applied. It waits until they are durable, so that no
// backup has what the store may still lose.
func (s *Store) Snapshot() (*Snapshot, error) {
	v := &Snapshot{snap: s.db.NewSnapshot(), left: []byte{prefixNode, prefixData}}
	err := s.syncLog()
	if err == nil {
		err = v.begin()
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// syncLog waits until everything that was applied is durable.
func (s *Store) syncLog() (err error) {
	if err := s.Err(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil { // as in apply
			s.stuck.Store(true)
			s.fail(fmt.Errorf("%v", r))
			err = s.Err()
		}
	}()
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		s.fail(err)
	}
	return s.Err()
}

// begin reads what is known at the start.
func (v *Snapshot) begin() error {
	zxids, err := getFrom(v.snap, keyZxid)
	if err != nil {
		return err
	}
	seed, err := getFrom(v.snap, keySeed)
	if err != nil {
		return err
	}
	if len(zxids) != 16 || len(seed) != 8 {
		return fmt.Errorf("store: zxid of %d bytes and seed of %d, want 16 and 8", len(zxids), len(seed))
	}
	v.sum.Zxid = int64(binary.BigEndian.Uint64(zxids))
	v.sum.Reserved = int64(binary.BigEndian.Uint64(zxids[8:]))
	v.sum.Seed = int64(binary.BigEndian.Uint64(seed))
	it, err := v.snap.NewIter(bounds(prefixSession))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v.sum.Sessions++
	}
	return errors.Join(it.Error(), it.Close())
}

// Next returns the next piece of the stream of records, in buf's memory, and io.EOF behind the last one.
func (v *Snapshot) Next(buf []byte) ([]byte, error) {
	piece := buf[:0]
	piece = append(piece, v.rest...)
	v.rest = v.rest[:0]
	for len(piece) < backup.PieceSize {
		if v.it == nil {
			if len(v.left) == 0 {
				break
			}
			it, err := v.snap.NewIter(bounds(v.left[0]))
			if err != nil {
				return nil, err
			}
			v.it, v.left = it, v.left[1:]
			it.First()
		} else {
			v.it.Next()
		}
		if !v.it.Valid() {
			err := errors.Join(v.it.Error(), v.it.Close())
			if v.it = nil; err != nil {
				return nil, err
			}
			continue
		}
		value, err := v.it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if v.sum.Records++; v.it.Key()[0] == prefixNode {
			v.sum.Nodes++
		}
		piece = backup.AppendRecord(piece, v.it.Key(), value)
	}
	if len(piece) == 0 {
		return nil, io.EOF
	}
	if len(piece) > backup.PieceSize {
		v.rest = append(v.rest, piece[backup.PieceSize:]...)
		piece = piece[:backup.PieceSize]
	}
	return piece, nil
}

// Summary says what there was. It is complete behind the last piece.
func (v *Snapshot) Summary() backup.Summary { return v.sum }

// Close lets the store forget the state.
func (v *Snapshot) Close() error {
	var err error
	if v.it != nil {
		err = v.it.Close()
		v.it = nil
	}
	if v.snap != nil {
		err = errors.Join(err, v.snap.Close())
		v.snap = nil
	}
	return err
}

func bounds(prefix byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}}
}

func getFrom(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if err != nil {
		return nil, err
	}
	v = append([]byte(nil), v...)
	return v, closer.Close()
}
