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

// check returns an error unless o is one of the constants and path can be a WaitsPath. It returns the path.
func (o OnDeadlock) check(path string) (string, error) {
	if o < ReportDeadlock || o > IgnoreDeadlock {
		return "", fmt.Errorf("lock: unknown OnDeadlock %d; use ReportDeadlock, FailWait or IgnoreDeadlock", int(o))
	}
	if path == "" {
		return DefaultWaitsPath, nil
	}
	return path, ValidatePath(path)
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
		sep := ": "
		if i > 0 {
			sep = ", who "
		}
		next := e.Steps[(i+1)%len(e.Steps)].Owner
		fmt.Fprintf(&b, "%s", sep)
		if i == 0 {
			b.WriteString(owned(s.Owner) + " ")
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
	id      uint64
	of      any
	kind    Kind
	permits int          // that it wants, of a Semaphore
	outer   *Hold        // nil if there is none of this process
	around  []stuck.Hold // of other processes
	since   time.Time
	fail    context.CancelCauseFunc          // ends the wait
	call    uint64                           // Event.ID
	where   atomic.Pointer[func() *line.Own] // finds its contender; nil while it does not wait for others

	detector *detector // that tells others of it; nil if none does. detectorsMu guards it and over
	over     bool
}

// insides counts the waits of this process that are inside of holds.
var insides atomic.Uint64 //nolint:gochecknoglobals // makes numbers that are unique in the process

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
		base: b, id: insides.Add(1), of: of, kind: kind, outer: outer, fail: fail,
		around: stuck.Around(ctx),
		since:  r.event.Since, call: r.event.ID,
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
			ID: in.call, Path: in.base.name, Kind: in.kind, Queued: true,
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
		ID: in.id, Record: record, Kind: waitKind(in.of, in.kind), Permits: in.permits,
		Since: in.since.UTC().Round(time.Millisecond), Yields: in.base.cfg.OnDeadlock == FailWait,
		Label: in.base.cfg.Label,
	}
	w.Paths, w.Limit = in.base.places(in.of)
	switch own := (*where)(); {
	case own != nil && own.Session().ID() == session:
		w.Node, w.Czxid = own.Path(), own.Stat().Czxid
	case w.Kind != stuck.Simple:
		return nil
	}
	tokens := make(map[Token]bool)
	for h := in.outer.lasting(); h != nil; h = h.outer.lasting() {
		t := h.Token()
		if tokens[t] || h.grant.Err() != nil {
			continue // counted already, as a hold that is nested in another; or lost
		}
		tokens[t] = true
		w.Holds = append(w.Holds, h.describe())
		w.Holds = appendNew(w.Holds, h.around)
	}
	w.Holds = appendNew(w.Holds, in.around)
	if w.Holds == nil {
		return nil
	}
	return w
}

// appendNew appends those of more that are not in the list.
func appendNew(list, more []stuck.Hold) []stuck.Hold {
	for _, h := range more {
		if !slices.ContainsFunc(list, func(other stuck.Hold) bool { return other.Token == h.Token }) {
			list = append(list, h)
		}
	}
	return list
}

func (h *Hold) describe() stuck.Hold {
	g := h.grant
	d := stuck.Hold{Node: h.Path(), Token: int64(h.Token())}
	kind := Exclusive
	switch of := g.of.(type) {
	case *RWMutex:
		d.Paths, kind = []string{of.name}, Writer
		if g.readers() != nil {
			kind = Reader
		}
	case *Semaphore:
		d.Paths, d.Permits = []string{of.name}, len(g.Nodes())
	case *Set:
		d.Paths = of.paths
	case *Mutex:
		d.Paths = []string{of.name}
	case *Simple:
		d.Paths = []string{of.name}
	}
	d.Kind = waitKind(g.of, kind)
	return d
}

// places returns the paths of a lock, and how many permits it has if that is fixed.
func (b *base) places(of any) (paths []string, limit int) {
	switch of := of.(type) {
	case *Set:
		return of.paths, 0
	case *Semaphore:
		limit = of.limit.permits // 0 for a watched limit
	}
	return []string{b.name}, limit
}

// waitKind returns the kind of a hold, or of a wait, of a lock.
func waitKind(of any, kind Kind) string {
	switch of := of.(type) {
	case *Simple:
		return stuck.Simple
	case *Semaphore:
		if of.cfg.Layout == Kazoo {
			return stuck.KazooPermit
		}
		return stuck.Permit
	case *RWMutex:
		if kind == Reader {
			return stuck.Reader
		}
		return stuck.Writer
	}
	return stuck.Exclusive
}
