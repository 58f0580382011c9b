// Package lock holds distributed locks on ZooKeeper: fair, told first when they are lost, and fenced.
//
//	m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
//	...
//	err = m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
//		return report(ctx, hold.Token())
//	})
//
// What a lock returns is a Hold: a value with a context that ends when the lock is lost, before anybody else can have it; a token
// that is larger for every later hold; and a guard that makes writes to ZooKeeper fail once the hold is gone.
package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrHeld is TryLock's answer when somebody else has the lock or waits for it.
	ErrHeld = errors.New("lock: held by somebody else")
	// ErrUnlocked is the cause of a hold's context after Unlock.
	ErrUnlocked = errors.New("lock: unlocked")
	// ErrDeleted is the cause of a hold's context after its node was deleted by somebody else: an operator, say.
	ErrDeleted = errors.New("lock: the hold's node was deleted by somebody else")
	// ErrWrap is the answer to an attempt to stand in a line whose path has nearly used up its sequence numbers, after about two thousand
	// million contenders: they end at 2147483647, and behind that there is no order of the line. Holds and waiters that were there
	// before are not affected. To begin at 0 again, delete the path as soon as it is empty. The error names the path;
	// InspectNumbers says how many are left.
	ErrWrap = line.ErrWrap
)

// Config says how a Mutex behaves. The zero Config is ready to use. The other locks have configurations of their own, with
// those of the fields that they obey.
type Config struct {
	Label  string   // what this contender is for, shown to whoever inspects the lock; UTF-8 of at most 1,024 bytes
	Layout Layout   // whose contenders know ours for what they are; Curator's if zero
	ACL    []zk.ACL // of the nodes and of the parents that are made for them; open to everybody if nil

	// Handoff bounds how goroutines of this process that use one Mutex pass the lock to each other without the server.
	Handoff Handoff

	// Retain keeps the lock for so long after the last Unlock, so that this process has it again without asking the server. It is
	// given up at once when another process stands in line for it; a TryLock elsewhere does not stand in line. Zero keeps nothing.
	Retain time.Duration

	// Retry says how often and how soon an acquisition is tried again whose session or connection was lost while it stood in line. If it
	// is zero that goes on for as long as the caller's context lasts. Goroutines that share one place in the line share its tries.
	Retry Retry

	// Delay is how long a lock must rest after an unclean loss, for whatever the former holder has under way to arrive: after its session
	// ended without an unlock, or its node was deleted by force. The next holder with a Delay waits for as long as the lost one's says
	// before Lock returns, and TryLock says ErrHeld meanwhile. After an unlock nobody waits. Holders without a Delay neither cause a wait
	// nor heed one. It costs a round trip for every place in line that comes to be first, and leaves a node beside the path, at
	// DelayPath, while the lock is held and after a loss.
	//
	// It cannot be combined with Retain. Readers of an RWMutex wait after a writer that was lost, and writers after any loss.
	Delay time.Duration

	// OnSuspend says whether a hold ends when the connection is lost, or only at the session's deadline.
	OnSuspend OnSuspend

	// OnRevoke, if it is not nil, is asked whenever somebody asks for the lock with Revoke, or with Curator's Revoker. It may first bring
	// to an end what is under way. If it returns true the hold's context ends, with a *RevokedError; if it returns false the
	// hold goes on, until whoever asked takes the lock by force. Its context ends with the hold. It is called by a goroutine of its own,
	// for each request. If it is nil, the hold's context ends at once.
	OnRevoke func(ctx context.Context, r Revocation) bool

	Hooks Hooks // are told when the lock is waited for, acquired, released and lost

	_ struct{}
}

