//go:build unix

package lin_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// What can happen. A blip is over at once; a stall and an outage last, often longer than a session.
const (
	drop       = "drop the connection of"
	dropReply  = "lose a reply of"
	refuse     = "lose a request of"
	cutBefore  = "cut before a request of"
	cutAfter   = "cut after a reply of"
	delayReply = "delay a reply of"

	dropAll     = "drop all connections, not only of"
	cut         = "cut off"
	halfOpen    = "half-open"
	mute        = "mute the servers towards"
	freeze      = "freeze"
	slow        = "slow down"
	stopProcess = "stop the process of"
	killProcess = "kill the process of"

	killServer = "kill server"
	stopServer = "stop server"
	killLeader = "kill the leader, or if there is none server"
	stopLeader = "stop the leader, or if there is none server"
)

// fault is something that happens to a client or to a server.
type fault struct {
	at    time.Duration // to a client: since the beginning of the epoch; to a server: since the end of the one before
	what  string
	whom  int           // the number of the client or of the server
	place string        // if somebody is busy in this place at that time, it is them instead
	nth   int           // which of the client's next requests, of a blip that is aimed at one
	lasts time.Duration // of a stall or an outage; of a delay, how long it is
}

func (f fault) String() string {
	return fmt.Sprintf("%v: %s %d, or whoever is busy in %q (%d, %v)", f.at, f.what, f.whom, f.place, f.nth, f.lasts)
}

// schedule is all that goes wrong in an epoch, drawn before it begins.
type schedule struct {
	clients []fault
	servers []fault // one after the other: two that are away at once are no ensemble
}

func newSchedule(rnd *rand.Rand, length time.Duration, places []string) schedule {
	between := func(from, to time.Duration) time.Duration { return from + upTo(rnd, to-from) }
	one := func(whats ...string) string { return whats[rnd.IntN(len(whats))] }
	slowOnes := slices.DeleteFunc(slices.Clone(places), func(place string) bool { return !isSlow(place) })
	var s schedule
	for at := time.Duration(0); at < length; at += between(10*time.Millisecond, 100*time.Millisecond) {
		s.clients = append(s.clients, fault{
			at: at, what: one(drop, dropReply, dropReply, refuse, cutBefore, cutAfter, delayReply),
			whom: rnd.IntN(clients), nth: 1 + rnd.IntN(10), lasts: between(0, 100*time.Millisecond),
		})
	}
	for at := time.Duration(0); at < length; at += between(timeout/4, timeout) {
		f := fault{
			at: at, what: one(dropAll, cut, halfOpen, halfOpen, mute, freeze, slow, stopProcess, stopProcess, killProcess),
			whom: rnd.IntN(clients), lasts: between(0, 2*timeout),
		}
		switch rnd.IntN(3) {
		case 0:
			f.place = one(places...)
		case 1:
			f.place = one(slowOnes...)
		}
		s.clients = append(s.clients, f)
	}
	slices.SortStableFunc(s.clients, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	for at := time.Duration(0); at < length; {
		f := fault{
			at: between(timeout, 3*timeout), what: one(killServer, stopServer, killLeader, stopLeader),
			whom: rnd.IntN(servers), lasts: between(0, timeout*3/2),
		}
		s.servers = append(s.servers, f)
		at += f.at + f.lasts
	}
	return s
}
