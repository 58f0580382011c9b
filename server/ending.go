package server

// The end of sessions, in pieces.

import (
	"math"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	endAtOnce    = 500 // nodes of an ended session to delete in one round
	expireAtOnce = 100 // sessions that have expired to end in one round
	endCost      = 200 // bytes that the deletion of a node counts for
)

// ending is a session that has ended, but for some of its nodes.
type ending struct {
	id      int64
	request *item // is answered at the end; nil if there is none
	own     bool  // the request is the session's own: the answer is the connection's last frame
}

// closeSession ends the client's session. The reply is the connection's last frame.
func (o *owner) closeSession(it *item) {
	s := it.conn.sess.Load()
	o.removeSession(s)
	o.endPiece(ending{s.id, it, true}, endAtOnce)
	o.end(it.conn)
}

// endSession ends a session for the server's own reasons, such as expiry. It closes the connection without a reply; a
// client that reconnects learns that the session has expired.
func (o *owner) endSession(s *session) { o.endSessionBy(s, nil, endAtOnce) }

func (o *owner) endSessionBy(s *session, request *item, n int) {
	if s.conn != nil {
		o.detach(s.conn)
	}
	o.removeSession(s)
	o.endPiece(ending{id: s.id, request: request}, n)
}

// endPiece ends a session, or continues to, and deletes up to n of its nodes. The session is over with the first piece:
// nobody can resume it, and if the server stops now, it deletes the rest when it starts again. A client that has asked
// for it hears of that after the last piece.
func (o *owner) endPiece(e ending, n int) {
	zxid := o.nextZxid()
	start, nodes := o.cost, o.tree.EphemeralCount()
	r, more := o.tree.EndSession(zxid, time.Now().UnixMilli(), e.id, n)
	o.record(&r)
	if deleted := nodes - o.tree.EphemeralCount(); deleted >= endAtOnce {
		o.countBytes(deleted * endCost)
	}
	if o.open != nil && o.cost-start > largeSize {
		o.open.large += o.cost - start
		o.largeBatch = o.open.seq
	}
	switch {
	case more:
		if e.request != nil {
			kept := *e.request
			e.request = &kept
			kept.conn.late = !e.own
		}
		o.endings = append(o.endings, e)
		signal(o.queue.wake)
	case e.request != nil && e.own:
		o.answerWrite(e.request, zxid, r.Code, nil, true)
	case e.request != nil:
		o.answerWrite(e.request, zxid, r.Code, &wire.StatResponse{}, false)
		o.caughtUp(e.request.conn)
	}
}

// mayEnd reports whether there is a piece of an ending to do. Others wait for its commit as they do for that of a large
// write.
func (o *owner) mayEnd() bool { return len(o.expired) > 0 || len(o.endings) > 0 && o.mayWriteLarge() }

// endSessions does one piece.
func (o *owner) endSessions() {
	for n := 0; n < expireAtOnce && len(o.expired) > 0; n++ {
		s := o.expired[0]
		o.expired[0] = nil
		o.expired = o.expired[1:]
		// Its client may have resumed it meanwhile, or it may have been ended.
		if o.sessions[s.id] == s && !o.expiry.has(s) {
			o.stats.expired.Add(1)
			o.cfg.Logger.Info("server: session expired", "session", sessionName(s.id))
			o.endSession(s)
		}
	}
	if len(o.endings) > 0 && o.mayWriteLarge() {
		e := o.endings[0]
		o.endings = o.endings[1:]
		o.endPiece(e, endAtOnce)
	}
	o.flush()
}

// ExpireSession ends a session as if its timeout had passed, and reports whether there was such a session. When it
// returns, the session's ephemeral nodes are durably deleted.
func (s *Server) ExpireSession(id int64) bool {
	var found bool
	err := s.doDurably(func(o *owner) {
		sess := o.sessions[id]
		if found = sess != nil; found {
			o.endSessionBy(sess, nil, math.MaxInt)
		}
	})
	return found && err == nil
}
