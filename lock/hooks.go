package lock

// Hooks.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/both"
)

// Hooks are called about a lock's acquisitions, for logs and metrics. Nil fields cost nothing. Hooks may use the
// lock, and must not block for long: Lock and Unlock wait for them. Lock stands here for all methods that acquire:
// TryLock, RLock, TryRLock, Acquire, TryAcquire and Do as well. If Enqueued or Acquired panics, the lock or the place
// in line may be kept until the session ends.
//
// Each call of Lock calls Enqueued at most once, and then either Acquired or Failed once: Acquired if it returns a
// hold, Failed if it returns an error. Each Acquired is followed by either Released or Lost, once. Event.ID tells which
// calls belong together. Nested holds (Reenter) are part of the outermost hold and call nothing; Failed is called for a
// Lock that was to nest in a hold and could not.
type Hooks struct {
	// Enqueued is called by the goroutine that calls Lock, at most once and before Acquired and Failed, if it has to
	// wait for another contender.
	Enqueued func(ctx context.Context, e Event)
	// Acquired is called by the goroutine that calls Lock, before that returns the hold.
	Acquired func(ctx context.Context, e Event)
	// Failed is called by the goroutine that calls Lock, before that returns an error: because ctx has ended, because
	// another contender has what was tried (ErrHeld), because a server refuses, or because of bad input.
	Failed func(ctx context.Context, e Event)
	// Released is called by the goroutine that calls Unlock, after the lock was released. The next holder's Acquired
	// may come first.
	Released func(e Event)
	// Lost is called when a hold has ended before it was unlocked, by a goroutine of its own or by the one that calls
	// Unlock, whichever is first, after Acquired has returned.
	Lost func(e Event)
	// Deadlock is called, with a *DeadlockError in Event.Err, for each wait that is part of a deadlock, once the
	// deadlock is certain. The wait that gives way (FailWait) fails, so Failed follows for that. It is called by a
	// goroutine of its own, which looks for no further deadlock meanwhile.
	Deadlock func(e Event)
	// Stranger is called when a contender stands at the path, in Event.Node, whose program does not look for ours, as
	// far as its node's name tells: it may hold the lock at the same time. It is called once for each that this lock
	// sees when it lists its line, by a goroutine that calls Lock or TryLock, or by one that stands in line for several
	// of them. Another Layout may help; Inspect shows who excludes whom. The event has a Path and a Node, and no more.
	Stranger func(e Event)
	// Stray is called when a contender waits for a node with a contender's name, in Event.Node, that belongs to no
	// session, such as a copy of a tree leaves: the wait lasts until it is deleted by hand. It is called for each wait
	// for it, by the goroutine that waits. The event has a Path and a Node, and no more.
	Stray func(e Event)
}

// And returns hooks that call those of h and then those of more: a program's own, and for example those of package
// metrics.
func (h Hooks) And(more Hooks) Hooks {
	return Hooks{
		Enqueued: both.Two(h.Enqueued, more.Enqueued),
		Acquired: both.Two(h.Acquired, more.Acquired),
		Failed:   both.Two(h.Failed, more.Failed),
		Released: both.One(h.Released, more.Released),
		Lost:     both.One(h.Lost, more.Lost),
		Deadlock: both.One(h.Deadlock, more.Deadlock),
		Stranger: both.One(h.Stranger, more.Stranger),
		Stray:    both.One(h.Stray, more.Stray),
	}
}

// Event is the argument of the Hooks.
type Event struct {
	ID     uint64        // of the call of Lock, with which all calls of hooks about it come; unique in this process
	Path   string        // of the lock; a Set's paths with " and " between them
	Kind   Kind          // what was asked for; it stays when Upgrade or Downgrade changes the hold
	Node   string        // the hold's node when it was acquired; "" for Enqueued, Failed; another for Stranger, Stray
	Token  Token         // the hold's when it was acquired; 0 for Enqueued and Failed
	How    How           // how the hold was acquired; 0 for Enqueued and Failed
	Queued bool          // it had to wait for another contender: Enqueued is or was called
	Since  time.Time     // when Lock was called; Released and Lost: when the lock was acquired
	Took   time.Duration // from Since until now; 0 for Enqueued behind a goroutine of this process
	// First is, for Acquired with FromServer and Queued, how long after Since the contender came to be first in its
	// line. What is left of Took went by until the session was certain, and for Config.Delay. It is 0 if the contender
	// has waited in no line, as a Semaphore's may.
	First time.Duration
	// Stopping is, for Released with an Err, how long before the unlock the hold's context had ended.
	Stopping time.Duration
	// Err is the error that Lock returns, for Failed, and that Unlock returns, for Lost. For Released it is a
	// *RevokedError or ErrSuspended if the hold's context had ended for that before the unlock, and otherwise nil.
	Err error
}

// How says how a hold was acquired.
type How uint8

// The ways to acquire a hold.
const (
	FromServer How = iota + 1 // by a node of its own, or as the first of the goroutines that share a node
	HandedOff                 // in memory, from another goroutine that has unlocked, or beside readers of this process
	Retained                  // in memory, because this process had kept the lock: see Config.Retain
)

// String returns the way's name, in lower case.
func (h How) String() string {
	switch h {
	case FromServer:
		return "server"
	case HandedOff:
		return "handoff"
	case Retained:
		return "retained"
	default:
		return fmt.Sprintf("How(%d)", int(h))
	}
}
