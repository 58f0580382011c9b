package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	sideSize   = 1 << 20 // of the side log; it never grows, so that a sync has no size to write
	sideHeader = 16      // length, checksum, zxid
	sideLimit  = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

// sideLog makes a transaction that travels alone durable on the goroutine that wants it so. Pebble's log is written and synced by a
// goroutine of its own, which many transactions share well; one alone pays for waking it and for being woken, about as much as half a
// sync costs.
//
// Such a transaction is applied to Pebble too, without a sync, and Pebble's log keeps the order of all. So what a crash can take from
// Pebble is a tail of transactions, and of that tail those that were alone stand here, because nothing else is acknowledged before a sync of
// Pebble's log that covers them as well. Opening applies those again that Pebble does not have.
//
// Records are written one after the other from the start of the file. After each sync of Pebble's log all of them are obsolete, and the
// next one is written at the start again: what it destroys is never needed. The zxids of records grow along the file, so that a
// record that is left from before ends it.
type sideLog struct {
	file vfs.File
	next int64  // where the next record goes
	buf  []byte // the record that is about to be written
}

// openSide opens the side log of a directory, and makes it if it is not there.
func openSide(fs vfs.FS, dir string) (*sideLog, error) {
	name := fs.PathJoin(dir, "side.log")
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	l := &sideLog{file: f}
	if err := l.extend(fs, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return l, nil
}

// extend gives the file its size.
func (l *sideLog) extend(fs vfs.FS, dir string) error {
	info, err := l.file.Stat()
	if err != nil || info.Size() >= sideSize {
		return err
	}
	if _, err := l.file.WriteAt(make([]byte, sideSize-info.Size()), info.Size()); err != nil {
		return err
	}
	return errors.Join(l.file.Sync(), syncDir(fs, dir))
}

// prepare takes a transaction, to be written by write. It reports false if there is no room.
func (l *sideLog) prepare(zxid int64, repr []byte) bool {
	if len(repr) > sideLimit || l.next+sideHeader+int64(len(repr)) > sideSize {
		return false
	}
	b := binary.BigEndian.AppendUint32(l.buf[:0], uint32(len(repr)))
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = append(b, repr...)
	binary.BigEndian.PutUint32(b[4:], checksum(b))
	l.buf = b
	return true
}

// checksum covers all of a record but itself.
func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[8:])
}

// write makes the transaction durable that was prepared last.
func (l *sideLog) write() error {
	if _, err := l.file.WriteAt(l.buf, l.next); err != nil {
		return err
	}
	l.next += int64(len(l.buf))
	return l.file.SyncData()
}

// reset says that Pebble has synced everything that is written here.
func (l *sideLog) reset() { l.next = 0 }

// replay applies to db what it has lost since the given zxid, and makes that durable.
func (l *sideLog) replay(db *pebble.DB, zxid int64) error {
	all := make([]byte, sideSize)
	if _, err := l.file.ReadAt(all, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("side log: %w", err)
	}
	for last := int64(0); ; {
		at, repr, ok := nextRecord(&all)
		if !ok || at <= last {
			return nil
		}
		if last = at; at <= zxid {
			continue
		}
		b := db.NewBatch() // which keeps what it is given, for other batches to be written over
		if err := errors.Join(b.SetRepr(bytes.Clone(repr)), db.Apply(b, pebble.Sync), b.Close()); err != nil {
			return fmt.Errorf("side log: zxid %#x: %w", at, err)
		}
	}
}

// nextRecord cuts the first record off. It reports false if there is none, or only a part of one.
func nextRecord(rest *[]byte) (zxid int64, repr []byte, ok bool) {
	b := *rest
	if len(b) < sideHeader {
		return 0, nil, false
	}
	n := int64(binary.BigEndian.Uint32(b))
	if n == 0 || n > int64(len(b)-sideHeader) {
		return 0, nil, false
	}
	record := b[:sideHeader+n]
	if checksum(record) != binary.BigEndian.Uint32(record[4:]) {
		return 0, nil, false
	}
	*rest = b[len(record):]
	return int64(binary.BigEndian.Uint64(record[8:])), record[sideHeader:], true
}
