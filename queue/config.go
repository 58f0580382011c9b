package queue

// Configuration.

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// The bounds of Message.Priority.
const (
	MostUrgent  = segment.MostUrgent  // -100
	LeastUrgent = segment.LeastUrgent // 100
)

const (
	defaultPacket   = 0xfffff // jute.maxbuffer of servers by default
	defaultPrefetch = segment.ReadChunk
	defaultAttempts = 20
	defaultSegment  = 1000
	defaultLinger   = time.Second
	defaultKeys     = 24 * time.Hour
	maxPrefetch     = 1000
	maxDelay        = 10 * 365 * 24 * time.Hour
)

// Config says how a queue behaves. The zero Config is ready to use. Producers and consumers at one path may have
// different ones.
type Config struct {
	// ACL is the access list of the queue's nodes, and of parents that it creates; open to everyone if nil.
	ACL []zk.ACL
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool

	// MaxItems bounds how many items there are: ready, delayed, waiting and claimed ones, not dead letters. A put that
	// would exceed it returns ErrFull, or waits if WaitWhenFull is set. Puts at the same time do not count each other,
	// so that the queue may exceed the bound by as many items as they put. Zero is no bound.
	//
	// A bound costs each Put or PutBatch reads before it writes: of the lists of priorities and of delayed items, of
	// the Stat of each segment, one for about a thousand items, and of the number of nodes of groups. When that
	// number, three for each group in which something waits, comes near the bound, or the server is older than 3.6, it
	// reads the Stat of each group that is busy. The server that this client is connected to answers them, and it may
	// lag.
	MaxItems int
	// WaitWhenFull makes puts wait for room instead of returning ErrFull. A put of more than MaxItems messages returns
	// ErrFull at once.
	WaitWhenFull bool
	// MaxPacket is the largest request that the servers accept, in bytes: their jute.maxbuffer; 1,048,575 if zero.
	MaxPacket int
	// KeepKeys is how long a key of PutOnce counts after the put, by the servers' clock; a day if zero. It is stored
	// with the key, so all producers go by the value of the one that has put it.
	KeepKeys time.Duration

	// MaxAttempts is how often an item is delivered before it goes to the dead letters; 20 if zero, no limit if
	// negative.
	MaxAttempts int
	// MaxDead bounds the dead letters: the oldest beyond so many are removed. Zero is no bound.
	MaxDead int
	// KeepDead is after how long, by the servers' clock, a dead letter is removed; never if zero.
	//
	// This Queue keeps MaxDead and KeepDead while it consumes: when it begins to, after each of its dead letters, and
	// every minute. The servers may have more letters, or older ones, meanwhile. Letters that are requeued at the same
	// moment may count. A letter's age counts from its death, also if its node was written to since.
	KeepDead time.Duration
	// Backoff says how long after a failed attempt an item is ready again, for Item.Fail and Consume.
	Backoff Backoff
	// Timeout is how long an attempt may take at an item whose Message has no Timeout of its own; no limit if zero.
	// When it is over the item's context ends, with ErrTimeout, and in Consume the attempt has failed.
	Timeout time.Duration
	// Prefetch is how many items a Queue claims at once, ahead of its takers, at most 1,000; 200 if zero, none if
	// negative. How many it does claim follows the pace at which they are taken: no more than are taken in about a
	// fifth of a second or, if that is longer, in a few times the time that a claim takes. It claims the next when a
	// quarter is left.
	Prefetch int
	// Linger is how long items that were claimed ahead wait for a taker before they are given back; 1s if zero.
	Linger time.Duration

	// Hooks are called when something happens.
	Hooks Hooks

	segment int // items after which a segment is sealed; tests set it

	_ struct{}
}

// Backoff says how long after its n-th failed attempt an item is ready again: First × 2^(n−1), at most Max, and up to
// a tenth more or less, so that items that failed together do not come back together.
type Backoff struct {
	First time.Duration // 1s if zero
	Max   time.Duration // 10 minutes, or First if that is more, if zero; at most ten years
}

// Delay returns the time after failed attempt n, counted from 1.
func (b Backoff) Delay(n int) time.Duration {
	d := b.First
	for range n - 1 {
		if d *= 2; d >= b.Max || d <= 0 {
			d = b.Max
			break
		}
	}
	d = min(d, b.Max)
	spread := int64(d / 5)
	if spread <= 0 {
		return d
	}
	return d - d/10 + time.Duration(rand.Int64N(spread))
}

