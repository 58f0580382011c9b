package store

// The log of single transactions.

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	sideSize   = 1 << 20  // of the side log, which never grows, so that a sync need not write its size
	sideLimit  = 64 << 10 // the largest transaction in it
	sideMAC    = 16
	sideHeader = sideMAC + 4 + 8 + 8 // authenticator, length, zxid of the transaction before, zxid
)

// sideLog makes a single transaction durable on the goroutine that waits for it. Pebble writes and syncs its log on a
// goroutine of its own. That suits many transactions at a time, but a single one pays for two wake-ups, about as much
// as half a sync.
//
// A transaction in the side log is applied to Pebble too, without a sync. Pebble's log keeps the order of all
// transactions, so a crash loses a tail of them. Every acknowledged transaction in that tail is in the side log: any
// other is acknowledged only after a sync of Pebble's log, which covers all earlier ones too. Opening the store applies
// again what Pebble has lost.
//
// Records follow each other from the start of the file. A sync of Pebble's log makes all of them obsolete, and the next
// one goes to the start again, so it overwrites only obsolete records. The zxids of records grow along the file, so an
// older record marks the end.
//
// After the last record the file contains arbitrary old bytes, among them data that clients chose. So each record has
// an authenticator. Its key is stored in Pebble and changes with each opening: clients cannot forge a record, and a
// side log that belongs to another state of the database, say from another backup, has no valid ones.
type sideLog struct {
	file vfs.File
	key  []byte
	next int64  // the offset of the next record
	last int64  // the zxid of the last transaction applied
	buf  []byte // the record to be written next
}

// keySide is the key in Pebble under which the authenticators' key is stored.
var keySide = []byte("mside")

// openSide opens the side log of a directory, and creates it if it is missing.
func openSide(fs vfs.FS, dir string) (*sideLog, error) {
	name := fs.PathJoin(dir, sideName)
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

// extend gives the file its full size.
func (l *sideLog) extend(fs vfs.FS, dir string) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if size := info.Size(); size < sideSize {
		if _, err := l.file.WriteAt(make([]byte, sideSize-size), size); err != nil {
			return err
		}
	}
	// Sync an existing file too: the process that created it may have been killed before its sync.
	return errors.Join(l.file.Sync(), syncDir(fs, dir))
}

// prepare encodes a transaction for write. It reports false if the log has no room for it, or the transaction has the
// zxid of the one before: replay tells by the zxid what Pebble has.
func (l *sideLog) prepare(zxid int64, repr []byte) bool {
	if zxid <= l.last || len(repr) > sideLimit || l.next+sideHeader+int64(len(repr)) > sideSize {
		return false
	}
	l.buf = append(l.buf[:0], make([]byte, sideMAC)...)
	b := binary.BigEndian.AppendUint32(l.buf, uint32(len(repr)))
	b = binary.BigEndian.AppendUint64(b, uint64(l.last))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = append(b, repr...)
	copy(b, l.authenticator(b))
	l.buf = b
	return true
}

// authenticator returns the MAC of a record without its first field, which is the authenticator.
func (l *sideLog) authenticator(record []byte) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write(record[sideMAC:])
	return mac.Sum(nil)[:sideMAC]
}

// write makes the prepared transaction durable.
func (l *sideLog) write() error {
	if _, err := l.file.WriteAt(l.buf, l.next); err != nil {
		return err
	}
	l.next += int64(len(l.buf))
	return l.file.SyncData()
}

// applied notes that the transaction of zxid was applied to Pebble, after all earlier ones.
func (l *sideLog) applied(zxid int64) { l.last = zxid }

// reset notes that Pebble has synced everything in the side log.
func (l *sideLog) reset() { l.next = 0 }

// recover applies to db what it has lost since zxid and makes that durable. Then it stores a new key, which makes all
// present records invalid.
func (l *sideLog) recover(db *pebble.DB, zxid int64) error {
	key, closer, err := db.Get(keySide)
	if err == nil {
		l.key = bytes.Clone(key)
		err = errors.Join(closer.Close(), l.replay(db, zxid))
	}
	if err != nil && !errors.Is(err, pebble.ErrNotFound) { // a database from before the side log existed has no key
		return fmt.Errorf("side log: %w", err)
	}
	l.last = zxid
	l.key = make([]byte, sha256.Size)
	rand.Read(l.key)
	return db.Set(keySide, l.key, pebble.Sync)
}

func (l *sideLog) replay(db *pebble.DB, zxid int64) error {
	all := make([]byte, sideSize)
	if _, err := l.file.ReadAt(all, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for last := int64(0); ; {
		r, ok := l.cut(&all)
		if !ok || r.zxid < last {
			return nil
		}
		last = r.zxid
		if r.zxid <= zxid {
			continue
		}
		if r.before > zxid {
			return fmt.Errorf("it continues from zxid %#x, but the database ends at %#x: "+
				"restore both from the same backup, or remove side.log and lose what only it contains", r.before, zxid)
		}
		// No sync for each: the one sync at the end of recover covers them all.
		b := db.NewBatch() // Pebble reuses a batch's memory for others, hence the clone
		if err := errors.Join(b.SetRepr(bytes.Clone(r.repr)), db.Apply(b, pebble.NoSync), b.Close()); err != nil {
			return fmt.Errorf("zxid %#x: %w", r.zxid, err)
		}
		zxid = r.zxid
	}
}

type sideRecord struct {
	before, zxid int64
	repr         []byte
}

// cut removes the first record from rest and returns it. It reports false if there is no complete and valid record.
func (l *sideLog) cut(rest *[]byte) (sideRecord, bool) {
	b := *rest
	if len(b) < sideHeader {
		return sideRecord{}, false
	}
	n := int64(binary.BigEndian.Uint32(b[sideMAC:]))
	if n > int64(len(b)-sideHeader) {
		return sideRecord{}, false
	}
	record := b[:sideHeader+n]
	if !hmac.Equal(l.authenticator(record), record[:sideMAC]) {
		return sideRecord{}, false
	}
	*rest = b[len(record):]
	return sideRecord{
		before: int64(binary.BigEndian.Uint64(record[sideMAC+4:])),
		zxid:   int64(binary.BigEndian.Uint64(record[sideMAC+12:])),
		repr:   record[sideHeader:],
	}, true
}
