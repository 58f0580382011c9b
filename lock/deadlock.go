package lock

// Deadlocks: what users see of them, and the waits that can be part of one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/internal/waits"
)

// OnDeadlock says what a wait does that is part of a deadlock: each of some programs waits for what another of them
// holds.
//
// A wait can be part of a deadlock if it goes on inside of a hold: if the context that was passed to Lock descends from
// Hold.Context, or is the one that Do passes to its function. A leadership is a hold, too, and a campaign a wait
// (elect.Config.OnDeadlock). When such a wait has lasted for 200 ms, the client tells of it in an ephemeral node below
// Config.WaitsPath, with the ACL of the lock, and reads what others tell. A deadlock is certain once every one of its
// clients has confirmed that its waits and holds still stand: none is reported that has not existed. A hold counts as
// waiting if all calls of Lock inside of it that others know of do. The client's Logger hears of each deadlock, and if
// a server does not let the client tell of its waits.
//
// What is not found: deadlocks through a call that waits outside of any hold (a Set that has its turn at one path, a
// writer with readers behind it, a large request of a semaphore with others behind it), through a WatchedLimit's
// permits, an Upgrade, other programs' locks, or barriers and queues, where nobody knows who will end the wait, between
// elections in layouts that see only a part of each other, and between clients with different chroots, WaitsPaths or
// rights.
type OnDeadlock int

// What a wait does that is part of a deadlock.
const (
	// ReportDeadlock calls Hooks.Deadlock, and waits on.
	ReportDeadlock OnDeadlock = iota
	// FailWait does the same. Then one of the deadlock's waits, the last that came of those with FailWait, returns a
	// *DeadlockError. Its caller keeps what it holds: it must unlock, so that the others can go on. A caller that only
	// tries again makes the same deadlock again. See Set for locks that are taken together.
	FailWait
	// IgnoreDeadlock tells others nothing of the wait.
	IgnoreDeadlock
)

// DefaultWaitsPath is Config.WaitsPath if that is empty.
const DefaultWaitsPath = waits.DefaultPath

// ErrDeadlock is wrapped by every DeadlockError.
var ErrDeadlock = errors.New("deadlock")

// A DeadlockError says who waits for whom. It wraps ErrDeadlock.
type DeadlockError struct {
	// Steps is the way around: each waits for what the next one holds, or runs under, and the last for what the first
	// one does. The first is the one that gives way.
	Steps []DeadlockStep
}

// A DeadlockStep is one that waits in a deadlock.
type DeadlockStep struct {
	Path  string    // of the lock that it waits for
	Token Token     // of the hold that it waits for; 0 if it waits behind the next one in the line
	Outer bool      // whether that is the hold of a program that runs the next one under it
	Owner Owner     // who waits
	Since time.Time // when its call of Lock began, by its own clock
}

// Error returns the steps, one after the other.
func (e *DeadlockError) Error() string {
	var b strings.Builder
	b.WriteString(ErrDeadlock.Error())
	for i, s := range e.Steps {
		next := e.Steps[(i+1)%len(e.Steps)].Owner
		if i == 0 {
			b.WriteString(": " + owned(s.Owner) + " ")
		} else {
			b.WriteString(", who ")
		}
		switch {
		case s.Outer: // nothing tells which process that is
			fmt.Fprintf(&b, "waits for %s (token %d), under which %s runs", s.Path, s.Token, owned(next))
		case s.Token != 0:
			fmt.Fprintf(&b, "waits for %s (token %d) of %s", s.Path, s.Token, owned(next))
		default:
			fmt.Fprintf(&b, "waits in the line of %s for %s", s.Path, owned(next))
		}
	}
	return b.String()
}

func owned(o Owner) string { return fmt.Sprintf("%s on %s (pid %d)", o.Program, o.Host, o.PID) }

// Unwrap returns ErrDeadlock.
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }

