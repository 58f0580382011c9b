package certainty_test

// The steps that can follow a state.

import (
	"cmp"
	"slices"
)

// A model is a rule and the parameters for which it is checked.
type model struct {
	rule

	timeout  int8
	interval int8   // between two PINGs of the leader
	late     int8   // how late a PING may be
	margin   int8   // how much sooner than the timeout the client's certainty ends
	inFlight int    // limit of unanswered requests
	idle     bool   // a client that is not certain continues, and may become certain later; otherwise it gives up
	stuck    int8   // of an idle client: how long the leader's messages may be in transit before the link dies
	created  int8   // the timeout that the session is created with; timeout if zero
	grants   []int8 // the timeouts that servers grant at later handshakes; timeout if nil
	terms    terms  // how the client follows them
	wary     bool   // the client believes in nothing while a handshake has no answer
	single   bool   // there is one server only
	keeps    bool   // which keeps the larger timeout until its client has sent something
	slow     bool   // answers may be slow to reach the client; otherwise only messages between servers are slow
}

// An event is one step of a history.
type event struct {
	what  action
	about kind
	due   int8 // units until the leader's next PING to the follower
	grant int8 // the timeout that the handshake is granted; 0 if there is only one
}

type action uint8

const (
	begin action = iota // a session, through a follower
	beginLeader
	tick
	send
	dial // a follower
	dialLeader
	dialOld
	serve  // a server receives something from the client
	lead   // the leader receives something from the follower
	follow // the follower receives something from the leader
	hear   // the client receives an answer
	sendPing
	loseUp
	loseDown
	elect
	restart
	arrive // a handshake whose connection the client has dropped
)

// begin yields the states after the creation of the session. The leader starts the session's clock when the client
// sends its request, which is the worst case.
func (m *model) begin(yield func(event, state)) {
	created := cmp.Or(m.created, m.timeout)
	s := state{client: newClient(created, 0), clock: created, stored: created}
	s.link = link{to: leader, open: true, granted: created}
	yield(event{what: beginLeader}, s)
	if m.single {
		return
	}
	for due := int8(1); due <= m.interval; due++ {
		s.link = link{to: follower, open: true, granted: created, nextPing: due}
		yield(event{what: begin, due: due}, s)
	}
}

// life returns for how long a credit makes the client certain.
func (m *model) life(timeout int8) int8 { return timeout - timeout*m.margin/m.timeout }

// certain reports whether the client is certain of its session.
func (m *model) certain(s *state) bool { return s.client.credit < m.life(s.client.timeout) }

func (m *model) unsafe(s *state) bool {
	return s.clock <= 0 && m.certain(s) && (s.link.open || !m.wary)
}

// steps yields everything that can happen next.
func (m *model) steps(s state, yield func(event, state)) {
	if !m.certain(&s) && !m.idle || s.clock <= 0 {
		return
	}
	credit := s.client.credit
	emit := func(e event, s state) {
		m.trim(&s)
		if s.client.credit < credit {
			s.forget()
		}
		yield(e, s)
	}
	m.pass(s, emit)
	m.send(s, emit)
	m.dial(s, emit)
	m.receive(s, emit)
	m.fail(s, emit)
}

// trim makes equivalent states equal.
func (m *model) trim(s *state) {
	s.link.trim(m.proves)
	if s.link.to == nothing {
		s.client.redial()
	}
	if !m.proves(ping) && !m.proves(sync) && !m.proves(handshake) {
		s.oldLeader = false // it can prove nothing
	}
	s.client.trim(int(m.gap))
}

// forget makes messages equal that prove no more than the credit does.
func (s *state) forget() {
	for _, q := range s.link.queues() {
		for i := range q[:length(q)] {
			m, oldest := &q[i], s.client.credit
			m.sent, m.relay, m.proof = min(m.sent, oldest), min(m.relay, oldest), min(m.proof, oldest)
		}
	}
}

// pass lets a unit of time pass. A PING that is due then is sent before anything else happens.
func (m *model) pass(s state, emit func(event, state)) {
	s.clock--
	s.client.pass()
	s.client.credit = min(s.client.credit, s.client.timeout)
	l := &s.link
	if m.idle && l.down[0].kind != none {
		if l.stuck++; l.stuck > m.stuck {
			l.downLost, l.stuck = true, 0
			clear(l.down[:])
		}
	}
	for _, q := range l.queues() {
		for i := range q[:length(q)] {
			if m := &q[i]; m.kind.fromClient() {
				m.sent, m.relay, m.proof = m.sent+1, m.relay+1, m.proof+1
			}
		}
	}
	if l.pinged() {
		if l.nextPing--; l.nextPing <= -m.late {
			m.ping(l)
		}
	}
	emit(event{what: tick}, s)
}

func (m *model) ping(l *link) {
	l.nextPing = m.interval
	push(l.down[:], message{kind: leaderPing})
}

// send yields the requests that the client can send.
func (m *model) send(s state, emit func(event, state)) {
	if !s.link.open || s.link.inFlight() >= m.inFlight {
		return
	}
	for k := ping; k <= write; k++ {
		s := s
		r := m.request(&s, k)
		m.rule.send(&s.client, &r)
		push(s.link.out[:], r)
		emit(event{what: send, about: k}, s)
	}
}

// request returns a request whose answer proves nothing yet.
func (m *model) request(s *state, k kind) message {
	credit := s.client.credit
	return message{kind: k, sent: credit, relay: credit, proof: credit}
}

