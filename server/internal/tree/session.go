package tree

// Sessions and their ephemeral nodes.

import (
	"math"
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
	r, _ := t.EndSession(zxid, at, id, math.MaxInt)
	return r
}

// EndSession is CloseSession in pieces, for sessions with very many nodes: it ends the session, deletes up to n of its
// nodes, and reports whether there are more, for which it must be called again. In between, nodes of the session exist
// that no client can act for. A store that loads this state deletes them.
func (t *Tree) EndSession(zxid, at, id int64, n int) (r Result, more bool) {
	t.begin(zxid, at)
	s := t.sessions[id]
	if s != nil {
		delete(t.sessions, id)
		t.ending[id] = s
		t.tx.sessions = []Change{{Kind: RemoveSession, Session: id}}
	} else if s = t.ending[id]; s == nil {
		return t.finish(nil, wire.SessionExpired), false
	}
	if t.cfg.MaxLists > 0 && n < len(s.nodes) {
		t.tx.listed = map[*node]struct{}{} // the lists of parents are stored again
	}
	for _, x := range slices.Clone(s.nodes[:min(n, len(s.nodes))]) {
		t.remove(x)
		if t.tx.lists > t.cfg.MaxLists {
			break
		}
	}
	if more = len(s.nodes) > 0; !more {
		delete(t.ending, id)
	}
	return t.finish(nil, wire.OK), more
}
