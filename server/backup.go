package server

// Backups: serving the pieces of one.
//
// A client asks for the pieces one after the other, by reads of nodes that do not exist: getData of backupPath and the
// number of the piece. So any client can make one, over TLS and with any login, and the client's pace is the server's.
// The connection must be the superuser's, or come from a unix socket, which only the server's user can open.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/backup"
	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// BackupPath is the path below which a server has the pieces of a backup: 0, 1 and so on, for WriteBackup.
const BackupPath = "/zookeeper/backup"

// The first byte of a piece.
const (
	pieceRecords = 'r' // followed by their SHA-256 and the records
	pieceSummary = 's' // the last one: JSON follows
)

// backupRun is a backup that a client of a connection makes.
type backupRun struct {
	conn *conn
	next int             // the piece to be asked for
	busy bool            // a goroutine has snap
	gone bool            // the connection has ended
	snap *store.Snapshot // nil before the first piece
	buf  []byte
}

// isBackup reports whether a request asks for a piece of a backup, and which.
func isBackup(it *item) (piece int, ok bool) {
	req, ok := it.req.(*wire.PathWatchRequest)
	if !ok || it.op != wire.OpGetData || it.code != wire.OK {
		return 0, false
	}
	number, ok := strings.CutPrefix(req.Path, BackupPath+"/")
	if !ok {
		return 0, false
	}
	piece, err := strconv.Atoi(number)
	return piece, err == nil && piece >= 0
}

// mayAdminister reports whether a connection may have a backup, and end the sessions of others.
func mayAdminister(c *conn) bool { return c.caller.Super || onUnixSocket(c.nc) }

// backupPiece serves a piece of a backup. Making it may wait for the disk, so another goroutine does that. There is one
// backup at a time: each keeps the store from freeing what is deleted.
func (o *owner) backupPiece(it *item, piece int) {
	c, run := it.conn, o.backup
	code := wire.OK
	switch {
	case !mayAdminister(c):
		code = wire.NoAuth
	case o.store == nil:
		code = wire.Unimplemented
	case run != nil && (run.conn != c || run.busy):
		code = wire.ThrottledOp
	case piece == 0:
		if run != nil {
			o.endBackup(run)
		}
		o.cfg.Logger.Info("server: a client makes a backup", "client", c.remote)
		run = &backupRun{conn: c}
		o.backup = run
	case run == nil || run.next != piece:
		code = wire.BadArguments
	}
	if code != wire.OK {
		o.answer(it, code, nil, false)
		return
	}
	run.busy, c.late = true, true
	asked := *it
	asked.tail = false
	o.wg.Go(func() {
		data, err := run.make(o.store)
		o.queue.push(item{kind: itemCall, call: func() { o.answerPiece(&asked, run, data, err) }})
	})
}

// make makes the next piece.
func (r *backupRun) make(s *store.Store) ([]byte, error) {
	if r.snap == nil {
		var err error
		if r.snap, err = s.Snapshot(); err != nil {
			return nil, err
		}
	}
	var err error
	if r.buf, err = r.snap.Next(r.buf); errors.Is(err, io.EOF) {
		return encodeSummary(r.snap)
	} else if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(r.buf)
	return append(append([]byte{pieceRecords}, sum[:]...), r.buf...), nil
}

func encodeSummary(snap *store.Snapshot) ([]byte, error) {
	text, err := json.Marshal(snap.Summary())
	return append([]byte{pieceSummary}, text...), err
}

// answerPiece answers a request for a piece.
func (o *owner) answerPiece(it *item, run *backupRun, data []byte, err error) {
	run.busy = false
	defer o.caughtUp(it.conn)
	if run.gone {
		it.conn.drop(it)
		o.endBackup(run)
		return
	}
	if err != nil {
		o.cfg.Logger.Warn("server: a backup has failed", "client", it.conn.remote, "err", err)
		o.answer(it, wire.SystemError, nil, false)
		o.endBackup(run)
		return
	}
	run.next++
	if data[0] == pieceSummary {
		o.endBackup(run)
	}
	hold := o.holdReply(it.conn)
	o.reply(it, o.shown(hold), wire.OK, &wire.DataResponse{Data: data}, hold, false)
}

