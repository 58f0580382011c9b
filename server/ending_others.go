package server

// Ending another client's session.
//
// No request of ZooKeeper's protocol does that. A client asks by setting a node that does not exist, as for backups:
// the name says which session, and the data why. So any client can ask, over TLS and with any login.

import (
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// SessionsPath is the path below which the superuser ends sessions, and whoever has come by a unix socket: by setting
// the node with the session's name, such as 0x1a1fc98997c0000. The data is the reason, for the server's log.
const SessionsPath = "/zookeeper/sessions"

// endsOther reports whether a request ends a session, and which.
func endsOther(it *item) (id int64, ok bool) {
	req, ok := it.req.(*wire.SetDataRequest)
	if !ok || it.op != wire.OpSetData || it.code != wire.OK {
		return 0, false
	}
	name, ok := strings.CutPrefix(req.Path, SessionsPath+"/")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64)
	id = int64(number) //nolint:gosec // a session's number has 64 bits
	return id, err == nil && sessionName(id) == name
}

// endOther ends a session that a client names. Its client learns of that as of an expiry. The session's ephemeral
// nodes are durably deleted when the answer comes. It answers BadArguments if there is no such session,
// or it is the client's own.
func (o *owner) endOther(it *item, id int64) {
	s := o.sessions[id]
	switch {
	case !mayAdminister(it.conn):
		o.answer(it, wire.NoAuth, nil, false)
	case s == nil, s == it.conn.sess.Load():
		o.answer(it, wire.BadArguments, nil, false)
	default:
		req, _ := it.req.(*wire.SetDataRequest)
		o.cfg.Logger.Warn("server: a client ends another one's session",
			"client", it.conn.remote, "session", sessionName(id), "reason", string(req.Data))
		kept := *it
		it.conn.late = o.endSession(s, func(zxid int64, code wire.Code) {
			o.answerWrite(&kept, zxid, code, &wire.StatResponse{}, false)
			o.caughtUp(kept.conn)
		})
	}
}
