package server

import (
	"errors"
	"fmt"
	"time"
)

// Unlimited lifts a limit.
const Unlimited = -1

// Limits bound what clients may take of the server, so that none of them can cost another client its service or the process its memory.
// A field that is zero means the default. Unlimited lifts a limit, except those of replies and of the time to send. The word mntr
// shows each limit, and how often it was hit. The rest of the table is in docs/limits.md.
type Limits struct {
	// Sessions is how many sessions may live, 100000. Half of them may belong to one address. A handshake that asks for more is closed.
	Sessions int
	// Conns is how many connections there may be, 20000 or three quarters of the files that the process may open. One more is closed.
	Conns int
	// Watches is how many watches one connection may have, 100000, with 256 bytes of path for each. A persistent watch counts twice.
	// A request for more is refused with BadArguments and changes nothing.
	Watches int
	// Identities is how many identities one connection may add, 100, with 1024 bytes for each. A request for more is refused with AuthFailed.
	Identities int
	// Reply is the size of a reply in bytes, 64 MiB or twice MaxFrame. A read that would say more is refused with MarshallingError.
	Reply int
	// Unsent is how many bytes may wait to be sent to one client, 128 MiB or Reply and a half more. It stops being served earlier, so these are events.
	// A client that lets more wait is disconnected.
	Unsent int
	// Memory is how many bytes requests, replies, events, watches and identities of all clients may take, 1 GiB. Beyond it
	// the client with the most is disconnected.
	Memory int
	// SendTime is how long a client may take to read what was sent to it, 64 KiB at a time, 30s. Then it is disconnected.
	SendTime time.Duration
	_        struct{}
}

// The shares of some limits.
const (
	watchPath    = 256  // bytes of path a watch
	identitySize = 1024 // bytes an identity
)

// What a connection may leave undone before it is no longer read or served. Nothing is refused for these.
const (
	maxPending  = 1000    // unanswered requests, more are not read
	maxRequests = 8 << 20 // bytes of them; one larger request is served alone
	softBacklog = 4 << 20 // bytes that the client has not read yet: its next requests wait
	sendChunk   = 64 << 10
	maxLinger   = time.Second // for the client to close a connection whose last reply it has
	weighAfter  = 16 << 20    // bytes that are taken from one look at the memory that clients take to the next

	identityCost = 64 // bytes of an identity beside its text
)

// limit names one of the limits.
type limit uint8

const (
	limitSessions limit = iota
	limitSessionsPerAddress
	limitConns
	limitConnsPerAddress
	limitWatches
	limitIdentities
	limitReply
	limitUnsent
	limitMemory
	limitSendTime
	limitCount
)

// limitNames are the names that mntr and the log use.
var limitNames = [limitCount]string{
	"sessions", "sessions_per_address", "connections", "connections_per_address", "watches_per_connection", "identities_per_connection",
	"reply_bytes", "unsent_bytes_per_connection", "memory_bytes", "send_milliseconds",
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults(maxFrame int) Limits {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	conns := 20_000
	if files := fileLimit(); files > 0 {
		conns = int(min(int64(conns), files*3/4))
	}
	set(&l.Sessions, 100_000)
	set(&l.Conns, conns)
	set(&l.Watches, 100_000)
	set(&l.Identities, 100)
	set(&l.Reply, max(64<<20, min(2*maxFrame, maxReply)))
	set(&l.Unsent, max(128<<20, l.Reply+l.Reply/2))
	set(&l.Memory, 1<<30)
	l.SendTime = orDuration(l.SendTime, 30*time.Second)
	return l
}

// The sizes of what is around a reply's body.
const (
	frameHeader = 4
	replyHeader = 16
)

// maxReply is what the protocol's field for a frame's length can say.
const maxReply = 1<<31 - 1

func (l *Limits) check(maxFrame int) error {
	var errs []error
	for _, row := range []struct {
		name  string
		value int
	}{
		{"Sessions", l.Sessions},
		{"Conns", l.Conns},
		{"Watches", l.Watches},
		{"Identities", l.Identities},
		{"Unsent", l.Unsent},
		{"Memory", l.Memory},
	} {
		if row.value < Unlimited {
			errs = append(errs, fmt.Errorf("server: Limits.%s is %d, want a positive number or Unlimited", row.name, row.value))
		}
	}
	if l.Reply < min(maxFrame+1024, maxReply) || l.Reply > maxReply {
		errs = append(errs, fmt.Errorf("server: Limits.Reply is %d, want a little more than MaxFrame, which is %d, to %d", l.Reply, maxFrame, maxReply))
	}
	if l.Unsent > 0 && l.Unsent < l.Reply+softBacklog {
		errs = append(errs, fmt.Errorf("server: Limits.Unsent is %d, want at least a reply and %d more", l.Unsent, softBacklog))
	}
	if l.SendTime < time.Millisecond {
		errs = append(errs, fmt.Errorf("server: Limits.SendTime is %v, want at least 1ms", l.SendTime))
	}
	return errors.Join(errs...)
}

// full reports whether n has reached a limit.
func full(n, limit int) bool { return limit >= 0 && n >= limit }

// half returns one address's share of a limit.
func half(limit int) int {
	if limit < 0 {
		return limit
	}
	return max(1, limit/2)
}

// limit returns the value of a limit.
func (c *Config) limit(l limit) int64 {
	return [limitCount]int64{
		int64(c.Limits.Sessions), int64(half(c.Limits.Sessions)), int64(c.Limits.Conns), int64(c.MaxClientConns), int64(c.Limits.Watches),
		int64(c.Limits.Identities), int64(c.Limits.Reply), int64(c.Limits.Unsent), int64(c.Limits.Memory), c.Limits.SendTime.Milliseconds(),
	}[l]
}

// hit counts that a client has met a limit, and says so the first time, the second, the fourth and so on: whoever meets limits meets them often.
func (s *Server) hit(l limit, client string) {
	if n := s.stats.hits[l].Add(1); n&(n-1) == 0 {
		s.cfg.Logger.Warn("server: a client has met a limit", "limit", limitNames[l], "value", s.cfg.limit(l), "client", client, "times", n)
	}
}