// endBackup forgets a backup. Nobody makes a piece of it.
func (o *owner) endBackup(run *backupRun) {
	o.backup = nil
	if snap := run.snap; snap != nil {
		o.wg.Go(func() { _ = snap.Close() }) // it was only read
	}
}

// backupGone ends the backup of a connection that has ended.
func (o *owner) backupGone(c *conn) {
	switch run := o.backup; {
	case run == nil || run.conn != c:
	case run.busy:
		run.gone = true
	default:
		o.endBackup(run)
	}
}

// closeBackup ends a backup when the server has stopped.
func (o *owner) closeBackup() {
	if o.backup != nil && o.backup.snap != nil {
		_ = o.backup.snap.Close() // as above
	}
	o.backup = nil
}

// BackupInfo says what a backup has.
type BackupInfo struct {
	Zxid     int64 // of the last transaction in it
	Made     time.Time
	Nodes    int64 // those of sessions included
	Sessions int64 // that were open; the backup does not have them
	Records  int64
	Size     int64 // bytes of records
	Files    int
	_        struct{}
}

func newBackupInfo(m *backup.Manifest) *BackupInfo {
	made, _ := time.Parse(time.RFC3339, m.Made)
	return &BackupInfo{
		Zxid: m.Zxid, Made: made, Nodes: m.Nodes, Sessions: m.Sessions, Records: m.Records, Size: m.Size(),
		Files: len(m.Files),
	}
}

// ErrDamagedBackup is wrapped by the error of a backup that is torn, that was altered, or that is none.
var ErrDamagedBackup = backup.ErrDamaged

// Backup writes a backup to w: the state at one zxid, with all writes that were acknowledged before, while the server
// goes on. What is written is not a backup if Backup returns an error; CheckBackup finds that out, too.
func (s *Server) Backup(ctx context.Context, w io.Writer) (*BackupInfo, error) {
	if s.store == nil {
		return nil, errors.New("server: there is no backup of a server that keeps its state in memory")
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	run := &backupRun{}
	defer func() {
		if run.snap != nil {
			_ = run.snap.Close() // it was only read
		}
	}()
	return WriteBackup(w, func(int) ([]byte, error) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.stopping:
			return nil, ErrClosed
		default:
			return run.make(s.store)
		}
	})
}

// WriteBackup writes a backup to w, of pieces that it asks for one after the other: the data of the node with that
// number below BackupPath of a server. The caller must be the server's superuser, or use its unix socket. All pieces
// must come over one connection, which a zk.Session sees to.
func WriteBackup(w io.Writer, piece func(n int) ([]byte, error)) (*BackupInfo, error) {
	out := backup.NewWriter(w)
	for n := 0; ; n++ {
		data, err := piece(n)
		switch {
		case err != nil:
			return nil, err
		case len(data) > 1+sha256.Size && data[0] == pieceRecords:
			sum, records := data[1:1+sha256.Size], data[1+sha256.Size:]
			if got := sha256.Sum256(records); !bytes.Equal(got[:], sum) {
				return nil, fmt.Errorf("server: piece %d of the backup was altered on its way", n)
			}
			if err := out.Add(records); err != nil {
				return nil, err
			}
		case len(data) > 0 && data[0] == pieceSummary:
			var s backup.Summary
			if err := json.Unmarshal(data[1:], &s); err != nil {
				return nil, fmt.Errorf("server: the last piece of the backup: %w", err)
			}
			m, err := out.Close(s, time.Now().UTC().Format(time.RFC3339))
			if err != nil {
				return nil, err
			}
			return newBackupInfo(m), nil
		default:
			return nil, fmt.Errorf("server: piece %d of the backup is none", n)
		}
	}
}

// CheckBackup reads a backup to its end, and returns an error that wraps ErrDamagedBackup unless it is as it was
// written.
func CheckBackup(r io.Reader) (*BackupInfo, error) {
	m, err := backup.Read(r, func(_, _ []byte) error { return nil })
	if err != nil {
		return nil, err
	}
	return newBackupInfo(m), nil
}
