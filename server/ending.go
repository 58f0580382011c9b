package server

// The end of sessions, in pieces.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	endAtOnce    = 500 // nodes of ended sessions to delete in one round
	expireAtOnce = 100 // sessions that have expired to end in one round
	endCost      = 200 // bytes that the deletion of a node counts for
)

// ending is a session that has ended, but for some of its nodes.
type ending struct {
	id   int64
	done func(zxid int64, code wire.Code) // called after the last piece; nil if nothing waits for it
}

// closeSession ends the client's session. The reply is the connection's last frame.
func (o *owner) closeSession(it *item) {
	s := it.conn.sess.Load()
	o.removeSession(s)
	kept := *it
	o.begin(ending{s.id, func(zxid int64, code wire.Code) { o.answerWrite(&kept, zxid, code, nil, true) }})
	o.end(it.conn)
}

// endSession ends a session for other reasons than its client's wish. It closes the connection without a reply; a
// client that reconnects learns that the session has expired. It reports whether there are nodes left to delete before
// done is called.
func (o *owner) endSession(s *session, done func(zxid int64, code wire.Code)) (more bool) {
	o.drop(s)
	return o.begin(ending{s.id, done})
}

func (o *owner) drop(s *session) {
	if s.conn != nil {
		o.detach(s.conn)
	}
	o.removeSession(s)
}

// begin does the first piece at once, and counts what is large of it.
func (o *owner) begin(e ending) (more bool) {
	start := o.cost
	more = o.endPiece(e, endAtOnce)
	if o.cost-start > largeSize {
		o.countLarge(start)
	}
	return more
}

// endPiece ends a session, or continues to, deletes up to n of its nodes, and reports whether there are more. The
// session is over with the first piece: no client can resume it, and if the server stops now, it deletes the rest when
// it starts again. A client that has asked for it hears of that after the last piece.
func (o *owner) endPiece(e ending, n int) (more bool) {
	zxid := o.nextZxid()
	nodes := o.tree.EphemeralCount()
	r, more := o.tree.EndSession(zxid, time.Now().UnixMilli(), e.id, n)
	o.record(&r)
	o.countBytes((nodes - o.tree.EphemeralCount()) * endCost)
	switch {
	case more:
		o.endings = append(o.endings, e)
		signal(o.queue.wake)
	case e.done != nil:
		e.done(zxid, r.Code)
	}
	return more
}

// mayEnd reports whether there is a piece of an ending to do. Others wait for its commit as they do for that of a large
// write.
func (o *owner) mayEnd() bool { return len(o.expired)+len(o.endings) > 0 && o.mayWriteLarge() }

// endSessions ends sessions that have expired, and continues to end others, up to endAtOnce nodes of all together. A
// session that has to wait for its turn is as alive as before.
func (o *owner) endSessions() {
	const most = endAtOnce * endCost
	start := o.cost
	for n := 0; n < expireAtOnce && o.mayEnd() && o.cost-start < most; n++ {
		before := o.cost
		if e, ok := o.nextEnding(); ok {
			o.endPiece(e, (most-(before-start)+endCost-1)/endCost)
			o.countLarge(before) // however small: there may be many
		}
	}
	o.flush()
}

// nextEnding returns the next session to end or to continue with, if that has not changed: of both in turns, so that
// neither waits for all of the others.
func (o *owner) nextEnding() (e ending, ok bool) {
	o.endingsNext = !o.endingsNext
	if len(o.expired) == 0 || o.endingsNext && len(o.endings) > 0 {
		e, o.endings = o.endings[0], o.endings[1:]
		return e, true
	}
	s := o.expired[0]
	o.expired[0] = nil
	o.expired = o.expired[1:]
	// Its client may have resumed it meanwhile, or it may have been ended.
	if o.sessions[s.id] != s || o.expiry.has(s) {
		return e, false
	}
	// Or its client may have sent a request. An answer to that promises the client its full timeout.
	if o.expiry.due(s) >= o.expiry.next || s.isUnread() {
		o.expiry.add(s, o.clock.now())
		return e, false
	}
	o.stats.expired.Add(1)
	o.cfg.Logger.Info("server: session expired", "session", sessionName(s.id))
	o.drop(s)
	return ending{id: s.id}, true
}

// ExpireSession ends a session as if its timeout had passed, and reports whether there was such a session. When it
// returns true, the session's ephemeral nodes are durably deleted. Of a session that is ending already it returns
// false at once, and some of the nodes may be there for a moment.
func (s *Server) ExpireSession(id int64) bool {
	gone := make(chan struct{})
	var found bool
	err := s.do(func(o *owner) {
		sess := o.sessions[id]
		if found = sess != nil; found {
			o.endSession(sess, func(int64, wire.Code) { o.whenDurable(func() { close(gone) }) })
		}
	})
	if err != nil || !found {
		return false
	}
	select {
	case <-gone:
		return true
	case <-s.done:
		return false
	}
}
