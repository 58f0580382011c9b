package otel

// The spans of locks.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/internal/outcome"
	"github.com/seed-a3166700/turnstile/lock"
)

// Lock returns the hooks of a mutex, a read/write lock, a set, a semaphore or a simple lock. They may be those of any
// number of them; hooks that belong to one lock alone find its name faster.
func (t *Tracing) Lock() lock.Hooks {
	h := &lockHooks{Tracing: t}
	return lock.Hooks{
		Enqueued: h.enqueued, Acquired: h.acquired, Failed: h.failed,
		Released: func(e lock.Event) { h.endHold(&e) },
		Lost: func(e lock.Event) {
			fail(h.holding.get(e.ID), outcome.OfLoss(e.Err), e.Err)
			h.endHold(&e)
		},
		Deadlock: func(e lock.Event) { deadlock(h.acquiring.get(e.ID), e.Err) },
	}
}

// lockHooks are the hooks of a lock, or of several.
type lockHooks struct {
	*Tracing

	first atomic.Pointer[lockSpans] // the first that was used, which saves making it again
}

// lockSpans is what the spans of a lock have in common.
type lockSpans struct {
	path          string
	kind          lock.Kind
	acquire, hold string // the names
	attributes    trace.SpanStartEventOption
}

func (h *lockHooks) of(e *lock.Event) *lockSpans {
	first := h.first.Load()
	if first != nil && first.kind == e.Kind && first.path == e.Path {
		return first
	}
	name := text(h.names(e.Path))
	s := &lockSpans{
		path: e.Path, kind: e.Kind, acquire: "lock acquire " + name, hold: "lock hold " + name,
		attributes: trace.WithAttributes(attribute.String("turnstile.lock.path", text(e.Path)),
			attribute.String("turnstile.lock.kind", e.Kind.String())),
	}
	if first == nil {
		h.first.CompareAndSwap(nil, s)
	}
	return s
}

// acquire begins the span of an acquisition.
func (h *lockHooks) acquire(ctx context.Context, e *lock.Event) trace.Span {
	s := h.of(e)
	_, span := h.tracer.Start(ctx, s.acquire, s.attributes, client, trace.WithTimestamp(e.Since))
	return span
}

// acquisition returns the span of an acquisition that has come to its end.
func (h *lockHooks) acquisition(ctx context.Context, e *lock.Event) trace.Span {
	if e.Queued {
		return h.acquiring.take(e.ID)
	}
	return h.acquire(ctx, e)
}

func (h *lockHooks) enqueued(ctx context.Context, e lock.Event) {
	span := h.acquire(ctx, &e)
	if span.IsRecording() {
		span.AddEvent("enqueued", trace.WithTimestamp(e.Since.Add(e.Took)))
		h.acquiring.begin(e.ID, span)
	}
}

// acquired ends the span of an acquisition, and begins that of the hold. Both belong to the caller.
func (h *lockHooks) acquired(ctx context.Context, e lock.Event) {
	now := trace.WithTimestamp(e.Since.Add(e.Took))
	token := attribute.Int64("turnstile.lock.token", int64(e.Token))
	span := h.acquisition(ctx, &e)
	if span.IsRecording() {
		if e.First > 0 {
			span.AddEvent("first", trace.WithTimestamp(e.Since.Add(e.First)))
		}
		span.SetAttributes(attribute.String("turnstile.lock.outcome", outcome.Acquired),
			attribute.String("turnstile.lock.how", e.How.String()), token)
		span.End(now)
	}
	s := h.of(&e)
	_, hold := h.tracer.Start(ctx, s.hold, s.attributes, now)
	if hold.IsRecording() {
		hold.SetAttributes(token)
		hold.AddLink(trace.Link{SpanContext: span.SpanContext()})
		h.holding.begin(e.ID, hold)
	}
}

func (h *lockHooks) failed(ctx context.Context, e lock.Event) {
	span := h.acquisition(ctx, &e)
	how := outcome.OfFailure(ctx, e.Err)
	span.SetAttributes(attribute.String("turnstile.lock.outcome", how))
	if how != outcome.Held { // which is an answer
		fail(span, how, e.Err)
	}
	span.End(trace.WithTimestamp(e.Since.Add(e.Took)))
}

// deadlock adds to the span of a wait that it is part of a deadlock.
func deadlock(span trace.Span, err error) {
	span.AddEvent("deadlock", trace.WithAttributes(attribute.String("turnstile.deadlock", text(err.Error()))))
}

// endHold ends the span of a hold.
func (t *Tracing) endHold(e *lock.Event) {
	end(t.holding.take(e.ID), "turnstile.lock.end", e.Since.Add(e.Took), e.Stopping, e.Err)
}

// end ends the span of a hold or a leadership. Stopping is for how long the holder went on after it was told to stop,
// if it was, and err why.
func end(span trace.Span, attr string, at time.Time, stopping time.Duration, err error) {
	if !span.IsRecording() {
		return
	}
	how := "released"
	stopped := trace.WithTimestamp(at.Add(-stopping))
	switch {
	case errors.Is(err, lock.ErrRevoked):
		how = "revoked"
		span.AddEvent("revoked", stopped, trace.WithAttributes(attribute.String("turnstile.reason", text(err.Error()))))
	case errors.Is(err, lock.ErrSuspended):
		how = "suspended"
		span.AddEvent("suspended", stopped)
	case err != nil:
		how = "lost"
	}
	span.SetAttributes(attribute.String(attr, how))
	span.End(trace.WithTimestamp(at))
}
