package certainty_test

// The model: assumptions about ZooKeeper, messages and states.

import "slices"

// The model has discrete time. Within one unit of time any number of events may happen, in any order. These are its
// participants, the assumptions about them, and the classes of ZooKeeper 3.8 that implement them.
//
//   - The client has at most one connection. At any time it may send a ping, a sync or a write, stay silent, or replace
//     its connection. Requests and answers are FIFO and may take arbitrarily long. A connection that is cut is one on
//     which they take forever.
//   - A follower notes that a session is alive whenever it receives a request from it (ZooKeeperServer.submitRequestNow
//     and LearnerSessionTracker.touchSession, the touch table). It answers pings alone and at once
//     (FinalRequestProcessor), and forwards syncs and writes to the leader (FollowerRequestProcessor).
//   - The leader sends PING to every follower once per interval, which is half a tick (Leader.lead,
//     LearnerHandler.ping). A model may let a PING be late. The follower answers with its touch table and clears it
//     (Follower.processPacket, Learner.ping). When that report arrives, the leader restarts the clock of every session
//     in it (LearnerHandler.run, case PING).
//   - A forwarded sync or write does not restart the session's clock. A handshake that resumes a session does
//     (LearnerHandler.run, case REVALIDATE), and so does any request from a client that is connected to the leader
//     itself (SessionTrackerImpl.touchSession).
//   - The links between leader and follower are FIFO (one TCP connection, LearnerHandler.queuedPackets). Each direction
//     may be slow without limit, and may lose everything from some moment on. A follower that loses its leader closes
//     the connections of its clients (Learner.shutdown, closeAllConnections), so a client's connection never outlives
//     the link behind it.
//   - A handshake negotiates the timeout anew, within the limits of the server that receives it
//     (ZooKeeperServer.processConnectRequest). The leader's clock then starts with the new timeout, also if it had more
//     time left, and whether or not the answer reaches the client. From then on the requests of that connection start
//     the clock with that timeout (LearnerSessionTracker, ExpiryQueue.update). A handshake on a connection that the
//     client has dropped may arrive at any later time.
//   - What is stored with the session is the timeout that it was created with. A new leader, and a server that starts
//     again, start every clock with that one.
//   - A write is answered only if a quorum follows the leader (ProposalRequestProcessor, Leader.processAck). The leader
//     answers a sync without asking anyone (Leader.processSync).
//   - At any time the quorum may leave the leader and elect another one, which starts every session's clock anew
//     (Leader.lead, ZooKeeperServer.startup). The old leader keeps the followers on its side of the partition. For an
//     unlimited time it answers pings, syncs and handshakes. It commits nothing.
//   - The embedded server is one server, so every client is connected to the leader. It stores the timeout with which
//     it counts. At a handshake it keeps the larger one of the old and the new until the client, which knows the new
//     one by then, has sent something after the answer. A model with single and without keeps is a server that does
//     not.
//   - The leader of the quorum expires a session when its clock runs out (SessionTrackerImpl.run). ExpiryQueue rounds
//     that moment up; the model does not, which is the worst case.
//
// The model leaves out what can only help the client: the time between one leader and the next; requests, other than
// handshakes, still on their way on a connection that the client has dropped (they may restart the clock once more);
// the time that the quorum needs for a write (a write that travels slowly to the leader has the same effect); and
// followers whose touch table or link holds something when the client connects. A follower's answer to a ping may
// overtake answers to earlier requests, which ZooKeeper allows only on some paths.
//
// The model knows no lost touches. In ZooKeeper a touch can get lost if the follower takes its snapshot of the touch
// table between the two steps of touchTable.get().put(...). The window is a few instructions wide.

// A kind tells messages apart.
type kind uint8

const (
	none kind = iota
	handshake
	ping
	sync
	write
	leaderPing // from the leader to a follower
	report     // a follower's answer to leaderPing, with the session in its touch table
)

// fromClient reports whether a message is a client's request or the answer to one.
func (k kind) fromClient() bool { return k != none && k < leaderPing }

