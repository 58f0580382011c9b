package certainty_test

// The search through all states, and the histories that refute a rule.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A result is the outcome of a search.
type result struct {
	states int
	trace  []event // leads to the state; nil if the state is unreachable
	last   state
}

// explore visits every reachable state, in the order of the number of events that lead there, until found returns
// true for a step. Of states that differ only in the session's clock it visits the one with the least time left:
// everything that can go wrong with more time can go wrong there.
func explore(m model, found func(from, to *state) bool) result {
	type node struct {
		parent int32
		event  event
	}
	var (
		nodes       []node
		level, next []state
		from        *state
		parent      = int32(-1)
		visited     = make(map[state]int8) // the clock, by the state without it
		r           result
	)
	visit := func(e event, s state) {
		if r.trace != nil {
			return
		}
		if from == nil || !found(from, &s) {
			clock := s.clock
			s.clock = 0
			if least, ok := visited[s]; ok && least <= clock {
				return
			}
			visited[s] = clock
			s.clock = clock
			nodes, next = append(nodes, node{parent, e}), append(next, s)
			return
		}
		nodes = append(nodes, node{parent, e})
		r.last = s
		for at := len(nodes) - 1; at >= 0; at = int(nodes[at].parent) {
			r.trace = append(r.trace, nodes[at].event)
		}
		slices.Reverse(r.trace)
	}
	m.begin(visit)
	for r.trace == nil && len(next) > 0 {
		first := len(nodes) - len(next)
		level, next = next, level[:0]
		for i := range level {
			from, parent = &level[i], int32(first+i)
			m.steps(level[i], visit)
		}
	}
	r.states = len(nodes)
	return r
}

// refute returns a shortest history that makes the rule fail, or one without a trace if the rule holds.
func refute(t *testing.T, m model) result {
	t.Helper()
	r := explore(m, func(_, s *state) bool { return m.unsafe(s) })
	t.Logf("%d states", r.states)
	return r
}

// format writes a history that ends in an unsafe state.
func (m *model) format(r result) string {
	var b strings.Builder
	now := 0
	for _, e := range r.trace {
		if e.what == tick {
			now++
			continue
		}
		fmt.Fprintf(&b, "%4d  %s\n", now, e)
	}
	credit := now - int(r.last.client.credit)
	fmt.Fprintf(&b, "%4d  the leader may expire the session; the client is certain until %d (credit %d)\n",
		now, credit+int(m.life(r.last.client.timeout)), credit)
	return b.String()
}

func (e event) String() string {
	about := [...]string{
		none: "nothing", handshake: "the handshake", ping: "a ping", sync: "a sync", write: "a write",
		leaderPing: "PING", report: "the report",
	}[e.about]
	grants := ""
	if e.grant > 0 {
		grants = fmt.Sprintf(", which grants %d", e.grant)
	}
	switch e.what {
	case begin:
		return fmt.Sprintf("the client creates its session through a follower; the leader's next PING is due in %d",
			e.due)
	case beginLeader:
		return "the client creates its session on the leader"
	case send:
		return "the client sends " + about
	case dial:
		return fmt.Sprintf("the client dials a follower%s; the leader's next PING is due in %d", grants, e.due)
	case dialLeader:
		return "the client dials the leader" + grants
	case dialOld:
		return "the client dials the old leader" + grants
	case serve:
		return "the server receives " + about
	case lead:
		return "the leader receives " + about
	case follow:
		if e.about == leaderPing {
			return "the follower receives PING and reports the sessions that it has heard from"
		}
		return "the follower receives the answer to " + about
	case hear:
		return "the client receives the answer to " + about
	case sendPing:
		return "the leader sends PING"
	case loseUp:
		return "the link from the follower to the leader dies"
	case loseDown:
		return "the link from the leader to the follower dies"
	case elect:
		return "the quorum elects another leader"
	case restart:
		return "the server starts again"
	case arrive:
		return fmt.Sprintf("the leader receives a handshake of a connection that was dropped, and grants %d", e.grant)
	default:
		return "a unit of time passes"
	}
}
