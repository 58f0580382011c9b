// Package certainty decides by exhaustive search when a client may be certain that its session still exists.
//
// A client that is cut off from its ensemble must stop believing in its locks before the leader expires its session.
// It has only the answers that it received: what do they prove about the leader's clock for this session? A rule for
// this is easy to get wrong. A follower answers pings without the leader. A leader that its quorum has left still
// answers syncs. And a leader learns only from time to time which sessions a follower has heard from.
//
// The package has no code, only tests: a model of one session in an ensemble, small enough to visit every
// interleaving of requests, delays, failures and elections, and the rules to check. A rule is refuted by a reachable
// state in which the client is certain but the leader may have expired the session, so that another client may hold
// the lock. The search is breadth-first: it prints one of the shortest histories that lead to such a state.
//
// # The argument
//
// The rule is in docs/partitions.md: w is a certificate, y a sync or write that was answered before w was sent, r a
// request that was answered at least 5T/16 before y was sent. Why is the leader's clock for the session at least as
// new as r?
//
//  1. The follower knows of r. Whenever a request comes in, it notes that the session is alive, and answers afterwards
//     (ZooKeeperServer.submitRequestNow, LearnerSessionTracker.touchSession). r was answered, so it was noted.
//  2. The leader asked in between. It sends PING to every follower each half tick (Leader.lead), which is T/4 at most.
//     y was handled by the leader at least 5T/16 after r was answered, so there was a PING between the two, late by up
//     to a sixteenth of T at least.
//  3. The follower reported r before w. PING and the answer to y are on one TCP connection, in that order
//     (LearnerHandler.queuedPackets). So the follower had the PING before the client had the answer to y. It answers a
//     PING at once with the sessions that it has noted (Follower.processPacket, Learner.ping). w was sent after that,
//     so the report is ahead of w on the way to the leader.
//  4. The leader heard it. w was committed by a leader that received w, and with it the report before it. It restarted
//     the session's clock then (LearnerHandler.run, case PING; SessionTrackerImpl.touchSession), and that was after r
//     was sent. ExpiryQueue rounds up.
//  5. If there is another leader by now, a quorum left the old one after accepting w (ProposalRequestProcessor,
//     Leader.processAck). The new leader starts all session clocks at its takeover (ZooKeeperServer.startup), which is
//     after w was sent.
//  6. The handshake of a reconnect is put to the leader, which restarts the clock at once (LearnerHandler.run, case
//     REVALIDATE). A zombie leader does that as well; but w was answered on the same connection, and a follower that
//     loses its leader closes its clients' connections (Learner.shutdown, closeAllConnections), so it was the leader
//     that accepted w.
//  7. A client of the leader itself restarts its clock with every request.
//  8. Rule 5 adds no risk to a session that is certain when it sends w: the leader's clock then has at least the
//     margin left, T/4. It gives the lock to a client that has been idle without a further request.
//  9. Rule 7: a server negotiates the timeout anew at each handshake, within its own limits. The leader's clock starts
//     with the new timeout when the handshake arrives, even if the reply is lost and the clock had more time left. A
//     new leader starts all clocks with the timeout of the session's creation (SessionTrackerImpl). So the clock of a
//     session never starts with less than T, as long as no server grants less than T. Points 2 to 4 depend neither on
//     how fast messages travel nor on which direction of a link fails first.
package certainty
