package server

// Limits of what clients may use.

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Unlimited removes a limit.
const Unlimited = -1

// Limits bound what clients may use, so that no client can keep the server from serving others or exhaust its memory.
// Zero fields mean the default. Unlimited removes a limit, except Reply and SendTime. The four-letter word mntr shows
// each limit and how often clients have hit it. docs/limits.md lists further limits.
type Limits struct {
	// Sessions is the number of sessions, 100000. One address may have half of them. The server closes a connection
	// that asks for one more.
	Sessions int
	// Conns is the number of connections, those for HTTP commands included: 20000, or less if the process may not open
	// so many files, of which some are kept aside for the data. The server closes any further connection.
	Conns int
	// Watches is the number of watches of one connection, 100000, with 256 bytes of path for each. A persistent watch
	// counts twice. A request for more is refused with BadArguments and changes nothing.
	Watches int
	// Identities is the number of identities that one connection may add, 100, with 1024 bytes for each. A request for
	// more is refused with AuthFailed.
	Identities int
	// Reply is the size of a reply in bytes: 64 MiB, or twice MaxFrame if that is more. A read with a larger reply is
	// refused with MarshallingError.
	Reply int
	// Unsent is how many bytes may wait to be sent to one client: 128 MiB, or one and a half times Reply if that is
	// more. Requests of a slow reader are held back much earlier, so what exceeds the limit is events. The server then
	// closes the connection.
	Unsent int
	// Memory is how many bytes requests, replies, events, watches and identities of all clients may use, 1 GiB. Above
	// it the server closes the connections that use most.
	Memory int
	// SendTime is how long a client may take to read 64 KiB that the server has sent, 30s. After that the server closes
	// the connection.
	SendTime time.Duration
	_        struct{}
}

// The bytes that go with each counted unit of a limit.
const (
	watchPath    = 256  // of path, per watch
	identitySize = 1024 // per identity
)

// Bounds at which the server stops reading or serving a connection for a while. Nothing is refused because of them.
const (
	maxPending   = 1000    // unanswered requests; beyond them the server stops reading
	maxRequests  = 8 << 20 // bytes of unanswered requests; a larger request is served alone
	softBacklog  = 4 << 20 // bytes that the client has not read; beyond them its requests wait
	sendChunk    = 64 << 10
	maxLinger    = time.Second // for the client to close a connection after its last reply
	enforceAfter = 16 << 20    // bytes allocated for clients between two checks of Limits.Memory

	identityCost = 64 // bytes of an identity besides its strings
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
	limitStored
	limitEvents
	limitLists
	limitCount
)

// limitNames are the names in mntr and the log.
var limitNames = [limitCount]string{
	"sessions", "sessions_per_address", "connections", "connections_per_address", "watches_per_connection",
	"identities_per_connection",
	"reply_bytes", "unsent_bytes_per_connection", "memory_bytes", "send_milliseconds",
	"acl_bytes_per_multi", "events_per_write", "monitoring_lists",
}

// withDefaults fills in defaults.
func (l Limits) withDefaults(maxFrame int) Limits {
	conns := 20_000
	if files := fileLimit(); files > 0 {
		conns = min(conns, connsWithin(files))
	}
	l.Sessions = cmp.Or(l.Sessions, 100_000)
	l.Conns = cmp.Or(l.Conns, conns)
	l.Watches = cmp.Or(l.Watches, 100_000)
	l.Identities = cmp.Or(l.Identities, 100)
	l.Reply = cmp.Or(l.Reply, max(64<<20, min(2*maxFrame, maxReply)))
	l.Unsent = cmp.Or(l.Unsent, max(128<<20, l.Reply+l.Reply/2))
	l.Memory = cmp.Or(l.Memory, 1<<30)
	l.SendTime = cmp.Or(l.SendTime, 30*time.Second)
	return l
}

// The sizes of what precedes a reply's body.
const (
	frameHeader = 4
	replyHeader = 16
)

// maxReply is the largest length of a frame in the protocol.
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
			errs = append(errs, fmt.Errorf("server: Limits.%s must be positive or Unlimited: %d", row.name, row.value))
		}
	}
	if l.Reply < min(maxFrame+1024, maxReply) || l.Reply > maxReply {
		errs = append(errs, fmt.Errorf("server: Limits.Reply must be from %d (somewhat above MaxFrame) to %d: %d",
			min(maxFrame+1024, maxReply), maxReply, l.Reply))
	}
	if l.Unsent > 0 && l.Unsent < l.Reply+softBacklog {
		errs = append(errs, fmt.Errorf("server: Limits.Unsent must be at least %d (Limits.Reply and %d more): %d",
			l.Reply+softBacklog, softBacklog, l.Unsent))
	}
	if l.SendTime < time.Millisecond {
		errs = append(errs, fmt.Errorf("server: Limits.SendTime must be at least 1ms: %v", l.SendTime))
	}
	return errors.Join(errs...)
}

// full reports whether n has reached limit.
func full(n, limit int) bool { return limit >= 0 && n >= limit }

// half returns the share of a limit that one address may use.
func half(limit int) int {
	if limit < 0 {
		return limit
	}
	return max(1, limit/2)
}

// maxEvents is how many events one write may cause.
const maxEvents = 100_000

// maxLists returns how many bytes of access lists one multi may store without containing them.
func (c *Config) maxLists() int { return max(4<<20, 4*c.MaxFrame) }

// limit returns the value of a limit.
func (c *Config) limit(l limit) int64 {
	return [limitCount]int64{
		int64(c.Limits.Sessions), int64(half(c.Limits.Sessions)), int64(c.Limits.Conns), int64(c.MaxClientConns),
		int64(c.Limits.Watches),
		int64(c.Limits.Identities), int64(c.Limits.Reply), int64(c.Limits.Unsent), int64(c.Limits.Memory),
		c.Limits.SendTime.Milliseconds(),
		int64(c.maxLists()), maxEvents, maxSurveys,
	}[l]
}

// hit counts that a client has hit a limit.
func (s *Server) hit(l limit, client string) {
	s.warn(&s.stats.hits[l], "server: client hit a limit", "limit", limitNames[l], "value", s.cfg.limit(l),
		"client", client)
}

// warn counts what a client has done, and logs the first time, the second, the fourth and so on, because a client that
// does it once tends to do it often.
func (s *Server) warn(count *atomic.Int64, text string, args ...any) {
	if n := count.Add(1); n&(n-1) == 0 {
		s.cfg.Logger.Warn(text, append(args, "times", n)...) //nolint:sloglint // a constant of the caller's
	}
}
