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
package certainty