func (c Config) withDefaults() (Config, error) {
	if c.Retain < 0 {
		return c, fmt.Errorf("lock: a lock cannot be kept for %v; leave Retain zero to keep nothing", c.Retain)
	}
	if c.Retain > 0 && c.Handoff == StrictFIFO {
		return c, errors.New("lock: StrictFIFO takes a new place for every acquisition, so nothing can be retained; leave one of the two out")
	}
	if err := checkLabel(c.Label); err != nil {
		return c, err
	}
	if err := c.Layout.check(); err != nil {
		return c, err
	}
	if c.Delay < 0 {
		return c, fmt.Errorf("lock: nobody can wait for %v; leave Delay zero for no delay", c.Delay)
	}
	if c.Delay > 0 && c.Retain > 0 {
		return c, errors.New("lock: nobody could tell a retained lock that is lost from a held one, so it cannot have a Delay; leave one of the two out")
	}
	if c.Retry.err != nil {
		return c, c.Retry.err
	}
	err := c.OnSuspend.check()
	if err != nil {
		return c, err
	}
	c.Handoff, err = c.Handoff.withDefaults()
	return c, err
}

// Mutex is a lock that one holder has at a time, among all processes that use its path, in the order in which the server saw them
// come. It stands in one line with Curator's InterProcessMutex, go-zookeeper's Lock and kazoo's Lock, as far as those see it: see
// Config.Layout.
//
// A Mutex may be used by any number of goroutines. They exclude each other like any other contenders, and share one node in the line:
// a lock that many goroutines of one process want passes from one to the next in memory, within the bounds of Config.Handoff. Two
// Mutexes are two contenders, even if they have the same path. What is held is the Hold, not the Mutex.
//
// A Mutex and an RWMutex of one path exclude each other: what holds the one waits for readers and writers of the other, and is waited for
// like a writer. Curator's InterProcessMutex and InterProcessReadWriteLock, which do not see each other, are not helped by that.
type Mutex struct {
	client *zk.Client
	path   string
	cfg    Config
	line   line.Line
	cohort cohort

	mu      sync.Mutex // guards the tickets; never held while anything is waited for
	tickets ticket     // with StrictFIFO, the head of a ring of those who are on their way
}

// NewMutex returns the mutex at path, which is private to it: no other recipe may use it. Nothing is asked of the server yet; the path
// and missing parents are made when they are needed and go away when they are not. It returns an error for a path that is none.
func NewMutex(client *zk.Client, path string, cfg Config) (*Mutex, error) {
	cfg, err := checkNew(client, path, cfg)
	if err != nil {
		return nil, err
	}
	m := &Mutex{client: client, path: path, cfg: cfg}
	m.cohort.mutex = m
	m.tickets.init()
	contenderLine(&m.line, path, cfg, lockStem, anyone)
	if err := checkSize(&m.line); err != nil {
		return nil, err
	}
	return m, nil
}

// Path returns the mutex's path.
func (m *Mutex) Path() string { return m.path }

// Lock waits for the lock and returns the hold. Contenders are served in the order in which the server saw them, goroutines that share
// this Mutex in the order of their calls.
//
// If ctx ends first, it leaves the line and returns ctx's cause; zk.ErrNotConnected is in the error, too, if there
// was no server to ask then, and is not if the lock was held. If the session ends while it waits, it joins the line
// again at its end under the next one; a client that is closed, or whose credentials are refused, ends the wait with
// the client's error. Whenever it returns an error, it has left no node behind, or is still removing it in the
// background.
//
// Lock waits for every other hold, also for one of the caller's own: a caller that may have the lock already passes
// Reenter(ctx).
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	a, nested, err := m.begin(ctx)
	if nested != nil || err != nil {
		return nested, err
	}
	h, err := m.lock(ctx)
	return m.end(ctx, a, h, err)
}

func (m *Mutex) lock(ctx context.Context) (*Hold, error) {
	if m.cfg.Handoff == StrictFIFO {
		return m.strict(ctx)
	}
	return m.cohort.lock(ctx)
}

