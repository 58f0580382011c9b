package main

import "time"

// A contender is a client that can do a load's cycle, on a server, with a configuration.
type contender struct {
	name   string
	kind   string
	server string
	config string // durable or not, fair or not, and what else matters

	role   role
	strict bool
	retain time.Duration
	hooks  string // as in plan

	processes, clients, lockers int     // if not the load's
	depth                       int     // likewise, of a queue
	packet                      int     // the largest packet that a Java client accepts; 0 for its default
	shares                      bool    // all waiters of a process have one node in the line
	skip                        string  // why it is left out; empty if it is not
	required                    float64 // what a subject's figure divided by this one's must reach; 0 without a promise
}

// A role says what is compared: every subject with the peers on its own server, and on servers of another kind.
type role int

const (
	peerRole role = iota
	subjectRole
	aside // is not compared
)

const (
	durable  = "durable"
	volatile = "not durable"
	fair     = ", fair"

	ourBound  = ", fair among processes, hand-off in one bounded"
	syncPause = ", not fair (polls every 50–250 ms)"
	lockPause = ", not fair (polls every 100 ms)"
)

// subject is Turnstile with its default configuration.
func subject(server string) contender {
	return contender{
		name: "Turnstile", kind: kindTurnstile, server: server, role: subjectRole, shares: true,
		config: durable + ourBound,
	}
}

// strictly is Turnstile without hand-off in memory.
func strictly(server string) contender {
	c := subject(server)
	c.name, c.config, c.strict, c.shares = "Turnstile, StrictFIFO", durable+fair, true, false
	return c
}

// retaining is Turnstile that keeps a lock for a while.
func retaining(server string) contender {
	c := subject(server)
	c.name, c.retain = "Turnstile, Retain", time.Minute
	c.config = durable + ", fair among processes, kept while none waits"
	return c
}

// goZooKeeper is a peer whose figure times required the subject on the same server must reach.
func goZooKeeper(server string, required float64) contender {
	return contender{
		name: "go-zookeeper Lock", kind: kindGoZooKeeper, server: server, required: required, config: durable + fair,
	}
}

// others are the peers without a promise, one on each of their servers.
func others() []contender {
	return []contender{
		{name: "Curator InterProcessMutex", kind: kindCurator, server: onZooKeeper, config: durable + fair},
		{name: "kazoo Lock", kind: kindKazoo, server: onZooKeeper, config: durable + fair},
		{name: "etcd concurrency.Mutex", kind: kindEtcd, server: onEtcd, config: durable + fair},
		{name: "redsync", kind: kindRedsync, server: onRedis, config: volatile + syncPause},
		{name: "redsync", kind: kindRedsync, server: onRedisAOF, config: durable + syncPause},
		{name: "redislock", kind: kindRedislock, server: onRedis, config: volatile + lockPause},
		{name: "redislock", kind: kindRedislock, server: onRedisAOF, config: durable + lockPause},
	}
}

// title names the contender in the table.
func (c *contender) title() string { return c.name + " on " + c.server }

// unavailable says what the contender needs that is not installed; empty if nothing is missing.
func (c *contender) unavailable() string {
	if m := missing(c.server); m != "" {
		return m
	}
	return lacks(c.kind)
}

// warmup is how long the contender runs before it is measured, so that what compiles as it runs has run.
func (c *contender) warmup(d time.Duration) time.Duration {
	if isCurator(c.kind) || c.server == onZooKeeper {
		return max(d/2, time.Second)
	}
	return d / 2
}

// meets reports whether a subject is compared with a peer.
func (c *contender) meets(peer *contender) bool {
	if c.role != subjectRole || peer.role != peerRole {
		return false
	}
	switch peer.server {
	case onEtcd, onRedis, onRedisAOF:
		return true
	case onServe, onHosted:
		return c.server == onServe || c.server == onHosted
	default:
		return c.server == peer.server || c.kind == kindNodes
	}
}
