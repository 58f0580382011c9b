package tree

// Sessions and their ephemeral nodes.

import (
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// session is a session's timeout and its ephemeral nodes. The server keeps the rest of a session.
type session struct {
	timeout int32 // milliseconds
	nodes   nodeSet
}

// CreateSession creates a session, or changes the timeout of an existing one.
func (t *Tree) CreateSession(zxid, id int64, timeoutMs int32) Result {
	t.begin(zxid, 0)
	if s := t.sessions[id]; s != nil {
		s.timeout = timeoutMs
	} else {
		t.sessions[id] = &session{timeout: timeoutMs}
	}
	t.tx.sessions = []Change{{Kind: PutSession, Session: id, Timeout: timeoutMs}}
	return t.finish(nil, wire.OK)
}

// CloseSession ends a session and deletes its ephemeral nodes. The code is SessionExpired if there is no such session.
func (t *Tree) CloseSession(zxid, at, id int64) Result {
	t.begin(zxid, at)
	s := t.sessions[id]
	if s == nil {
		return t.finish(nil, wire.SessionExpired)
	}
	for _, n := range slices.Clone(s.nodes) {
		t.remove(n)
	}
	delete(t.sessions, id)
	t.tx.sessions = []Change{{Kind: RemoveSession, Session: id}}
	return t.finish(nil, wire.OK)
}