// dial yields the connections that can replace the current one. The model does not distinguish an old leader from its
// followers.
func (m *model) dial(s state, emit func(event, state)) {
	s.client.redial()
	r := m.request(&s, handshake)
	r.sent = 0
	if m.grants == nil {
		m.dialTo(s, r, m.timeout, event{}, emit)
	}
	for _, timeout := range m.grants {
		s := s
		if timeout < max(slices.Max(m.grants), m.created) {
			s.late = min(cmp.Or(s.late, timeout), timeout)
		}
		m.dialTo(s, r, timeout, event{grant: timeout}, emit)
	}
}

func (m *model) dialTo(s state, r message, timeout int8, e event, emit func(event, state)) {
	yield := func(what action) {
		e.what = what
		emit(e, s)
	}
	s.link = link{to: leader, granted: timeout}
	push(s.link.out[:], r)
	yield(dialLeader)
	if m.single {
		return
	}
	if s.oldLeader {
		s.link.old = true
		yield(dialOld)
		s.link.old = false
	}
	s.link.to = follower
	for e.due = 1; e.due <= m.interval; e.due++ {
		s.link.nextPing = e.due
		yield(dial)
	}
}

// receive yields what happens when the next message of a queue arrives.
func (m *model) receive(s state, emit func(event, state)) {
	arrive := func(e action, queue func(*link) []message, act func(*state, message)) {
		s := s
		if q := queue(&s.link); q[0].kind != none {
			r := pop(q)
			act(&s, r)
			emit(event{what: e, about: r.kind}, s)
		}
	}
	serving := m.atFollower
	if s.link.to == leader {
		serving = m.atLeader
	}
	arrive(serve, func(l *link) []message { return l.out[:] }, serving)
	arrive(lead, func(l *link) []message { return l.up[:] }, m.fromFollower)
	arrive(follow, func(l *link) []message { return l.down[:] }, m.fromLeader)
	arrive(hear, func(l *link) []message { return l.in[:] }, m.atClient)
	if s.link.pinged() && s.link.nextPing <= 0 {
		m.ping(&s.link)
		emit(event{what: sendPing}, s)
	}
}

// atFollower is what a follower does with a request.
func (m *model) atFollower(s *state, r message) {
	l := &s.link
	if r.kind != handshake {
		l.touched = true
	}
	switch {
	case r.kind == ping:
		m.answerTo(s, r)
	case !l.upLost:
		push(l.up[:], r)
	}
}

// touch starts the session's clock at the leader of the quorum, for a request of a connection with the given timeout.
func (m *model) touch(s *state, timeout int8, k kind) {
	if m.single {
		if k == handshake && m.keeps {
			timeout = max(timeout, s.stored)
		}
		s.stored = timeout
	}
	s.clock = timeout
}

// atLeader is what a leader does with a request of its own client.
func (m *model) atLeader(s *state, r message) {
	if !s.link.old {
		m.touch(s, s.link.granted, r.kind)
	}
	if !s.link.old || r.kind != write {
		m.answerTo(s, r)
	}
}

// fromFollower is what a leader does with what a follower sends it.
func (m *model) fromFollower(s *state, r message) {
	l := &s.link
	if !l.old && (r.kind == report || r.kind == handshake) {
		m.touch(s, l.granted, r.kind)
	}
	if r.kind != report && !l.downLost && (!l.old || r.kind != write) {
		push(l.down[:], r)
	}
}

// fromLeader is what a follower does with what its leader sends it.
func (m *model) fromLeader(s *state, r message) {
	l := &s.link
	l.stuck = 0
	switch {
	case r.kind != leaderPing:
		m.answerTo(s, r)
	case l.touched:
		l.touched = false
		push(l.up[:], message{kind: report})
	}
}

// answerTo sends an answer to the client.
func (m *model) answerTo(s *state, r message) {
	if m.slow {
		push(s.link.in[:], r)
		return
	}
	m.atClient(s, r)
}

// atClient is what the client does with an answer.
func (m *model) atClient(s *state, r message) {
	if r.kind == handshake {
		s.link.open = true
		if timeout := s.link.granted; timeout != s.client.timeout && !m.granted(&s.client, timeout, r.sent) {
			return
		}
	}
	m.answer(&s.client, r)
}

// fail yields the failures that can happen. An election that moves the client's follower to the new leader is one that
// the client follows by dialing. An election while the client is on an old leader would only restart the clock.
func (m *model) fail(s state, emit func(event, state)) {
	m.arrive(s, emit)
	if m.single {
		s.link, s.clock = link{}, s.stored
		emit(event{what: restart}, s)
		return
	}
	if s.link.to == nothing || s.link.old {
		return
	}
	if s.link.to == follower && !s.link.upLost {
		s := s
		s.link.upLost = true
		clear(s.link.up[:])
		emit(event{what: loseUp}, s)
	}
	if s.link.to == follower && !s.link.downLost {
		s := s
		s.link.downLost = true
		clear(s.link.down[:])
		emit(event{what: loseDown}, s)
	}
	s.clock, s.oldLeader, s.link.old = s.stored, true, true
	emit(event{what: elect}, s)
}

// arrive yields the arrival of a handshake whose connection the client has dropped. One that leaves the session more
// time than it has does no harm. A single server closes the session's other connection then.
func (m *model) arrive(s state, emit func(event, state)) {
	if s.late == 0 {
		return
	}
	before := s.clock
	m.touch(&s, s.late, handshake)
	if m.single {
		s.link = link{}
	}
	if s.clock < before || m.single {
		emit(event{what: arrive, grant: s.late}, s)
	}
}