func (c Config) withDefaults() (Config, error) {
	c.MaxPacket = cmp.Or(c.MaxPacket, defaultPacket)
	c.KeepKeys = cmp.Or(c.KeepKeys, defaultKeys)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, defaultAttempts)
	c.Backoff.First = cmp.Or(c.Backoff.First, time.Second)
	c.Backoff.Max = cmp.Or(c.Backoff.Max, max(c.Backoff.First, 10*time.Minute))
	c.Prefetch = cmp.Or(c.Prefetch, defaultPrefetch)
	c.Linger = cmp.Or(c.Linger, defaultLinger)
	c.segment = cmp.Or(c.segment, defaultSegment)
	switch {
	case c.MaxItems < 0:
		return c, attempt.Bad("queue: MaxItems must not be negative: %d; zero is no bound", c.MaxItems)
	case c.WaitWhenFull && c.MaxItems == 0:
		return c, attempt.Bad("queue: WaitWhenFull needs MaxItems")
	case c.MaxPacket < 16<<10:
		return c, attempt.Bad("queue: MaxPacket is too small: %d bytes; use %d or more", c.MaxPacket, 16<<10)
	case c.KeepKeys < 0:
		return c, attempt.Bad("queue: KeepKeys must not be negative: %v; zero is %v", c.KeepKeys, defaultKeys)
	case c.Linger < 0:
		return c, attempt.Bad("queue: Linger must not be negative: %v; zero is %v", c.Linger, defaultLinger)
	case c.Backoff.First < 0:
		return c, attempt.Bad("queue: Backoff.First must not be negative: %v; zero is 1s", c.Backoff.First)
	case c.Backoff.Max < c.Backoff.First:
		return c, attempt.Bad("queue: Backoff.Max must not be less than Backoff.First: %v and %v",
			c.Backoff.Max, c.Backoff.First)
	case c.Backoff.Max > maxDelay:
		return c, attempt.Bad("queue: Backoff must be at most ten years: %v", c.Backoff.Max)
	case c.MaxDead < 0:
		return c, attempt.Bad("queue: MaxDead must not be negative: %d; zero is no bound", c.MaxDead)
	case c.KeepDead < 0:
		return c, attempt.Bad("queue: KeepDead must not be negative: %v; zero is no bound", c.KeepDead)
	case c.Timeout < 0 || c.Timeout > maxDelay:
		return c, attempt.Bad("queue: Timeout must be between 0 and ten years: %v; zero is no limit", c.Timeout)
	case c.Prefetch > maxPrefetch:
		return c, attempt.Bad("queue: Prefetch is too large: %d; use %d or less", c.Prefetch, maxPrefetch)
	}
	return c, nil
}

// Message is an item to put. Only Body is needed.
type Message struct {
	Body []byte
	// Priority orders items before their arrival does: smaller is more urgent, as in Curator and kazoo. It goes from
	// MostUrgent to LeastUrgent.
	Priority int
	// Delay is how long the item is not ready yet, by the servers' clock: at most ten years. When it is over, the item
	// arrives.
	Delay time.Duration
	// Timeout is how long an attempt at the item may take, in milliseconds rounded up; Config.Timeout of its consumer
	// if zero. It goes with the item, through all its attempts.
	Timeout time.Duration
	// Group, unless empty, makes the item wait until all items that were put into the queue before with the same Group
	// are finished: done, dead or removed. So they are worked on one at a time, in their order, and those of different
	// groups at the same time. An item that fails and comes again keeps the others of its group waiting. At most 255
	// bytes, none of them NUL; an item with a Group takes no Delay, and may be half as large as others.
	Group string
	// Headers go with the item.
	Headers map[string]string
}

func (m *Message) check() error {
	switch {
	case m.Priority < MostUrgent || m.Priority > LeastUrgent:
		return attempt.Bad("priority must be between %d and %d: %d", MostUrgent, LeastUrgent, m.Priority)
	case m.Delay < 0 || m.Delay > maxDelay:
		return attempt.Bad("delay must be between 0 and ten years: %v", m.Delay)
	case len(m.Group) > maxGroup:
		return attempt.Bad("a group's name must have at most %d bytes, not %d", maxGroup, len(m.Group))
	case strings.ContainsRune(m.Group, 0):
		return attempt.Bad("a group's name must have no NUL byte: %q", m.Group)
	case m.Group != "" && m.Delay != 0:
		return errors.New("an item with a group takes no delay: those behind it would have to wait, too")
	case m.Timeout < 0 || m.Timeout > maxDelay:
		return attempt.Bad("timeout must be between 0 and ten years: %v; zero is the consumer's", m.Timeout)
	}
	return nil
}