// A message is a request until it is answered, and then its answer. The ages are the client's notes on it; servers
// ignore them.
type message struct {
	kind  kind
	sent  age // when the request was sent
	relay age // what its answer will prove to have reached the leader once a later write is answered
	proof age // what its answer will prove to have reached the leader of the quorum
}

// maxInFlight limits the requests in flight of any model.
const maxInFlight = 3

// A clientQueue is one direction of the client's connection.
type clientQueue [maxInFlight]message

// A serverQueue is one direction of the link between a follower and its leader. There is room for a report or PING
// between any two requests. Of two in direct succession the later one is enough.
type serverQueue [2*maxInFlight + 1]message

func push(q []message, m message) {
	end := length(q)
	if end > 0 && q[end-1].kind == m.kind && !m.kind.fromClient() {
		return
	}
	q[end] = m
}

func pop(q []message) message {
	m := q[0]
	copy(q, q[1:])
	q[len(q)-1] = message{}
	return m
}

func length(q []message) int {
	n := 0
	for n < len(q) && q[n].kind != none {
		n++
	}
	return n
}

// keep removes the messages of all other kinds.
func keep(q []message, wanted func(kind) bool) {
	old := slices.Clone(q[:length(q)])
	clear(q)
	for _, m := range old {
		if wanted(m.kind) {
			push(q, m)
		}
	}
}

func has(q []message, k kind) bool {
	return slices.ContainsFunc(q, func(m message) bool { return m.kind == k })
}

// A peer is what the client is connected to.
type peer uint8

const (
	nothing peer = iota
	follower
	leader
)

// A state is everything that determines what can happen next. Its times are relative to the present.
type state struct {
	client    client
	clock     int8 // units until the leader of the quorum expires the session
	stored    int8 // the timeout with which a leader starts the clock
	late      int8 // the smallest timeout that a handshake under way may be granted; 0 if that is the largest of all
	oldLeader bool // there is a leader that the quorum has left
	link      link
}

// A link is the client's connection and, if that goes to a follower, the follower's link to its leader.
type link struct {
	to       peer
	open     bool // the handshake is answered
	granted  int8 // the timeout that the handshake is granted
	old      bool // the quorum has left the leader at its end
	touched  bool // the follower's touch table has the session
	upLost   bool // nothing more reaches the leader from the follower
	downLost bool // nothing more reaches the follower from the leader
	stuck    int8 // how long ago the first message in down was sent, at least; 0 unless the client may be idle
	nextPing int8 // units until the leader's next PING is due
	out, in  clientQueue
	up, down serverQueue
}

// queues returns all four queues of the link.
func (l *link) queues() [4][]message { return [4][]message{l.out[:], l.in[:], l.up[:], l.down[:]} }

func (l *link) inFlight() (n int) {
	for _, q := range l.queues() {
		for _, m := range q[:length(q)] {
			if m.kind.fromClient() {
				n++
			}
		}
	}
	return n
}

// pinged reports whether PINGs of the leader still have an effect.
func (l *link) pinged() bool { return l.to == follower && !l.old && !l.upLost && !l.downLost }

// trim removes what can have no further effect, so that equivalent states become equal. A link on which no answer can
// arrive that proves anything is replaced by none.
func (l *link) trim(proves func(kind) bool) {
	if !l.old && !l.upLost && !l.downLost {
		return
	}
	l.touched, l.nextPing = false, 0
	// Of the requests that have no answer yet, the follower still answers pings, and an old leader pings, syncs and
	// handshakes.
	answered := func(k kind) bool { return k == ping || l.old && !l.upLost && !l.downLost && k < write }
	keep(l.out[:], answered)
	keep(l.up[:], answered)
	keep(l.down[:], kind.fromClient)
	if l.downLost {
		l.stuck = 0
		clear(l.down[:])
	}
	for k := handshake; k <= write; k++ {
		possible := answered(k) && (l.open || answered(handshake)) || has(l.down[:], k) || has(l.in[:], k)
		if possible && proves(k) {
			return
		}
	}
	*l = link{}
}
