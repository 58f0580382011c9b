package store

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
	sideSize   = 1 << 20  // of the side log; it never grows, so that a sync has no size to write
	sideLimit  = 64 << 10 // of a transaction in it
	sideMAC    = 16
	sideHeader = sideMAC + 4 + 8 + 8 // authenticator, length, zxid of the transaction before, zxid
)

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
//
// What follows the last record is whatever was there before, pieces of clients' data among it. So each record carries an authenticator, under
// a key that Pebble keeps and that changes with each opening: nobody else can make one, and a log that belongs to another state of the
// database, from another backup say, has none that counts.
type sideLog struct {
	file vfs.File
	key  []byte
	next int64  // where the next record goes
	last int64  // the zxid of the transaction that was applied last
	buf  []byte // the record that is about to be written
}

// keySide is where Pebble keeps the key.
var keySide = []byte("mside")

// openSide opens the side log of a directory, and makes it if it is not there.
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

// extend gives the file its size.
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
	// Also of a file that was there already: who made it may have been killed before this.
	return errors.Join(l.file.Sync(), syncDir(fs, dir))
}

// prepare takes a transaction, to be written by write. It reports false if there is no room.
func (l *sideLog) prepare(zxid int64, repr []byte) bool {
	if len(repr) > sideLimit || l.next+sideHeader+int64(len(repr)) > sideSize {
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

// authenticator covers all of a record but itself.
func (l *sideLog) authenticator(record []byte) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write(record[sideMAC:])
	return mac.Sum(nil)[:sideMAC]
}

// write makes the transaction durable that was prepared last.
func (l *sideLog) write() error {
	if _, err := l.file.WriteAt(l.buf, l.next); err != nil {
		return err
	}
	l.next += int64(len(l.buf))
	return l.file.SyncData()
}

// applied says that the transaction of a zxid was given to Pebble, after all before it.
func (l *sideLog) applied(zxid int64) { l.last = zxid }

// reset says that Pebble has synced everything that is written here.
func (l *sideLog) reset() { l.next = 0 }

// recover applies to db what it has lost since the given zxid, makes that durable, and then makes a new key, under which nothing that stands
// here counts any more.
func (l *sideLog) recover(db *pebble.DB, zxid int64) error {
	key, closer, err := db.Get(keySide)
	if err == nil {
		l.key = bytes.Clone(key)
		err = errors.Join(closer.Close(), l.replay(db, zxid))
	}
	if err != nil && !errors.Is(err, pebble.ErrNotFound) { // a database from before there was a side log has no key
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
			return fmt.Errorf("it goes on from zxid %#x, and the database ends at %#x: restore both from one backup, or remove side.log and lose what only it has", r.before, zxid)
		}
		// Not synced one by one: recover ends with one sync of the log, which has them all before it.
		b := db.NewBatch() // which keeps what it is given, for other batches to be written over
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

// cut cuts the first record off. It reports false if there is none, or only a part of one.
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
