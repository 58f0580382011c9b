package otel

// The spans of elections.

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/outcome"
)

// Elect returns the hooks of a candidate. They may be those of any number of candidates.
func (t *Tracing) Elect() elect.Hooks {
	return elect.Hooks{
		Campaign: func(ctx context.Context, e elect.Event) {
			_, span := t.start(ctx, "elect campaign", e.Path, trace.SpanKindClient, time.Now(), electionPath(&e))
			t.campaigning.begin(e.ID, span)
		},
		Elected: func(ctx context.Context, e elect.Event) {
			now := time.Now()
			token := attribute.Int64("turnstile.election.token", int64(e.Token))
			span := t.campaigning.take(e.ID)
			span.SetAttributes(attribute.String("turnstile.election.outcome", "elected"), token)
			span.End(trace.WithTimestamp(now))
			_, lead := t.start(ctx, "elect lead", e.Path, trace.SpanKindInternal, now, electionPath(&e),
				trace.WithAttributes(token), trace.WithLinks(trace.Link{SpanContext: span.SpanContext()}))
			t.leading.begin(e.ID, lead)
		},
		Failed: func(ctx context.Context, e elect.Event) {
			span := t.campaigning.take(e.ID)
			how := outcome.OfFailure(ctx, e.Err)
			span.SetAttributes(attribute.String("turnstile.election.outcome", how))
			if how != outcome.Led { // which is an answer
				fail(span, how, e.Err)
			}
			span.End()
		},
		Deadlock: func(e elect.Event) { deadlock(t.campaigning.get(e.ID), e.Err) },
		Resigned: func(e elect.Event) { t.endTerm(&e) },
		Lost: func(e elect.Event) {
			fail(t.leading.get(e.ID), outcome.OfLoss(e.Err), e.Err)
			t.endTerm(&e)
		},
	}
}

// endTerm ends the span of a leadership.
func (t *Tracing) endTerm(e *elect.Event) {
	end(t.leading.take(e.ID), "turnstile.election.end", time.Now(), e.Stopping, e.Err)
}

func electionPath(e *elect.Event) trace.SpanStartEventOption {
	return trace.WithAttributes(attribute.String("turnstile.election.path", text(e.Path)))
}
