package lock

// Deadlocks: what users see of them, and the waits that can be part of one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
)

// OnDeadlock says what a wait does that is part of a deadlock: each of some programs waits for what another of them
// holds.
//
// A wait can be part of a deadlock if it goes on inside of a hold: if the context that was passed to Lock descends from
// Hold.Context, or is the one that Do passes to its function. When such a wait has lasted for 200 ms, the client tells
// of it in an ephemeral node below Config.WaitsPath, with the ACL of the lock, and reads what others tell. A deadlock
// is certain once every one of its clients has confirmed that its waits and holds still stand: none is reported that
// has not existed. A hold counts as waiting if all calls of Lock inside of it that others know of do.
//
// What is not found: deadlocks through a call that waits outside of any hold (a Set that has its turn at one path, a
// writer with readers behind it, a large request of a semaphore with others behind it), through a WatchedLimit's
// permits, an Upgrade, other programs' locks, elections or queues, and between clients with different chroots,
// WaitsPaths or rights.
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
const DefaultWaitsPath = "/turnstile/waits"

func (o OnDeadlock) check() error {
	if o < ReportDeadlock || o > IgnoreDeadlock {
		return fmt.Errorf("lock: unknown OnDeadlock %d; use ReportDeadlock, FailWait or IgnoreDeadlock", int(o))
	}
	return nil
}

// ErrDeadlock is wrapped by every DeadlockError.
var ErrDeadlock = errors.New("deadlock")

// A DeadlockError says who waits for whom. It wraps ErrDeadlock.
type DeadlockError struct {
	// Steps is the way around: each waits for what the next one holds, and the last for what the first one holds. The
	// first is the one that gives way.
	Steps []DeadlockStep
}

// A DeadlockStep is one that waits in a deadlock.
type DeadlockStep struct {
	Path  string    // of the lock that it waits for
	Token Token     // of the hold that it waits for; 0 if it waits behind the next one in the line
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
		if s.Token != 0 {
			fmt.Fprintf(&b, "waits for %s (token %d) of %s", s.Path, s.Token, owned(next))
		} else {
			fmt.Fprintf(&b, "waits in the line of %s for %s", s.Path, owned(next))
		}
	}
	return b.String()
}

func owned(o Owner) string { return fmt.Sprintf("%s on %s (pid %d)", o.Program, o.Host, o.PID) }

// Unwrap returns ErrDeadlock.
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }

// inside is a call of Lock that goes on inside of a hold.
type inside struct {
	base    *base
	id      uint64 // Event.ID
	of      any
	kind    Kind
	permits int          // that it wants, of a Semaphore
	outer   *Hold        // nil if there is none of this process
	around  []stuck.Hold // of other processes
	since   time.Time
	fail    context.CancelCauseFunc          // ends the wait
	where   atomic.Pointer[func() *line.Own] // finds its contender; nil while it does not wait for others

	detector *detector // that tells others of it; nil if none does. detectorsMu guards it and over
	over     bool
}

// isInside reports whether a call goes on inside of a hold: of this process, or of one that has started it.
//
//go:noinline
func isInside(ctx context.Context, outer *Hold) bool { return outer != nil || stuck.Around(ctx) != nil }

// acquireInside acquires inside of a hold. A wait that takes longer than an ordinary one is told to others.
func (b *base) acquireInside(
	ctx context.Context, of any, kind Kind, outer *Hold, r *report, take func(context.Context, *report) (*Hold, error),
) (*Hold, error) {
	if r == nil {
		r = b.newReport(kind) // its hooks do nothing
	}
	waiting, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in := &inside{
		base: b, id: r.event.ID, of: of, kind: kind, outer: outer, around: stuck.Around(ctx), since: r.event.Since,
		fail: fail,
	}
	r.inside = in
	timer := time.AfterFunc(longWait, in.publish)
	h, err := take(waiting, r)
	if !timer.Stop() {
		in.end()
	}
	if h != nil {
		h.around = in.around
	}
	return b.acquired(ctx, of, outer, r, h, err)
}

// tell tells the hooks that the wait is part of a deadlock.
func (in *inside) tell(err *DeadlockError) {
	if hook := in.base.cfg.Hooks.Deadlock; hook != nil {
		hook(Event{
			ID: in.id, Path: in.base.name, Kind: in.kind, Queued: true,
			Since: in.since, Took: time.Since(in.since), Err: err,
		})
	}
}

// describe returns what is told of the wait in a record, nil if there is nothing that others could rely on: it has no
// contender in line, or none of its holds lasts.
func (in *inside) describe(record string, session int64) *stuck.Wait {
	where := in.where.Load()
	if where == nil {
		return nil
	}
	w := &stuck.Wait{
		ID: in.id, Record: record, Permits: in.permits,
		Since: in.since.UTC().Round(time.Millisecond), Yields: in.base.cfg.OnDeadlock == FailWait,
		Label: in.base.cfg.Label,
	}
	w.Paths, w.Kind, w.Limit = factsOf(in.of, in.kind == Reader)
	switch own := (*where)(); {
	case own != nil && own.Session().ID() == session:
		w.Node, w.Czxid = own.Path(), own.Stat().Czxid
	case w.Kind != stuck.Simple:
		return nil
	}
	for h := in.outer.lasting(); h != nil; h = h.outer.lasting() {
		if h.grant.Err() == nil { // or it is lost
			w.Holds = appendNew(appendNew(w.Holds, h.describe()), h.around...)
		}
	}
	w.Holds = appendNew(w.Holds, in.around...)
	if w.Holds == nil {
		return nil
	}
	return w
}

// appendNew appends those of more that are not in the list: holds that are nested in one have its token.
func appendNew(list []stuck.Hold, more ...stuck.Hold) []stuck.Hold {
	for _, h := range more {
		if !slices.ContainsFunc(list, func(other stuck.Hold) bool { return other.Token == h.Token }) {
			list = append(list, h)
		}
	}
	return list
}

// describe returns what is told of the hold.
func (h *Hold) describe() stuck.Hold {
	d := stuck.Hold{Node: h.Path(), Token: int64(h.Token())}
	d.Paths, d.Kind, _ = factsOf(h.grant.of, h.grant.readers() != nil)
	if d.Kind == stuck.Permit || d.Kind == stuck.KazooPermit {
		d.Permits = len(h.grant.Nodes())
	}
	return d
}

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
