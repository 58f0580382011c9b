// Package lock provides distributed locks on ZooKeeper. They are fair and fenced, and a holder learns that it has
// lost the lock before another client can acquire it.
//
//	m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
//	...
//	err = m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
//		return report(ctx, hold.Token())
//	})
//
// A lock returns a Hold: a value with a context that ends when the lock is lost, a token that grows with every hold,
// and a guard that makes writes to ZooKeeper fail once the hold is gone.
package lock

// Mutex, its configuration, and the errors of this package.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrHeld is what TryLock returns when another contender has the lock or waits for it.
	ErrHeld = errors.New("another contender holds the lock")
	// ErrUnlocked is the cause of a hold's context after Unlock.
	ErrUnlocked = errors.New("the hold has been unlocked")
	// ErrDeleted is the cause of a hold's context after another client, such as an operator's, deleted its node.
	ErrDeleted = errors.New("the hold's node was deleted by another client")
	// ErrWrap reports that a path has nearly used up its sequence numbers, after about two billion contenders: the
	// numbers end at 2147483647, and there is no order after that. Holds and waiters that are there already are not
	// affected. To start again from 0, delete the path, which the error names, as soon as it is empty. InspectNumbers
	// tells how many numbers are left.
	ErrWrap = line.ErrWrap
	// ErrWider reports that a node at the path or above it grants more than the ACL that was asked for. The error names
	// it. Config.AnyACL accepts such nodes. Other recipes return the same error.
	ErrWider = attempt.ErrWider
)

// Config says how a Mutex behaves. The zero Config is ready to use. The other locks have configurations of their own,
// with those of the fields that apply to them.
type Config struct {
	Label  string   // what this contender is for, shown by Inspect; UTF-8 of at most 1,024 bytes
	Layout Layout   // which other programs' locks respect ours; Curator's if zero
	ACL    []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool

	// Handoff limits how long goroutines of this process that share the Mutex pass the lock to each other without the
	// server.
	Handoff Handoff

	// Retain keeps the lock for this long after the last Unlock, so that this process can have it again without the
	// server. The lock is released at once when another process waits for it with Lock; a TryLock elsewhere does not
	// wait. Zero keeps nothing.
	Retain time.Duration

	// Retry says how often and how soon an acquisition is retried after it lost its session or connection while it
	// waited. Zero retries for as long as the caller's context lasts. Goroutines that share a contender share its
	// retries.
	Retry Retry

	// Delay is how long the lock rests after an unclean loss, to let late writes of the lost holder arrive: after its
	// session ended without an unlock, or its node was deleted by force. The next holder with a Delay waits for as
	// long as the lost one's says before Lock returns, and TryLock returns ErrHeld meanwhile. There is no wait after
	// an unlock. Holders without a Delay neither cause a wait nor observe one. It costs a round trip whenever a
	// contender becomes the first in line, and leaves a node at DelayPath while the lock is held and after a loss.
	//
	// It cannot be combined with Retain. Readers of an RWMutex wait after a writer that was lost, and writers after
	// any loss.
	Delay time.Duration

	// OnSuspend says whether a hold ends when the connection is lost, or only at the session's deadline.
	OnSuspend OnSuspend

	// OnRevoke is called when another client asks for the lock, with Revoke or with Curator's Revoker. It may finish
	// work first. If it returns true, the hold's context ends, with a *RevokedError; if it returns false, the hold
	// goes on, unless the other client takes the lock by force. The context that it gets ends with the hold, after
	// which the lock goes to the next in line, and not to a goroutine of this process: so it does after every request.
	// Each request calls it on a goroutine of its own. If OnRevoke is nil, the hold's context ends at once. A lock that
	// is only retained (Retain) is released without asking.
	OnRevoke func(ctx context.Context, r Revocation) bool

	// OnDeadlock says what Lock does when it waits inside of a hold and can never get the lock, because of a deadlock.
	OnDeadlock OnDeadlock
	// WaitsPath is where waits inside of holds are published for others: DefaultWaitsPath if empty. Only programs with
	// the same one, and the same chroot, find deadlocks with each other.
	WaitsPath string

	Hooks Hooks // called when the lock is waited for, acquired, not acquired, released and lost

	_ struct{}
}

func (c Config) withDefaults() (Config, error) {
	if c.Retain < 0 {
		return c, attempt.Bad("lock: Retain must not be negative: %v", c.Retain)
	}
	if c.Retain > 0 && c.Handoff == StrictFIFO {
		return c, attempt.Bad("lock: StrictFIFO and Retain cannot be combined; leave one of them zero")
	}
	if err := checkLabel(c.Label); err != nil {
		return c, err
	}
	if err := c.Layout.check(); err != nil {
		return c, err
	}
	if c.Delay < 0 {
		return c, attempt.Bad("lock: Delay must not be negative: %v", c.Delay)
	}
	if c.Delay > 0 && c.Retain > 0 {
		return c, attempt.Bad("lock: Delay and Retain cannot be combined; leave one of them zero")
	}
	if err := line.Policy(c.Retry).Check(); err != nil {
		return c, fmt.Errorf("lock: %w", err)
	}
	if err := c.OnSuspend.check(); err != nil {
		return c, err
	}
	var err error
	if c.WaitsPath, err = waits.CheckConfig("lock", int(c.OnDeadlock), c.WaitsPath); err != nil {
		return c, err
	}
	c.Handoff, err = c.Handoff.withDefaults()
	return c, err
}

