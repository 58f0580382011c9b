package server

// Sessions, their passwords and their expiry.

import (
	"container/list"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// session is the owner's part of a session. The tree has the same session under its id.
type session struct {
	id           int64
	timeout      atomic.Int64  // nanoseconds that its client may be silent; as stored
	heard        atomic.Int64  // when the last frame came, on the server's clock
	unread       atomic.Int32  // its connections whose readers wait for the disk
	timeoutBatch uint64        // the last batch that made its timeout longer
	granted      time.Duration // the timeout of the last handshake, which may be shorter
	opener       string        // the address that opened it, as addressKey, "" if that was before a restart
	stranger     *list.Element // in the owner's list unknown, nil if it is not there
	conn         *conn         // nil while the client is disconnected
	bucket       int64         // in expiry
}

// touch notes that the client was alive at a time of the server's clock. Any goroutine may call it.
func (s *session) touch(now time.Duration) { s.heard.Store(int64(now)) }

// isUnread reports whether the server does not currently read the client's requests, so that hearing nothing from the
// client does not mean that it is dead.
func (s *session) isUnread() bool { return s.unread.Load() > 0 || s.conn != nil && s.conn.stalled() }

// password returns a session's password: a MAC of its id, which need not be stored and survives restarts.
func password(secret []byte, id int64) []byte {
	mac := hmac.New(sha256.New, secret)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	mac.Write(b[:])
	return mac.Sum(nil)[:wire.PasswordLen]
}

func (o *owner) rightPassword(id int64, given []byte) bool {
	return subtle.ConstantTimeCompare(password(o.secret, id), given) == 1
}

// nextSession returns a new session id, which is always above the last one: server number 1 in the top byte, then the
// time, then a counter.
func (o *owner) nextSession() int64 {
	id := int64(1)<<56 | (time.Now().UnixMilli()<<24)>>8&(1<<56-1)
	o.seed = max(o.seed+1, id)
	return o.seed
}

// negotiate returns the session timeout for a client that asks for ms milliseconds.
func (s *Server) negotiate(ms int32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	return min(max(d, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
}

// expiry finds the sessions whose timeout has passed. Time is divided into ticks. Each session is in the bucket of the
// tick by which its client must have sent something, and moves to a later bucket only when that tick comes.
type expiry struct {
	tick    time.Duration
	buckets map[int64]map[*session]struct{}
	next    int64         // the next bucket to check
	grace   time.Duration // no session expires before this time, because the process was not running
}

func (e *expiry) init(tick time.Duration) {
	e.tick, e.buckets, e.next = tick, make(map[int64]map[*session]struct{}), 1
}

// due returns the bucket of a session by the time of its last frame.
func (e *expiry) due(s *session) int64 {
	return int64(time.Duration(s.heard.Load()+s.timeout.Load())/e.tick) + 1
}

// add adds a session whose client has just sent something.
func (e *expiry) add(s *session, now time.Duration) {
	if len(e.buckets) == 0 {
		e.next = int64(now/e.tick) + 1
	}
	e.put(s, max(e.due(s), e.next))
}

func (e *expiry) put(s *session, bucket int64) {
	s.bucket = bucket
	b := e.buckets[bucket]
	if b == nil {
		b = make(map[*session]struct{})
		e.buckets[bucket] = b
	}
	b[s] = struct{}{}
}

// move puts a session into the bucket of its time, after its timeout has changed.
func (e *expiry) move(s *session, now time.Duration) {
	e.remove(s)
	e.add(s, now)
}

// has reports whether s is in its bucket.
func (e *expiry) has(s *session) bool {
	_, ok := e.buckets[s.bucket][s]
	return ok
}

func (e *expiry) remove(s *session) {
	b := e.buckets[s.bucket]
	delete(b, s)
	if len(b) == 0 {
		delete(e.buckets, s.bucket)
	}
}

// expired removes and returns the expired sessions. If it runs more than half a tick after a bucket was due, the
// process was not running, and clients may have sent pings that the server has not read yet. Then every session gets
// one more tick.
func (e *expiry) expired(now time.Duration) []*session {
	var gone []*session
	if now-time.Duration(e.next)*e.tick > e.tick/2 {
		e.grace = now + e.tick
	}
	for ; time.Duration(e.next)*e.tick <= now; e.next++ {
		b := e.buckets[e.next]
		delete(e.buckets, e.next)
		for s := range b {
			unread := s.isUnread() // before due: a reader touches the session before it starts to read again
			switch {
			case e.due(s) > e.next:
				e.put(s, e.due(s))
			case unread:
				e.put(s, e.next+1)
			case now < e.grace:
				e.put(s, max(int64(e.grace/e.tick), e.next)+1)
			default:
				gone = append(gone, s)
			}
		}
	}
	return gone
}

// wait returns the time until the next bucket is due.
func (e *expiry) wait(now time.Duration) time.Duration { return time.Duration(e.next)*e.tick - now }
