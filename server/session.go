package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// session is one client's session as the owner knows it. The tree knows the same session by its id.
type session struct {
	id      int64
	timeout atomic.Int64 // nanoseconds, as negotiated last
	heard   atomic.Int64 // on the server's clock: when a frame came last
	unread  atomic.Int32 // connections of it that are not read just now, because of the disk
	retimed uint64       // the batch that changed its timeout last
	opener  string       // the address of its first connection, "" if that was before a restart
	conn    *conn        // nil while the client is away
	bucket  int64        // of the expiry queue
}

// touch says that the client was alive at the given time of the server's clock. Any goroutine may call it.
func (s *session) touch(now time.Duration) { s.heard.Store(int64(now)) }

// isUnread reports whether the server does not read what the client sends, so that its silence says nothing.
func (s *session) isUnread() bool { return s.unread.Load() > 0 || s.conn != nil && s.conn.stalled() }

// password returns a session's password: a MAC of its id, so that it needs not be stored and survives restarts.
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

// nextSession returns a session id that was never used: server number 1 in the top byte, the time in the middle, a counter
// below, and always above the last one.
func (o *owner) nextSession() int64 {
	id := int64(1)<<56 | (time.Now().UnixMilli()<<24)>>8&(1<<56-1)
	o.seed = max(o.seed+1, id)
	return o.seed
}

// negotiate returns the timeout that a client gets for the one it asks for.
func (s *Server) negotiate(ms int32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	return min(max(d, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
}

// expiry finds the sessions that have not been heard from. Time is cut into ticks, and a session stands in the bucket of the tick by
// which it must have been heard; it is moved on lazily, when that tick comes.
type expiry struct {
	tick    time.Duration
	buckets map[int64]map[*session]struct{}
	next    int64         // the bucket that comes next
	grace   time.Duration // nobody expires before, because the server stood still
}

func (e *expiry) init(tick time.Duration) {
	e.tick, e.buckets, e.next = tick, make(map[int64]map[*session]struct{}), 1
}

// due returns the bucket in which a session stands that was heard at the given time.
func (e *expiry) due(s *session) int64 {
	return int64(time.Duration(s.heard.Load()+s.timeout.Load())/e.tick) + 1
}

// add puts a session in that was heard just now.
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

func (e *expiry) remove(s *session) {
	b := e.buckets[s.bucket]
	delete(b, s)
	if len(b) == 0 {
		delete(e.buckets, s.bucket)
	}
}

// expired removes and returns the sessions whose time is up. If the clock
// has jumped by more than half a tick since the bucket was due, the process was not running, and clients may have
// sent pings that nobody has read yet: everybody gets one more tick.
func (e *expiry) expired(now time.Duration) []*session {
	var gone []*session
	if now-time.Duration(e.next)*e.tick > e.tick/2 {
		e.grace = now + e.tick
	}
	for ; time.Duration(e.next)*e.tick <= now; e.next++ {
		b := e.buckets[e.next]
		delete(e.buckets, e.next)
		for s := range b {
			unread := s.isUnread() // before due: who begins to read again touches the session first
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

// wait returns how long it is until the next bucket is due.
func (e *expiry) wait(now time.Duration) time.Duration { return time.Duration(e.next)*e.tick - now }
