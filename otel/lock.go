package otel

// The spans of locks.

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/internal/outcome"
	"github.com/seed-a3166700/turnstile/lock"
)

// Lock returns the hooks of a mutex, a read/write lock, a set, a semaphore or a simple lock. They may be those of any
// number of them.
func (t *Tracing) Lock() lock.Hooks {
	return lock.Hooks{
		Enqueued: func(ctx context.Context, e lock.Event) {
			span := t.acquire(ctx, &e)
			span.AddEvent("enqueued", trace.WithTimestamp(e.Since.Add(e.Took)))
			t.acquiring.begin(e.ID, span)
		},
		Acquired: t.acquired,
		Failed: func(ctx context.Context, e lock.Event) {
			span := t.acquisition(ctx, &e)
			how := outcome.OfFailure(ctx, e.Err)
			span.SetAttributes(attribute.String("turnstile.lock.outcome", how))
			if how != outcome.Held { // which is an answer
				fail(span, how, e.Err)
			}
			span.End(trace.WithTimestamp(e.Since.Add(e.Took)))
		},
		Released: func(e lock.Event) { t.endHold(&e) },
		Lost: func(e lock.Event) {
			fail(t.holding.get(e.ID), outcome.OfLoss(e.Err), e.Err)
			t.endHold(&e)
		},
		Deadlock: func(e lock.Event) {
			t.acquiring.get(e.ID).AddEvent("deadlock",
				trace.WithAttributes(attribute.String("turnstile.deadlock", text(e.Err.Error()))))
		},
	}
}

// acquire begins the span of an acquisition.
func (t *Tracing) acquire(ctx context.Context, e *lock.Event) trace.Span {
	_, span := t.start(ctx, "lock acquire", e.Path, trace.SpanKindClient, e.Since, lockAttributes(e))
	return span
}

// acquisition returns the span of an acquisition that has come to its end.
func (t *Tracing) acquisition(ctx context.Context, e *lock.Event) trace.Span {
	if e.Queued {
		return t.acquiring.take(e.ID)
	}
	return t.acquire(ctx, e)
}

// acquired ends the span of an acquisition, and begins that of the hold. Both belong to the caller.
func (t *Tracing) acquired(ctx context.Context, e lock.Event) {
	now := e.Since.Add(e.Took)
	span := t.acquisition(ctx, &e)
	if e.First > 0 {
		span.AddEvent("first", trace.WithTimestamp(e.Since.Add(e.First)))
	}
	span.SetAttributes(
		attribute.String("turnstile.lock.outcome", outcome.Acquired),
		attribute.String("turnstile.lock.how", e.How.String()),
		attribute.Int64("turnstile.lock.token", int64(e.Token)),
	)
	span.End(trace.WithTimestamp(now))
	_, hold := t.start(ctx, "lock hold", e.Path, trace.SpanKindInternal, now, lockAttributes(&e),
		trace.WithAttributes(attribute.Int64("turnstile.lock.token", int64(e.Token))),
		trace.WithLinks(trace.Link{SpanContext: span.SpanContext()}))
	t.holding.begin(e.ID, hold)
}

// endHold ends the span of a hold.
func (t *Tracing) endHold(e *lock.Event) {
	end(t.holding.take(e.ID), "turnstile.lock.end", e.Since.Add(e.Took), e.Stopping, e.Err)
}

// end ends the span of a hold or a leadership. Stopping is for how long the holder went on after it was told to stop,
// if it was, and err why.
func end(span trace.Span, attr string, at time.Time, stopping time.Duration, err error) {
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

func lockAttributes(e *lock.Event) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("turnstile.lock.path", text(e.Path)), attribute.String("turnstile.lock.kind", e.Kind.String()))
}
