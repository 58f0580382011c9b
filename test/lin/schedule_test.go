//go:build unix

package lin_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The faults. A blip is over at once; a stall and an outage last, often longer than a session.
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

	cutServer     = "cut off from the others server"
	zombieLeader  = "hang up on the leader, which does not notice, or if there is none server"
	deafServer    = "let the leader, or another, say nothing to server"
	unheardServer = "let the leader, or another, hear nothing from server"
	slowServer    = "delay what the leader, or another, says to and hears from server"
)

// The sets from which faults are drawn.
var (
	blipNames  = []string{drop, dropReply, dropReply, refuse, cutBefore, cutAfter, delayReply}
	stalls     = []string{dropAll, cut, halfOpen, halfOpen, mute, freeze, slow, stopProcess, stopProcess, killProcess}
	partitions = []string{cutServer, zombieLeader, deafServer, unheardServer, slowServer}
	outages    = slices.Concat([]string{killServer, stopServer, killLeader, stopLeader}, partitions)
)

// fault is something that happens to a client or to a server.
type fault struct {
	// For a client, since the beginning of the epoch; for a server, since the end of the previous fault.
	at    time.Duration
	what  string
	whom  int           // the number of the client or of the server
	place string        // if a client is busy in this place at that time, it is the target instead
	nth   int           // for a blip at a request: which of the client's next requests
	lasts time.Duration // of a stall or an outage; for a delay, its length

	// For partitions. The place is one whose holder's server is the target.
	other int           // how many servers further the other end of a link is, if no end is the leader
	late  time.Duration // the delay of a link
	quiet bool          // no faults for clients meanwhile
}

func (f fault) String() string {
	text := fmt.Sprintf("%v: %s %d, or the client busy in %q (%d, %v)", f.at, f.what, f.whom, f.place, f.nth, f.lasts)
	if f.quiet {
		text += ", and nothing else"
	}
	return text
}

// schedule is everything that goes wrong in an epoch, drawn before it begins.
type schedule struct {
	clients []fault
	servers []fault // one after the other: an ensemble of three cannot lose two
}

// dice draw schedules.
type dice struct{ *rand.Rand }

func (d dice) between(from, to time.Duration) time.Duration { return from + upTo(d.Rand, to-from) }

func (d dice) one(of []string) string { return of[d.IntN(len(of))] }

func newSchedule(rnd *rand.Rand, length time.Duration, places []string) schedule {
	d := dice{rnd}
	slowOnes := slowOf(places)
	var s schedule
	for at := time.Duration(0); at < length; at += d.between(10*time.Millisecond, 100*time.Millisecond) {
		s.clients = append(s.clients, fault{
			at: at, what: d.one(blipNames),
			whom: rnd.IntN(clients), nth: 1 + rnd.IntN(10), lasts: d.between(0, 100*time.Millisecond),
		})
	}
	for at := time.Duration(0); at < length; at += d.between(timeout/4, timeout) {
		f := fault{
			at: at, what: d.one(stalls),
			whom: rnd.IntN(clients), lasts: d.between(0, 2*timeout),
		}
		switch rnd.IntN(3) {
		case 0:
			f.place = d.one(places)
		case 1:
			f.place = d.one(slowOnes)
		}
		s.clients = append(s.clients, f)
	}
	slices.SortStableFunc(s.clients, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	for at := time.Duration(0); at < length; {
		f := fault{
			at: d.between(timeout, 3*timeout), what: d.one(outages),
			whom: rnd.IntN(servers), lasts: d.between(0, timeout*3/2),
		}
		if slices.Contains(partitions, f.what) {
			d.partition(&f, slowOnes)
		}
		s.servers = append(s.servers, f)
		at += f.at + f.lasts
	}
	return s
}

// partition completes a partition. Half of them last until sessions that were not heard have expired, most of these
// without another fault: connections that end for other reasons would let clients find a better server.
func (d dice) partition(f *fault, places []string) {
	f.other, f.late = 1+d.IntN(servers-1), d.between(0, timeout/2)
	if d.IntN(2) == 0 {
		f.lasts = d.between(timeout*3/2, timeout*5/2)
		f.quiet = d.IntN(3) > 0
	}
	if d.IntN(4) > 0 {
		f.place = d.one(places)
	}
}

// partitionsAlone returns a schedule of long partitions of holders' servers. Between them connections are dropped,
// and nothing else happens: otherwise all clients would flee to the same server.
func partitionsAlone(rnd *rand.Rand, length time.Duration, places []string) schedule {
	d := dice{rnd}
	slowOnes := slowOf(places)
	var s schedule
	for at := timeout / 2; at < length; at += timeout / 2 {
		s.clients = append(s.clients, fault{at: at, what: dropAll})
	}
	for at := time.Duration(0); at < length; {
		f := fault{
			at: d.between(timeout/2, timeout), what: d.one([]string{cutServer, zombieLeader}), whom: rnd.IntN(servers),
			place: d.one(slowOnes), lasts: d.between(timeout*3/2, timeout*2), quiet: true,
		}
		s.servers = append(s.servers, f)
		at += f.at + f.lasts
	}
	return s
}

func slowOf(places []string) []string {
	return slices.DeleteFunc(slices.Clone(places), func(place string) bool { return !isSlow(place) })
}
