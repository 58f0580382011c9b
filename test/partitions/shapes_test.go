//go:build unix

package partitions_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// timeouts are the holders' session timeouts in ticks, the shortest first. Servers grant no less than two ticks.
var timeouts = []int{2, 5, 10}

// A shape is a way to partition an ensemble.
type shape struct {
	name   string
	leader bool // holders use the leader, not a follower
	act    func(s *scene)
	limits func(s *scene) // before; it calls scene.limit. Holders then have sessions that were made at other servers
	heals  bool           // act heals at its end, and holders may keep what they hold
	peers  bool           // other projects' locks are measured with it, too
}

var shapes = []shape{
	{name: "follower cut off", peers: true, act: func(s *scene) {
		s.cut()
		s.links.CutOff(s.at)
	}},
	{name: "zombie leader", leader: true, peers: true, act: func(s *scene) {
		s.cut()
		s.links.Zombie(s.at)
	}},
	// The leader still reaches the follower, which continues to serve. What the leader does not learn is which
	// sessions are alive.
	{name: "follower unheard", peers: true, act: func(s *scene) {
		s.cut()
		s.others(func(j int) { s.links.Freeze(s.at, j) })
		s.wait(s.ticks(0.1, 1.5))
		s.others(func(j int) { s.links.Freeze(j, s.at) })
	}},
	// What the leader has sent meanwhile arrives when the follower can no longer reply.
	{name: "follower deaf, then unheard", peers: true, act: func(s *scene) {
		s.cut()
		s.others(func(j int) { s.links.Freeze(j, s.at) })
		s.wait(s.ticks(0.3, 2.5))
		s.cut()
		s.others(func(j int) { s.links.Freeze(s.at, j) })
		s.others(func(j int) { s.links.Thaw(j, s.at) })
	}},
	{name: "healed just before the deadline", heals: true, act: func(s *scene) {
		timeout := timeouts[s.rnd.IntN(2)] // beyond five ticks the servers hang up by themselves
		s.cut()
		s.links.CutOff(s.at)
		s.wait(s.ticks(0.85*float64(timeout), 0.97*float64(timeout)))
		s.links.Heal()
		s.healedAt = clock()
	}},
	{name: "two cuts", peers: true, act: func(s *scene) {
		s.links.CutOff(s.at)
		s.wait(s.ticks(1, 1.9))
		s.links.Heal()
		s.wait(s.ticks(0.05, 0.6))
		s.cut()
		s.links.CutOff(s.at)
	}},
	{name: "client stopped", act: func(s *scene) {
		part := 0.5 + 0.2*s.rnd.Float64()
		for i, timeout := range slices.Backward(timeouts) {
			s.holders[timeout].signal(s.t, syscall.SIGSTOP)
			next := 0
			if i > 0 {
				next = timeouts[i-1]
			}
			s.wait(time.Duration(part * float64(timeout-next) * float64(s.tick)))
		}
		for _, timeout := range timeouts {
			s.holders[timeout].signal(s.t, syscall.SIGCONT)
		}
		s.wait(s.ticks(0.02, 0.25))
		s.cut()
		s.links.CutOff(s.at)
	}},
	{name: "leader stopped", act: func(s *scene) {
		s.cluster.Pause(s.leader)
		s.wait(s.ticks(0.05, 0.2))
		s.cut()
		s.others(func(j int) { s.links.Freeze(s.at, j) })
		s.wait(s.ticks(0.05, 0.15))
		s.cluster.Resume(s.leader)
		s.wait(s.ticks(0.05, 0.5))
		s.others(func(j int) { s.links.Freeze(j, s.at) })
	}},
	{name: "client unheard, then follower cut off", act: func(s *scene) {
		s.links.Freeze(s.client, s.at)
		s.links.Freeze(s.at, s.client)
		s.wait(s.ticks(0.8, 1.4))
		s.links.Heal()
		s.wait(s.ticks(0.02, 0.3))
		s.cut()
		s.links.CutOff(s.at)
	}},
	// The sessions are resumed with a longer timeout than they were made with. The new leader counts with the first.
	{name: "zombie leader that grants more", leader: true, limits: func(s *scene) {
		s.others(func(j int) { s.limit(j, timeouts[0]) })
	}, act: func(s *scene) {
		s.cut()
		s.links.Zombie(s.at)
	}},
	{name: "follower that grants less", limits: func(s *scene) { s.limit(s.at, timeouts[0]) }, act: func(s *scene) {
		s.cut()
		s.links.CutOff(s.at)
	}},
}

// cluster is what ensembles of ZooKeeper and of etcd have in common.
type cluster interface {
	Len() int
	Links() *peer.Links
	AwaitLeader(not int) int
	AwaitAll()
	Pause(i int)
	Resume(i int)
	Configure(i int, keys map[string]string)
	Restart(i int)
}

// A venue is a cluster to partition, and the numbers of its clients.
type venue struct {
	cluster   cluster
	tick      time.Duration
	client    int // the holders' number in the cluster's links
	healthier int // the contenders' number
}

func newVenue(c cluster, tick time.Duration) venue {
	return venue{cluster: c, tick: tick, client: c.Links().Client(), healthier: c.Links().Client()}
}

// A scene is what a shape acts on.
type scene struct {
	venue
	t        *testing.T
	links    *peer.Links
	rnd      *rand.Rand
	at       int            // the server that the holders are connected to
	leader   int            // the leader
	holders  map[int]*party // of our project, by session timeout in ticks
	cutAt    int64
	healedAt int64 // when the partition ended; set by the shapes that heal
}

// limit starts server i again with a limit on session timeouts, in ticks, until the end of the test.
func (s *scene) limit(i, ticks int) {
	set := func(ticks int) {
		limit := (time.Duration(ticks) * s.tick).Milliseconds()
		s.cluster.Configure(i, map[string]string{"maxSessionTimeout": strconv.FormatInt(limit, 10)})
		s.cluster.Restart(i)
	}
	set(ticks)
	s.t.Cleanup(func() { set(20) }) // the default of ZooKeeper
}

// cut records the begin of a partition that is not healed before contenders may acquire.
func (s *scene) cut() { s.cutAt = clock() }

// others calls f for every other server, the leader first.
func (s *scene) others(f func(j int)) {
	if s.leader != s.at {
		f(s.leader)
	}
	for j := range s.cluster.Len() {
		if j != s.at && j != s.leader {
			f(j)
		}
	}
}

// ticks draws a duration.
func (s *scene) ticks(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*s.rnd.Float64()) * float64(s.tick))
}

func (s *scene) wait(d time.Duration) {
	time.Sleep(d) // faults come at random times: there is no event to wait for
}