// Mutex is a lock with one holder at a time among all processes that use its path, in the order in which the server
// saw them come. It shares a line with Curator's InterProcessMutex, go-zookeeper's Lock and kazoo's Lock, as far as
// those see its nodes: see Config.Layout.
//
// A Mutex may be used by any number of goroutines. They exclude each other like any other contenders, and share one
// node in the line: the lock passes from one goroutine to the next in memory, within the limits of Config.Handoff.
// Two Mutexes are two contenders, even with the same path. What is held is the Hold, not the Mutex.
//
// A Mutex and an RWMutex with the same path exclude each other: to the RWMutex, a Mutex is a writer. That does not help
// Curator's InterProcessMutex and InterProcessReadWriteLock, which do not see each other.
type Mutex struct {
	base
	line  line.Line
	queue localQueue
	take  func(context.Context, *report) (*Hold, error) // how Lock takes the lock

	// With StrictFIFO, tickets is the head of a ring of calls that have not joined the line yet. The queue's mu guards
	// it.
	tickets ticket
}

// NewMutex returns the mutex at path, which no other recipe may use. It does not contact the server: the path and
// missing parents are created when they are needed and removed when they are not. It returns an error if the path or
// the configuration is invalid.
func NewMutex(client *zk.Client, path string, cfg Config) (*Mutex, error) {
	cfg, err := checkNew(client, path, cfg)
	if err != nil {
		return nil, err
	}
	m := &Mutex{base: base{client: client, name: path, cfg: cfg}}
	m.tickets.init()
	if m.take = m.queue.lock; cfg.Handoff == StrictFIFO {
		m.take = m.strict
	}
	m.passes = &m.queue
	m.queue.base, m.queue.line, m.queue.others, m.queue.contend = &m.base, &m.line, anyone, m.contend
	contenderLine(&m.line, path, cfg, lockPrefixes, anyone)
	if err := checkSize(&m.line); err != nil {
		return nil, err
	}
	return m, nil
}

// Path returns the mutex's path.
func (m *Mutex) Path() string { return m.name }

// Lock waits for the lock and returns the hold. Contenders are served in the order in which the server saw them,
// goroutines that share this Mutex in the order of their calls.
//
// If ctx ends first, Lock leaves the line and returns ctx's cause; the error also wraps zk.ErrNotConnected if no
// server could be asked then. If the session ends while it waits, it joins the line again, at its end, under the next
// session. It returns the client's error if the client is closed or its credentials are refused. When Lock returns an
// error, it has left no node behind, or is still removing it in the background.
//
// Lock waits for every other hold, also for one of the caller's own: a caller that may have the lock already passes
// Reenter(ctx).
func (m *Mutex) Lock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, m, Exclusive, m.take)
}

// strict takes the lock with StrictFIFO: a contender in the servers' line for each caller, in the order of the calls.
func (m *Mutex) strict(ctx context.Context, r *report) (*Hold, error) {
	m.queue.mu.Lock()
	t := m.tickets.draw()
	m.queue.mu.Unlock()
	defer t.drop(&m.queue.mu)
	return m.alone(ctx, r, func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error) {
		if err := m.tickets.turn(ctx, &m.queue.mu, t, sess); err != nil {
			return nil, err
		}
		request, err := m.line.AskInTurn(ctx, sess)
		if err != nil {
			return nil, err
		}
		// The request counts as having joined, and the next caller asks before the answer: the servers execute the
		// requests of a session in the order in which they were sent. A request that has to be sent again (its
		// connection broke, or the path was not there yet) has lost its turn to those that were sent meanwhile.
		t.enter(&m.queue.mu, sess)
		return m.first(ctx, request, queued)
	})
}

// TryLock returns the hold if the lock is free, and ErrHeld at once if another contender has it or waits for it. The
// server that answers may not know yet that another holder has just unlocked, so ErrHeld may be outdated; the lock is
// never given twice. A try that fails costs one read and no sequence number.
func (m *Mutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, m, Exclusive, m.tryLock)
}

func (m *Mutex) tryLock(ctx context.Context, r *report) (*Hold, error) {
	try := func(sess *zk.Session) (*line.Own, error) { return m.cfg.tryEnter(ctx, sess, &m.line) }
	if m.cfg.Handoff == StrictFIFO {
		return m.alone(ctx, r, func(_ context.Context, sess *zk.Session, _ func(*line.Own)) (*line.Own, error) {
			return try(sess)
		})
	}
	return m.queue.try(func() (*line.Ownership, error) { return m.own(ctx, try) })
}

// contend returns a function that makes the contender of a group first.
func (m *Mutex) contend(ctx context.Context, g *group) func(*zk.Session) (*line.Own, error) {
	return func(sess *zk.Session) (*line.Own, error) {
		request := g.request
		if g.request = nil; request != nil && request.Session() != sess {
			// Its node has ended with its session, but a merged release waits for its answer. It was the first try.
			request.Cancel()
			return nil, fmt.Errorf("%w: %w", attempt.ErrNotDone, request.Session().Err())
		}
		if request == nil {
			request = m.line.Ask(sess)
		}
		return m.first(ctx, request, g.queued)
	}
}
