// Package waits tells other clients of the long waits of this one that go on inside of holds, and finds the deadlocks
// that they are part of. It has what locks and elections share of that: which holds a context descends from, the
// records of waits at the servers, and the detector that reads and confirms them.
package waits

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/zk"
)

// DefaultPath is where waits are told if a program does not say otherwise.
const DefaultPath = "/turnstile/waits"

// CheckConfig checks what a configuration of a package says: what a wait does that is part of a deadlock, as
// lock.OnDeadlock, and where waits are told. It returns where that is.
func CheckConfig(pkg string, onDeadlock int, path string) (string, error) {
	if onDeadlock < 0 || onDeadlock > 2 {
		return "", attempt.Bad(
			"%s: unknown OnDeadlock %d; use ReportDeadlock, FailWait or IgnoreDeadlock", pkg, onDeadlock)
	}
	path = cmp.Or(path, DefaultPath)
	return path, attempt.PathArgs(pkg, path, nil)
}

// A Hold is what waits can go on inside of.
type Hold interface {
	Over() bool                    // it was released
	Told() (stuck.Hold, bool)      // what others are told of it; false if it was lost
	Outside() (Hold, []stuck.Hold) // which holds it was acquired inside of: of this process, and of others; see Around
}

// Context carries a hold, so that each acquisition knows inside of which holds it goes on.
type Context struct {
	context.Context //nolint:containedctx // it is one
	Hold            Hold
}

// key is the key under which a context carries the innermost hold that it descends from.
type key struct{}

// Value returns the hold, or what the context carries otherwise.
func (c Context) Value(k any) any {
	if k == (key{}) {
		return c.Hold
	}
	return c.Context.Value(k)
}

// Innermost returns the innermost hold that ctx descends from, nil if there is none.
func Innermost(ctx context.Context) Hold {
	h, _ := ctx.Value(key{}).(Hold)
	return h
}

// Lasting returns h or the innermost hold outside of it that was not released, nil if there is none: a chain of holds,
// each acquired inside the one before, would keep them all.
func Lasting(h Hold) Hold {
	for h != nil && h.Over() {
		h, _ = h.Outside()
	}
	return h
}

// Within returns a context for calls of a process that was started inside of holds of others. Those need not be of the
// servers that it asks.
func Within(ctx context.Context, holds []stuck.Hold) context.Context {
	return context.WithValue(ctx, aroundKey{}, holds)
}

// Around returns the holds of other processes that ctx is inside of.
func Around(ctx context.Context) []stuck.Hold {
	holds, _ := ctx.Value(aroundKey{}).([]stuck.Hold)
	return holds
}

// aroundKey is the key of Within's holds.
type aroundKey struct{}

// Inside reports whether a call goes on inside of a hold: of this process, or of one that has started it.
//
//go:noinline
func Inside(ctx context.Context, outer Hold) bool { return outer != nil || Around(ctx) != nil }

// A Wait is a call that goes on inside of a hold, and may have to wait.
type Wait struct {
	Client *zk.Client
	Path   string       // where it is told
	Dirs   attempt.Dirs // for what is made there

	Kind    string // of package stuck
	Paths   []string
	Permits int // that it wants
	Limit   int // of the semaphore; 0 if it can change
	Label   string
	Yields  bool      // it fails if it is chosen to give way
	Since   time.Time // it began
	Outer   Hold      // nil if it is only inside of holds of other processes

	// Found is called when the wait is part of a deadlock, by the detector's goroutine. It returns the error with which
	// the wait fails if it is to give way.
	Found func(found *stuck.Deadlock, owner func(record string) line.Owner) error

	id     uint64
	around []stuck.Hold // of other processes
	fail   context.CancelCauseFunc
	timer  *time.Timer
	where  atomic.Pointer[func() *line.Own] // finds its contender; nil while it does not wait for others

	detector *detector // that tells others of it; nil if none does. detectorsMu guards it and over
	over     bool
}

// ids counts the waits of this process.
var ids atomic.Uint64 //nolint:gochecknoglobals // makes numbers that are unique in the process

// Begin begins the wait. The context that it returns ends with ctx, and when the wait is to give way. A wait that takes
// longer than an ordinary one is told to others, until End.
func (w *Wait) Begin(ctx context.Context) context.Context {
	w.id, w.around = ids.Add(1), Around(ctx)
	ctx, w.fail = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(longWait, w.publish)
	return ctx
}

// End ends the wait.
func (w *Wait) End() {
	if !w.timer.Stop() {
		w.unpublish()
	}
	w.fail(nil)
}

// StandsIn says how to find out where the wait stands.
func (w *Wait) StandsIn(where func() *line.Own) { w.where.Store(&where) }

// describe returns what is told of the wait in a record, nil if there is nothing that others could rely on: it has no
// contender in line, or none of its holds lasts.
func (w *Wait) describe(record string, session int64) *stuck.Wait {
	where := w.where.Load()
	if where == nil {
		return nil
	}
	d := &stuck.Wait{
		ID: w.id, Record: record, Paths: w.Paths, Kind: w.Kind, Permits: w.Permits, Limit: w.Limit,
		Since: w.Since.UTC().Round(time.Millisecond), Yields: w.Yields, Label: w.Label,
	}
	switch own := (*where)(); {
	case own != nil && own.Session().ID() == session:
		d.Node, d.Czxid = own.Path(), own.Stat().Czxid
	case d.Kind != stuck.Simple:
		return nil
	}
	for h := Lasting(w.Outer); h != nil; {
		outer, around := h.Outside()
		if told, ok := h.Told(); ok {
			d.Holds = appendNew(appendNew(d.Holds, told), around...)
		}
		h = Lasting(outer)
	}
	d.Holds = appendNew(d.Holds, w.around...)
	if d.Holds == nil {
		return nil
	}
	return d
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