// inside returns the wait of a call of Lock that goes on inside of a hold.
func (b *base) inside(of any, kind Kind, outer waits.Hold, r *report) *waits.Wait {
	w := &waits.Wait{
		Client: b.client, Path: b.cfg.WaitsPath, Dirs: attempt.Dirs{ACL: b.cfg.ACL, AnyACL: b.cfg.AnyACL},
		Label: b.cfg.Label, Yields: b.cfg.OnDeadlock == FailWait, Since: r.event.Since, Outer: outer,
	}
	w.Paths, w.Kind, w.Limit = factsOf(of, kind == Reader)
	e := r.event
	w.Found = func(found *stuck.Deadlock, owner func(record string) line.Owner) error {
		err := waits.Explain(found, owner)
		if hook := b.cfg.Hooks.Deadlock; hook != nil {
			e := e
			e.Queued, e.Took, e.Err = true, time.Since(e.Since), err
			hook(e)
		}
		return err
	}
	return w
}

// acquireInside acquires inside of a hold. A wait that takes longer than an ordinary one is told to others.
func (b *base) acquireInside(
	ctx context.Context, of any, kind Kind, outer waits.Hold, r *report,
	take func(context.Context, *report) (*Hold, error),
) (*Hold, error) {
	if r == nil {
		r = b.newReport(kind) // its hooks do nothing
	}
	r.inside = b.inside(of, kind, outer, r)
	defer r.inside.End()
	h, err := take(r.inside.Begin(ctx), r)
	if h != nil {
		h.around = waits.Around(ctx)
	}
	return b.acquired(ctx, of, outer, r, h, err)
}

// link is a hold in the chain of those that a context descends from.
type link Hold

// Over reports whether the hold was unlocked.
func (l *link) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// Told returns what is told of the hold.
func (l *link) Told() (told stuck.Hold, ok bool) {
	h := (*Hold)(l)
	told = stuck.Hold{Node: h.Path(), Token: int64(h.Token())}
	told.Paths, told.Kind, _ = factsOf(h.grant.of, h.grant.readers() != nil)
	if told.Kind == stuck.Permit || told.Kind == stuck.KazooPermit {
		told.Permits = len(h.grant.Nodes())
	}
	return told, h.grant.Err() == nil
}

// Outside returns the holds that it was acquired inside of.
func (l *link) Outside() (waits.Hold, []stuck.Hold) { return l.outer, l.around }

// factsOf returns what is told of a lock: its paths, the kind of a hold of it or of a wait for it, and how many permits
// it has if that is fixed.
func factsOf(of any, reads bool) (paths []string, kind string, limit int) {
	switch of := of.(type) {
	case *Set:
		return of.paths, stuck.Exclusive, 0
	case *Simple:
		return []string{of.name}, stuck.Simple, 0
	case *Semaphore:
		kind = stuck.Permit
		if of.cfg.Layout == Kazoo {
			kind = stuck.KazooPermit
		}
		return []string{of.name}, kind, of.limit.permits // 0 for a watched limit
	case *RWMutex:
		kind = stuck.Writer
		if reads {
			kind = stuck.Reader
		}
		return []string{of.name}, kind, 0
	default:
		return []string{of.(*Mutex).name}, stuck.Exclusive, 0 //nolint:forcetypeassert // there is no other lock
	}
}

func init() { //nolint:gochecknoinits // elections have the same error, whose type is here
	waits.Explain = func(found *stuck.Deadlock, owner func(record string) line.Owner) error {
		return newDeadlockError(found, owner)
	}
}

func newDeadlockError(found *stuck.Deadlock, owner func(record string) line.Owner) *DeadlockError {
	e := new(DeadlockError)
	for i, s := range found.Cycle {
		step := DeadlockStep{Path: s.Path, Owner: Owner(owner(s.Wait.Record)), Since: s.Wait.Since}
		step.Owner.Label = s.Wait.Label
		if s.Hold != nil {
			step.Token = Token(s.Hold.Token)
			next := found.Cycle[(i+1)%len(found.Cycle)].Wait
			step.Outer = slices.ContainsFunc(next.Holds, func(h stuck.Hold) bool {
				return h.Token == s.Hold.Token && h.Other
			})
		}
		e.Steps = append(e.Steps, step)
	}
	return e
}