// strict is lock for StrictFIFO: a place in the servers' line for each caller, in the order of the calls.
func (m *Mutex) strict(ctx context.Context) (*Hold, error) {
	m.mu.Lock()
	t := m.tickets.draw()
	m.mu.Unlock()
	defer t.drop(&m.mu)
	return m.alone(m.place(ctx, nil, t, m.cfg.Hooks.enqueuedOnce(ctx, m.path)))
}

// ask asks for a place, after those who drew a ticket before; t is nil for who has nobody of ours beside them.
//
// Who has sent the request counts as having joined. Nobody waits for an answer before the next one asks, because the servers execute
// the requests of a session in the order in which they were sent. A request that has to be sent again (its connection broke, or the
// path was not there yet) has lost its turn to those that were sent meanwhile.
func (m *Mutex) ask(ctx context.Context, sess *zk.Session, t *ticket) (*line.Entry, error) {
	if t == nil {
		return m.line.Ask(sess), nil
	}
	if err := m.tickets.turn(ctx, &m.mu, t, sess); err != nil {
		return nil, err
	}
	asked := m.line.Ask(sess)
	t.enter(&m.mu, sess)
	return asked, nil
}

// TryLock returns the hold if the lock is free, and ErrHeld at once if anybody has it or waits for it. That somebody else left a
// moment ago may not have reached the server that answers: then ErrHeld is late news, never the lock given twice. A try that fails
// costs one read and no number in the line.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	a, nested, err := m.begin(ctx)
	if nested != nil || err != nil {
		return nested, err
	}
	h, err := m.tryLock(ctx)
	return m.end(ctx, a, h, err)
}

func (m *Mutex) tryLock(ctx context.Context) (*Hold, error) {
	if m.cfg.Handoff == StrictFIFO {
		return m.alone(m.tryPlace(ctx))
	}
	return m.cohort.try(ctx)
}

// alone makes a hold of a place that serves nobody else.
func (m *Mutex) alone(place *line.Place, err error) (*Hold, error) {
	return m.cfg.holdOn(m.client, m.path, place, err)
}

// place stands in line until it is first, in the place that has been asked for if that is not nil. T is as for ask. It calls queued
// whenever it finds somebody ahead of a new place.
func (m *Mutex) place(ctx context.Context, asked *line.Entry, t *ticket, queued func()) (*line.Place, error) {
	defer func() {
		if asked != nil {
			asked.Abandon()
		}
	}()
	return attempt(ctx, m.cfg.Retry, m.client, func(sess *zk.Session) (*line.Place, error) {
		entry := asked
		if asked = nil; entry == nil || entry.Session() != sess {
			if entry != nil { // its node has ended with its session, but whoever leaves by the same transaction waits for its answer
				entry.Abandon()
			}
			var err error
			if entry, err = m.ask(ctx, sess, t); err != nil {
				return nil, err
			}
		}
		place, err := entry.Place(ctx)
		if err != nil {
			entry.Abandon()
			return nil, err
		}
		if !place.First() {
			queued()
		}
		if err := place.Await(ctx); err != nil {
			place.Leave()
			return nil, err
		}
		return m.cfg.start(ctx, m.path, place, waitsOut(queued))
	})
}

// tryPlace takes the first place in line if nobody stands in it.
func (m *Mutex) tryPlace(ctx context.Context) (*line.Place, error) {
	return attempt(ctx, m.cfg.Retry, m.client, func(sess *zk.Session) (*line.Place, error) {
		m.line.Flush() // or we would find ourselves in the line
		children, _, err := sess.Children(ctx, m.path)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		if len(line.Seats(children, m.line.Markers)) > 0 {
			return nil, ErrHeld
		}
		place, err := m.line.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		if !place.First() {
			place.Leave()
			return nil, ErrHeld
		}
		return m.cfg.start(ctx, m.path, place, waitsNot)
	})
}

// failed says of which lock err is, and, when waiting was cut short without a server in sight, why there was none.
func (m *Mutex) failed(err error) error { return failedAt(m.client, m.path, err) }
